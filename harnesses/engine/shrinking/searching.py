"""Tries smaller and smaller programs that still go wrong in the same way."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.extend import core

from harnesses.engine.shrinking import programs
from harnesses.engine.shrinking.programs import UNCHANGED, Change, Program, Unfit

# Says what is wrong with a function on arguments; None if it is right. Two faults are of one kind
# if this is equal.
Judge = Callable[[Callable[..., Any], Sequence[np.ndarray]], Hashable | None]

_NARROWER = {
    "float64": "float32",
    "float16": "float32",
    "bfloat16": "float32",
    "complex128": "complex64",
    "complex64": "float32",
    "int64": "int32",
    "uint64": "int32",
    "uint32": "int32",
    "int16": "int32",
    "uint16": "int32",
    "int8": "int32",
    "uint8": "int32",
}
# Digits behind the point that are tried for a number.
_DIGITS = (0, 1, 2, 4)


class NothingWrong(ValueError):
    """The program goes right, so that there is nothing to make smaller."""


class Refused(ValueError):
    """JAX does not trace the function with these arguments."""


@dataclasses.dataclass(frozen=True)
class Shrunk:
    """The smallest program that was found.

    Attributes:
      program: the program.
      fault: what is wrong with it, and was with the first one.
      before: the size of the first one: equations, elements, elements that are not zero.
      tries: how many programs were run.
      is_over: whether the time ended the search before all was tried.
    """

    program: Program
    fault: Hashable
    before: tuple[int, int, int]
    tries: int
    is_over: bool = False

    def __str__(self) -> str:
        (e0, n0, z0), (e1, n1, z1) = self.before, self.program.size
        end = "; the time ended the search" if self.is_over else ""
        return (
            f"{e1} of {e0} equations, {n1} of {n0} elements, {z1} of {z0} of them not zero; "
            f"{self.tries} programs tried{end}"
        )


class _TimeIsOver(Exception):
    pass


def shrink(
    fun: Callable[..., Any],
    args: Sequence[Any],
    judge: Judge,
    *,
    seconds: float = 120.0,
    is_kept: Callable[[int], bool] = lambda size: False,
    progress: Callable[[Shrunk], None] | None = None,
) -> Shrunk:
    """The smallest program found within some time that goes wrong as a function does.

    Each smaller program has to be wrong in the way that `judge` names for the first one. The
    equation at which it begins is found first, and stays in the program. The same arguments give
    the same tries in the same order.

    Args:
      fun: a function of JAX.
      args: its arguments, pytrees of arrays, on which it goes wrong.
      judge: says what is wrong with a function on arrays.
      seconds: no new program is tried after so many. The last try may take longer.
      is_kept: whether a size of a dimension has to stay.
      progress: gets what is smallest so far, each time that it becomes smaller.

    Raises:
      NothingWrong: the function goes right on these arguments.
      Refused: JAX does not trace the function with these arguments.
    """
    search = _Search(judge, time.monotonic() + seconds, is_kept, progress)
    search.begin(fun, args)
    is_over = False
    try:
        search.equations()
        search.inside()
        size = None
        while size != search.best.size:
            size = search.best.size
            for step in (search.shapes, search.dtypes, search.values):
                step()
    except _TimeIsOver:
        is_over = True
    return dataclasses.replace(search.shrunk(), is_over=is_over)


class _Search:
    """The smallest program so far."""

    best: Program
    fault: Hashable

    def __init__(
        self,
        judge: Judge,
        end: float,
        is_kept: Callable[[int], bool],
        progress: Callable[[Shrunk], None] | None,
    ) -> None:
        self._judge, self._end, self._is_kept, self._progress = judge, end, is_kept, progress
        self._tries = 0
        self._before = (0, 0, 0)

    def shrunk(self) -> Shrunk:
        """The smallest program so far."""
        return Shrunk(self.best, self.fault, self._before, self._tries)

    def begin(self, fun: Callable[..., Any], args: Sequence[Any]) -> None:
        """Takes the program with its calls inlined, or as it is if it goes right so."""
        try:
            whole = programs.program_of(fun, args, inlined=False)
        # A function of the user's raises whatever it likes.
        except Exception as error:
            raise Refused(str(error)) from error
        fault = self._fault(whole)
        if fault is None:
            raise NothingWrong("the program goes right on these arguments")
        self.best, self.fault = whole, fault
        self._before = whole.size
        inlined = programs.program_of(fun, args, inlined=True)
        # A program without calls is the same once more.
        if str(inlined.closed) == str(whole.closed) or self._fault(inlined) == fault:
            self.best, self._before = inlined, inlined.size

    def _fault(self, program: Program) -> Hashable | None:
        self._tries += 1
        return self._judge(program, program.args)

    def _is_wrong(self, program: Program) -> bool:
        if time.monotonic() > self._end:
            raise _TimeIsOver
        return self._fault(program) == self.fault

    def _takes(self, make: Callable[[], Program]) -> bool:
        """Takes a program if it goes wrong in the same way."""
        try:
            program = make()
        except Unfit:
            return False
        if not self._is_wrong(program):
            return False
        self.best = program
        if self._progress is not None:
            self._progress(self.shrunk())
        return True

    def equations(self) -> None:
        """Leaves out equations: what they made becomes an argument."""
        whole = self.best
        if len(whole.equations) == 1:
            return
        first = self._first_wrong(whole)
        if first is not None:
            if self._takes(lambda: programs.part(whole, [first])):
                return
            # What comes behind the first wrong equation is not needed.
            kept = [*_before(whole, first), first]
            if not self._takes(lambda: programs.part(whole, kept)):
                kept = list(range(len(whole.equations)))
        else:
            kept = list(range(len(whole.equations)))

        def takes(numbers: Sequence[int]) -> bool:
            return (first is None or first in numbers) and self._takes(
                lambda: programs.part(whole, numbers)
            )

        _fewest(kept, takes)

    def _first_wrong(self, whole: Program) -> int | None:
        """The first equation behind which the program, cut there, is wrong."""
        made_by = {v: i for i, eqn in enumerate(whole.equations) for v in eqn.outvars}
        ends = sorted({made_by[v] for v in whole.closed.jaxpr.outvars if v in made_by})
        wrong = next((i for i in ends if self._cut_is_wrong(whole, i)), None)
        while wrong is not None:
            # Between equations that are right and this one, which is wrong.
            before = _before(whole, wrong)
            low, high = 0, len(before)
            while low < high:
                middle = (low + high) // 2
                if self._cut_is_wrong(whole, before[middle]):
                    high = middle
                else:
                    low = middle + 1
            if low == len(before):
                operands = {made_by[v] for v in _variables(whole.equations[wrong]) if v in made_by}
                earlier = (i for i in sorted(operands) if self._cut_is_wrong(whole, i))
                deeper = next(earlier, None)
                if deeper is None:
                    return wrong
                wrong = deeper
            else:
                wrong = before[low]
        return None

    def _cut_is_wrong(self, whole: Program, index: int) -> bool:
        outputs = list(whole.equations[index].outvars)
        try:
            return self._is_wrong(programs.part(whole, [*_before(whole, index), index], outputs))
        except Unfit:
            return False

    def inside(self) -> None:
        """Takes the step of a loop, or the branch, that is wrong in place of the whole."""
        while self._takes_inner():
            self.equations()

    def _takes_inner(self) -> bool:
        whole = self.best
        try:
            return any(self._takes(step.itself) for step in programs.inside(whole))
        except Unfit:
            return False

    def shapes(self) -> None:
        """Takes fewer indices of all dimensions of one size."""
        tried: set[int] = set()
        while True:
            every = {n for x in self.best.args for n in x.shape if n > 1}
            sizes = {n for n in every if not self._is_kept(n)} - tried
            if not sizes:
                return
            size = max(sizes)
            tried.add(size)
            _fewest(list(range(size)), self._taker(self.best, size))

    def _taker(self, whole: Program, size: int) -> Callable[[Sequence[int]], bool]:
        def takes(indices: Sequence[int]) -> bool:
            # A size that stays says more than how many indices there are.
            if self._is_kept(len(indices)):
                return False
            args = [_taken(x, size, indices) for x in whole.args]
            change = Change(sizes={size: len(indices)})
            return self._takes(lambda: programs.changed(whole, args, change))

        return takes

    def dtypes(self) -> None:
        """Takes plainer dtypes."""
        for name, plainer in _NARROWER.items():
            whole, dtype = self.best, np.dtype(plainer)
            if not any(x.dtype.name == name for x in whole.args):
                continue
            of = next(x.dtype for x in whole.args if x.dtype.name == name)
            args = [
                (x.real if dtype.kind == "f" and of.kind == "c" else x).astype(dtype)
                if x.dtype == of
                else x
                for x in whole.args
            ]
            change = Change(dtypes={of: dtype})
            self._takes(functools.partial(programs.changed, whole, args, change))

    def values(self) -> None:
        """Makes elements zero, and rounds the others."""
        for i in range(len(self.best.args)):
            array = self.best.args[i]
            if array.size == 0:
                continue
            self._zeros(i)
            for rounded in _rounded(self.best.args[i]):
                if self._takes_array(i, rounded):
                    break

    def _zeros(self, i: int) -> None:
        array = self.best.args[i]
        filled = [int(n) for n in np.flatnonzero(array)]
        if not filled or self._takes_array(i, np.zeros_like(array)):
            return

        def takes(kept: Sequence[int]) -> bool:
            fewer = np.zeros_like(array)
            fewer.reshape(-1)[list(kept)] = array.reshape(-1)[list(kept)]
            return self._takes_array(i, fewer)

        _fewest(filled, takes)

    def _takes_array(self, i: int, array: np.ndarray) -> bool:
        args = list(self.best.args)
        if args[i].tobytes() == array.tobytes():
            return True
        args[i] = array
        return self._takes(lambda: programs.changed(self.best, args, UNCHANGED))


def _variables(eqn: core.JaxprEqn) -> list[core.Var]:
    return [v for v in eqn.invars if isinstance(v, core.Var)]


def _before(program: Program, index: int) -> list[int]:
    """The equations that one needs, in order."""
    needed = set(_variables(program.equations[index]))
    found: list[int] = []
    for i in reversed(range(index)):
        eqn = program.equations[i]
        if not needed.isdisjoint(eqn.outvars):
            found.insert(0, i)
            needed.update(_variables(eqn))
    return found


def _taken(array: np.ndarray, size: int, indices: Sequence[int]) -> np.ndarray:
    for axis, n in enumerate(array.shape):
        if n == size:
            array = array.take(list(indices), axis)
    return array


def _rounded(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array with ones, or with fewer digits."""
    if array.dtype.kind not in "fci" and array.dtype.name != "bfloat16":
        return
    with np.errstate(all="ignore"):
        yield (array != 0).astype(array.dtype)
        if array.dtype.kind == "i":
            return
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        for digits in _DIGITS:
            yield np.round(wide, digits).astype(array.dtype)


def _fewest(items: Sequence[int], takes: Callable[[Sequence[int]], bool]) -> list[int]:
    """Fewer and fewer of the items, as long as `takes` takes them (Zeller's ddmin).

    The items are cut into two parts, then four, eight, and so on. Each part is tried alone, and
    then all items without that part.
    """
    kept, parts = list(items), 2
    while len(kept) > 1:
        chunks = _chunks(kept, parts)
        for fewer in _candidates(chunks):
            if takes(fewer):
                kept, parts = list(fewer), max(2, parts - 1 if len(fewer) > len(chunks[0]) else 2)
                break
        else:
            if parts >= len(kept):
                break
            parts = min(2 * parts, len(kept))
    return kept


def _candidates(chunks: Sequence[list[int]]) -> Iterator[list[int]]:
    yield from chunks
    if len(chunks) > 2:
        for i in range(len(chunks)):
            yield [n for j, chunk in enumerate(chunks) if j != i for n in chunk]


def _chunks(items: Sequence[int], parts: int) -> list[list[int]]:
    ends = [len(items) * i // parts for i in range(parts + 1)]
    return [list(items[a:b]) for a, b in itertools.pairwise(ends) if a < b]
