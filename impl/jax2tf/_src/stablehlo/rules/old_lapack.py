"""The calls of LAPACK as JAX before 0.5 wrote them.

Sizes and modes are leading operands, and workspaces are among the results. Nobody reads these, so
they are zeros. The functions are those of `linalg`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, listed, takes_sizes
from jax2tf._src.stablehlo.registry import CUSTOM_CALLS, Rule, reads_custom_call
from jax2tf._src.stablehlo.rules.linalg import status
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

_STATUS = -1
_WORK = None


def _triangle(lower: int) -> int:
    return ord("L" if lower else "U")


@dataclasses.dataclass(frozen=True)
class _Routine:
    """How a routine was called.

    Attributes:
      names: the leading operands: attributes of the rule, or "" for a size that shapes tell.
      results: the results: those of the rule by their place, `_STATUS`, or `_WORK` for a workspace,
        which all others are.
      read: the attribute for an operand's number, where it has another form.
    """

    names: Sequence[str]
    results: Sequence[int | None]
    read: Mapping[str, Callable[[int], int]] = dataclasses.field(default_factory=dict)


_EIGEN = ("", "", "compute_left", "compute_right")
_SCHUR = ("", "", "mode", "sort")
_UPLO = {"uplo": _triangle}
_ORGQR = _Routine(("",) * 5, (0, _STATUS))
_SYEVD = _Routine(("uplo", "", ""), (0, 1, 2), _UPLO)
_SYTRD = _Routine(("", "uplo", "", "", ""), (0, 1, 2, 3, 4), _UPLO)
_GEHRD = _Routine(("", "low", "high", "", "", ""), (0, 1, 2))

_OF_ALL = {
    "potrf": _Routine(("uplo", "", ""), (0, 1), _UPLO),
    "getrf": _Routine(("",) * 3, (0, 1, 2)),
    "geqrf": _Routine(("",) * 4, (0, 1, _STATUS)),
    "gehrd": _GEHRD,
}
_ROUTINES = {
    **{f"{letter}{name}": routine for letter in "sdcz" for name, routine in _OF_ALL.items()},
    **dict.fromkeys(("sorgqr", "dorgqr", "cungqr", "zungqr"), _ORGQR),
    **dict.fromkeys(("ssyevd", "dsyevd", "cheevd", "zheevd"), _SYEVD),
    **dict.fromkeys(("ssytrd", "dsytrd", "chetrd", "zhetrd"), _SYTRD),
    **dict.fromkeys(("sgeev", "dgeev"), _Routine(_EIGEN, (_WORK, _WORK, _WORK, 0, 1, 2, 3, 4))),
    **dict.fromkeys(("cgeev", "zgeev"), _Routine(_EIGEN, (_WORK, _WORK, 0, 1, 2, 3))),
    **dict.fromkeys(("sgees", "dgees"), _Routine(_SCHUR, (0, 2, 3, 1, 4, 5))),
    **dict.fromkeys(("cgees", "zgees"), _Routine(_SCHUR, (0, _WORK, 2, 1, 3, 4))),
}


def _called_with(
    step: Step, operands: Sequence[PyTree], names: Sequence[str]
) -> tuple[list[Array], dict[str, int]]:
    """The arrays of a call, and its leading operands by name."""
    numbers = {}
    for name, operand in zip(names, operands[: len(names)], strict=True):
        if name:
            (number,) = step.sizes(operand, name)
            numbers[name] = int(number)
    return [as_array(x) for x in operands[len(names) :]], numbers


def _with_workspaces(
    step: Step, found: Sequence[Array], places: Sequence[int | None]
) -> list[Array]:
    """The results of a call. A workspace whose size is open has no elements."""
    results: list[Array] = []
    for place, kind in enumerate(step.types):
        index = places[place] if place < len(places) else _WORK
        is_workspace = index is _WORK
        work = np.zeros([size or 0 for size in kind.shape], kind.dtype) if is_workspace else None
        results.append(work if index is None else found[index])
    return results


def _register(name: str, routine: _Routine) -> None:
    rule: Rule = CUSTOM_CALLS[f"lapack_{name}_ffi"]

    @reads_custom_call(f"lapack_{name}")
    @takes_sizes
    def old(step: Step, *operands: PyTree) -> list[Array]:
        arrays, numbers = _called_with(step, operands, routine.names)
        read = {k: routine.read.get(k, int)(number) for k, number in numbers.items()}
        found = [*listed(rule(step, *arrays, **read)), status(arrays[0])]
        return _with_workspaces(step, found, routine.results)


for _name, _routine in _ROUTINES.items():
    _register(_name, _routine)


@reads_custom_call(*(f"lapack_{letter}gesdd" for letter in "sdcz"))
@takes_sizes
def _gesdd(step: Step, *operands: PyTree) -> list[Array]:
    names = ("is_full", "has_vectors", "", "", "", "")
    (x,), numbers = _called_with(step, operands, names)
    mode = ("A" if numbers["is_full"] else "S") if numbers["has_vectors"] else "N"
    found = CUSTOM_CALLS["lapack_sgesdd_ffi"](step, x, mode=ord(mode))
    return _with_workspaces(step, found, (0, 1, 2, 3, 4))


_TRSM = ("left_side", "lower", "transpose_a", "unit_diagonal", "", "", "")


@reads_custom_call(*(f"blas_{letter}trsm" for letter in "sdcz"))
@takes_sizes
def _trsm(step: Step, *operands: PyTree) -> Array:
    """`transpose_a` is 0 for none, 1 for the transpose and 2 for the conjugate one."""
    (alpha, a, b), numbers = _called_with(step, operands, _TRSM)
    transpose = numbers.pop("transpose_a")
    solution = lax.linalg.triangular_solve(
        a,
        b,
        transpose_a=transpose > 0,
        conjugate_a=transpose == 2,
        **{name: bool(number) for name, number in numbers.items()},
    )
    is_one = isinstance(alpha, np.ndarray) and bool((alpha == 1).all())
    return solution if is_one else alpha * solution
