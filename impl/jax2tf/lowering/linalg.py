"""Linear algebra: factorisations, eigenvalues, solves."""

from __future__ import annotations
