"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ..."""

from __future__ import annotations
