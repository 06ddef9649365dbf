"""Fast Fourier transforms: fft of every type and length."""

from __future__ import annotations
