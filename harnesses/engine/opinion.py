"""A third opinion: where JAX and the judged differ, which of them is off, and by how much.

The function of a harness is evaluated once more with more digits than its dtype has:

    NumPy's long double   an elementary function alone, such as sin, of any dtype
    SciPy in float64      a special function alone, such as lgamma, of a dtype below float64
    JAX in float64        every other function of a dtype below float64, on widened arguments

What comes of it is rounded to the dtype, and the elements over which the two dispute (more than
one ULP) are measured against that. There is no opinion on functions that are about the digits
themselves (nextafter, casts of bits, random bits), nor where the widened function cannot be traced.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from harnesses.cell.outcomes import BOTH, JAX, JUDGED, NEITHER
from harnesses.engine.compare import ulp_errors
from harnesses.harness import is_complex, is_float

# A difference of one ULP is rounding.
DISPUTED = 1.0
# Who is off by this many times the other's error is the one who is wrong.
_WORSE = 2.0


class Opinion(NamedTuple):
    """Who is wrong, by how many ULPs each is off, and who says so."""

    culprit: str  # jax | judged | both | neither
    jax_ulps: float
    judged_ulps: float
    opinion: str  # long double | scipy | float64
    example: str  # the element over which they dispute most


class Exact(NamedTuple):
    """The leaves of a result with more digits than its dtype has, and who computed them."""

    leaves: Sequence[np.ndarray]
    who: str  # long double | scipy | float64


def exact_result(fun: Callable[..., Any], args: tuple) -> Exact | None:
    """The result of a function of pytrees of arrays with more digits; None if there is none."""
    closed = jax.make_jaxpr(fun)(*args)
    if _is_about_digits(closed.jaxpr):
        return None
    return _alone(closed, args) or _widened(fun, args)


def third_opinion(
    found: Exact | None, args: tuple, expected: Any, actual: Any, scale: str = "element"
) -> Opinion | None:
    """Who is off where two results differ by more than one ULP; None if nobody can tell.

    Args:
      found: what `exact_result` gives for the function and its arguments.
      args: the arguments.
      expected: JAX's result, a pytree of NumPy arrays.
      actual: the other result, of the same tree, dtypes and shapes.
      scale: of an ULP; see `harnesses.engine.compare.ulp_errors`.
    """
    if found is None:
        return None
    exact, who = found
    leaves = zip(exact, jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True)
    disputes = [each for leaf in leaves if (each := _dispute(*leaf, scale)) is not None]
    if not disputes:
        return None
    jax_ulps = max(dispute.jax_ulps for dispute in disputes)
    judged_ulps = max(dispute.judged_ulps for dispute in disputes)
    worst = max(disputes, key=lambda dispute: max(dispute.jax_ulps, dispute.judged_ulps))
    # What an element is of can be told where it is of one element of each argument.
    operands = [] if who == "float64" else jax.tree.leaves(args)
    example = worst.in_words(operands, who)
    return Opinion(_culprit(jax_ulps, judged_ulps), jax_ulps, judged_ulps, who, example)


# They give other values, and right ones, in a wider dtype.
_OF_DIGITS = frozenset(
    {
        "bitcast_convert_type",
        "eps",
        "nextafter",
        "random_bits",
        "random_gamma",
        "random_seed",
        "random_wrap",
        "reduce_precision",
        "threefry2x32",
    }
)

_LONG: Mapping[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "div": np.divide,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "mul": np.multiply,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}

_SCIPY: Mapping[str, str] = {
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
    "regularized_incomplete_beta": "betainc",
    "zeta": "zeta",
}

_LONG_IS_LONGER = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps


def _alone(closed: Any, args: tuple) -> Exact | None:
    """The result of a function that is one primitive of the tables above, applied to its inputs."""
    jaxpr = closed.jaxpr
    while len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in ("jit", "pjit"):
        if list(jaxpr.eqns[0].invars) != list(jaxpr.invars):
            return None
        jaxpr = jaxpr.eqns[0].params["jaxpr"].jaxpr
    if len(jaxpr.eqns) != 1 or list(jaxpr.eqns[0].invars) != list(jaxpr.invars):
        return None
    name, leaves = jaxpr.eqns[0].primitive.name, jax.tree.leaves(args)
    if not all(_is_inexact(leaf.dtype) for leaf in leaves):
        return None
    with np.errstate(all="ignore"):
        if name in _LONG and _LONG_IS_LONGER:
            return Exact([np.asarray(_LONG[name](*map(_longer, leaves)))], "long double")
        if name in _SCIPY and all(_is_narrow(leaf.dtype) for leaf in leaves):
            from scipy import special

            function = getattr(special, _SCIPY[name])
            return Exact([np.asarray(function(*map(_wide, leaves)))], "scipy")
    return None


def _widened(fun: Callable[..., Any], args: tuple) -> Exact | None:
    """The result of the function on arguments in float64; None if they are, or if it has none."""
    if not any(_is_narrow(leaf.dtype) for leaf in jax.tree.leaves(args)):
        return None
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        try:
            jitted: Any = jax.jit(fun)
            results = [np.asarray(x) for x in jax.tree.leaves(jitted(*jax.tree.map(_wide, args)))]
        except (TypeError, ValueError):
            return None  # its dtype is fixed somewhere inside
    return Exact(results, "float64")


class _Dispute(NamedTuple):
    """One leaf of the results: by how much each is off, and where they are most."""

    jax_ulps: float
    judged_ulps: float
    place: tuple[int, ...]
    values: tuple[Any, Any, Any]  # of JAX, of the judged, with more digits

    def in_words(self, operands: Sequence[np.ndarray], who: str) -> str:
        """`of 0.5: JAX 0.479, judged 0.25, long double 0.4794255`."""
        of = [str(self._element(x)) for x in operands if x.ndim in (0, self.rank)]
        where = f"of {', '.join(of)}" if of else f"at {list(self.place)}"
        # `str` has the fewest digits that are the number in its dtype, a format those of float64.
        ours, theirs, exact = map(str, self.values)
        return f"{where}: JAX {ours}, judged {theirs}, {who} {exact}"

    def _element(self, operand: np.ndarray) -> Any:
        """The element of an operand that is broadcast to the results."""
        sizes = zip(self.place, operand.shape, strict=True) if operand.ndim else ()
        return operand[tuple(0 if size == 1 else i for i, size in sizes)]

    @property
    def rank(self) -> int:
        """How many dimensions the results have."""
        return len(self.place)


def _dispute(
    exact: np.ndarray, expected: np.ndarray, actual: np.ndarray, scale: str
) -> _Dispute | None:
    """By how many ULPs the two are off where they dispute; None where nothing can be told."""
    if not _is_inexact(expected.dtype) or expected.shape != exact.shape:
        return None
    if exact.dtype.itemsize <= expected.dtype.itemsize:
        return None  # the function gives the narrow dtype, whatever it is given
    disputed = ulp_errors(expected, actual, scale) > DISPUTED
    if not disputed.any():
        return None
    with np.errstate(all="ignore"):
        rounded = exact.astype(expected.dtype)
    ours, theirs = (
        np.where(disputed, ulp_errors(rounded, x, scale), 0.0) for x in (expected, actual)
    )
    flat = np.argmax(np.nan_to_num(np.maximum(ours, theirs), nan=np.inf))
    place = tuple(int(i) for i in np.unravel_index(flat, expected.shape))
    values = (expected[place], actual[place], exact[place])
    return _Dispute(float(ours.max()), float(theirs.max()), place, values)


def _culprit(jax_ulps: float, judged_ulps: float) -> str:
    worst = max(jax_ulps, judged_ulps)
    if worst <= DISPUTED:
        return NEITHER
    if worst >= _WORSE * min(jax_ulps, judged_ulps) and jax_ulps != judged_ulps:
        return JAX if jax_ulps > judged_ulps else JUDGED
    return BOTH


def _is_about_digits(jaxpr: Any) -> bool:
    if any(eqn.primitive.name in _OF_DIGITS for eqn in jaxpr.eqns):
        return True
    inner = [leaf for eqn in jaxpr.eqns for leaf in jax.tree.leaves(list(eqn.params.values()))]
    nested = [getattr(leaf, "jaxpr", leaf) for leaf in inner]
    return any(_is_about_digits(each) for each in nested if hasattr(each, "eqns"))


def _is_inexact(dtype: Any) -> bool:
    return is_float(dtype) or is_complex(dtype)


def _is_narrow(dtype: Any) -> bool:
    return _is_inexact(dtype) and np.dtype(dtype).name not in ("float64", "complex128")


def _wide(leaf: np.ndarray) -> np.ndarray:
    if not _is_inexact(leaf.dtype):
        return leaf
    return leaf.astype(np.complex128 if is_complex(leaf.dtype) else np.float64)


def _longer(leaf: np.ndarray) -> np.ndarray:
    return leaf.astype(np.clongdouble if is_complex(leaf.dtype) else np.longdouble)
