"""Derivatives of the incomplete gamma function P(a, x) in `a`, for NumPy; JAX has its own.

With p(x) = x^(a-1) exp(-x) / Gamma(a), the density of the gamma distribution:

- P(a, x) = p(x) (x / a) S with the series S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ...
- 1 - P(a, x) = p(x) x F with the continued fraction F of Abramowitz and Stegun, 6.5.31.

Both are differentiated term by term. The series is taken where x <= 1 or x <= a.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tf_substrates.numpy import special

_MOST_TERMS = 2000
_EPSILON = np.finfo(np.float64).eps


def igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of P(a, x) in `a`, of float64 arrays of one shape."""
    return _at_edges(a, x, lambda a, x: -_sample_grad(a, x) * _density(a, x))


def random_gamma_grad(alpha: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """The derivative in `alpha` of the sample x with a fixed P(alpha, x)."""
    return _at_edges(alpha, sample, _sample_grad)


def _at_edges(a: np.ndarray, x: np.ndarray, function: Callable) -> np.ndarray:
    """The function where it is defined; 0 at x = 0, and NaN for a <= 0 and x < 0."""
    result = np.full(a.shape, np.nan)
    inside = (a > 0) & (x > 0)
    result[(a > 0) & (x == 0)] = 0
    result[inside] = function(a[inside], x[inside])
    return result


def _density(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp((a - 1) * np.log(x) - x - special.gammaln(a))


def _sample_grad(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    low = (x <= 1) | (x <= a)
    result = np.empty(a.shape)
    result[low] = _by_series(a[low], x[low])
    result[~low] = _by_fraction(a[~low], x[~low])
    return result


def _by_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    term, slope = np.ones(a.shape), np.zeros(a.shape)
    total, total_slope = term.copy(), slope.copy()
    for n in range(1, _MOST_TERMS):
        slope = slope - 1 / (a + n)  # of the term's logarithm
        term = term * x / (a + n)
        total, total_slope = total + term, total_slope + term * slope
        if np.all(np.abs(term * slope) <= _EPSILON * np.abs(total_slope)):
            break
    return -x / a * (total * (np.log(x) - special.digamma(a + 1)) + total_slope)


def _by_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """By the recurrence of the convergents' numerators and denominators, and of their slopes."""
    partial, scale = 1 - a, x + 2 - a
    zero, one = np.zeros(a.shape), np.ones(a.shape)
    # (numerator, denominator, their slopes in `a`) of the last convergent and the one before.
    before, last = (one, x, zero, zero), (x + 1, scale * x, zero, -x)
    value, slope = _quotient(last)
    done = np.zeros(a.shape, bool)  # what has converged stays: later slopes lose digits
    for n in range(1, _MOST_TERMS):
        partial, scale = partial + 1, scale + 2
        factor = partial * n
        top, bottom, top_slope, bottom_slope = (
            now * scale - then * factor for now, then in zip(last, before, strict=True)
        )
        top_slope = top_slope - last[0] + before[0] * n
        bottom_slope = bottom_slope - last[1] + before[1] * n
        size = np.maximum(np.abs(bottom), 1)
        before = tuple(part / size for part in last)
        last = tuple(part / size for part in (top, bottom, top_slope, bottom_slope))
        old, found = slope, _quotient(last)
        value, slope = (np.where(done, *v) for v in zip((value, slope), found, strict=True))
        done |= np.abs(slope - old) <= _EPSILON * np.abs(slope)
        if done.all():
            break
    return x * (slope + value * (np.log(x) - special.digamma(a)))


def _quotient(parts: tuple) -> tuple[np.ndarray, np.ndarray]:
    top, bottom, top_slope, bottom_slope = parts
    value = top / bottom
    return value, (top_slope - value * bottom_slope) / bottom
