"""Error, gamma, beta, Bessel and zeta functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import special
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS, widened
from tf_substrates.numpy.math.registering import Row, binary, register_unary
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import operands, require

JAX_MODE = False


def _special(name: str) -> Callable:
    def call(*arrays: Any) -> Any:
        return widened(getattr(special, name), *arrays)

    return call


def digamma(x: Any) -> Any:
    result = widened(special.digamma, x)
    return xp.where(x == 0, np.asarray(np.nan, x.dtype), result)  # TensorFlow's pole at 0 is NaN


def erfcinv(x: Any) -> Any:
    if JAX_MODE:
        return widened(lambda v: -special.ndtri(v / 2) * np.sqrt(0.5).astype(v.dtype), x)
    return widened(special.erfcinv, x)


def lgamma(x: Any) -> Any:
    result = widened(special.gammaln, x)
    return xp.where(xp.isinf(x), xp.abs(x), result)  # SciPy's at minus infinity is that


_SPECIAL: list[Row] = [
    ("math.erf", _special("erf"), REAL_FLOATS, "Erf"),
    ("math.erfc", _special("erfc"), REAL_FLOATS, "Erfc"),
    ("math.erfinv", _special("erfinv"), ("float32", "float64"), "Erfinv"),
    ("math.erfcinv", erfcinv, ("float32", "float64"), "Ndtri"),
    ("math.ndtri", _special("ndtri"), ("float32", "float64"), "Ndtri"),
    ("math.lgamma", lgamma, REAL_FLOATS, "Lgamma"),
    ("math.digamma", digamma, REAL_FLOATS, "Digamma"),
    ("math.bessel_i0 math.special.bessel_i0", _special("i0"), REAL_FLOATS, "BesselI0"),
    ("math.bessel_i0e math.special.bessel_i0e", _special("i0e"), REAL_FLOATS, "BesselI0e"),
    ("math.bessel_i1 math.special.bessel_i1", _special("i1"), REAL_FLOATS, "BesselI1"),
    ("math.bessel_i1e math.special.bessel_i1e", _special("i1e"), REAL_FLOATS, "BesselI1e"),
]
register_unary(_SPECIAL)


@op("math.igamma")
def igamma(a: Any, x: Any, name: Any = None) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return binary("Igamma", _special("gammainc"), REAL_FLOATS, a, x)


@op("math.igammac")
def igammac(a: Any, x: Any, name: Any = None) -> Any:
    """The regularized upper incomplete gamma function Q(a, x)."""
    return binary("Igammac", _special("gammaincc"), REAL_FLOATS, a, x)


@op("math.zeta")
def zeta(x: Any, q: Any, name: Any = None) -> Any:
    return binary("Zeta", _special("zeta"), ("float32", "float64"), x, q)


@op("math.polygamma")
def polygamma(a: Any, x: Any, name: Any = None) -> Any:
    """The a-th derivative of digamma; NaN where `a` is no whole number."""
    return binary("Polygamma", _polygamma, ("float32", "float64"), a, x)


def _polygamma(a: Any, x: Any) -> Any:
    whole = (a == xp.floor(a)) & (a >= 0)
    order = xp.where(whole, a, xp.ones_like(a)).astype(np.int32)
    # SciPy and JAX compute order 0 by another series than digamma, which is exact there.
    result = xp.where(order == 0, special.digamma(x), special.polygamma(order, x))
    return xp.where(whole, result, np.nan).astype(x.dtype)


@op("math.betainc")
def betainc(a: Any, b: Any, x: Any, name: Any = None) -> Any:
    a, b, x = operands("Betainc", a, b, x)
    require("Betainc", a, ("float32", "float64"))
    return widened(special.betainc, a, b, x)
