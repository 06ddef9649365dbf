"""Asks the judge whether a program goes wrong, and how, as it asks for the cells of the matrix."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harnesses.cell.cells import Cell
from harnesses.cell.modes import MODES as KNOWN_MODES
from harnesses.cell.names import (
    CONSUMER_MODES,
    DEFAULT_IMPLEMENTATION,
    DIRECT,
    GRADIENT_MODES,
    LOWERINGS,
    POLY,
    SAVED_GRADIENT,
)
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import Row
from harnesses.engine import devices
from harnesses.engine.converters import converter, is_converter
from harnesses.engine.judge import Judge
from harnesses.engine.shrinking import guarded, searching, text
from harnesses.engine.shrinking.options import OPEN
from harnesses.engine.shrinking.searching import Shrunk
from harnesses.harness import CONVERT, Arg, Harness, all_harnesses

PLAIN = ("eager", "graph", "compiled")
MODES = (*PLAIN, *GRADIENT_MODES, SAVED_GRADIENT, POLY, *CONSUMER_MODES)


class CellError(ValueError):
    """A cell, function or mode that cannot be made smaller."""


@dataclasses.dataclass(frozen=True)
class _Given(Arg):
    """An argument that is given."""

    value: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(()), compare=False)

    def make(self, rng: np.random.Generator) -> np.ndarray:
        return self.value


@dataclasses.dataclass(frozen=True)
class Asked:
    """A program, and the side that it is held against JAX on.

    Attributes:
      harness: the function and its arguments, with what may differ.
      impl: the implementation or converter.
      lowering: the lowering of the cell.
      mode: its mode.
    """

    harness: Harness
    impl: str
    lowering: str
    mode: str

    def judge(self) -> searching.Judge:
        """Says what is wrong with a function on arrays: the outcome and the exception."""
        devices.prepare(("cpu",))
        judge = _judge(self.impl, self.mode)
        numbers = itertools.count()

        def fault(fun: Callable[..., Any], args: Sequence[np.ndarray]) -> Hashable | None:
            number = next(numbers)
            harness = like(self.harness, fun, args, number)
            row = judge.run(Cell(harness, "cpu", self.lowering, self.mode))
            if number == 0 and (row.get("phase") == "trace" or row["outcome"] == INAPPLICABLE):
                raise CellError(f"{self.harness.name}: JAX itself refuses it: {row['message']}")
            return _fault(row)

        return fault

    def shrink(self, answers: Path | None = None, **options: Any) -> Shrunk:
        """The smallest program; options as `searching.shrink` has them.

        Args:
          answers: the file of `guarded.asking`, if the process is watched.
          **options: those of `searching.shrink`.

        Raises:
          CellError: the program goes right.
        """
        with jax.enable_x64(self.harness.x64):
            try:
                args, judge = self.harness.make_args(), self.judge()
                judge = judge if answers is None else guarded.asking(judge, answers)
                if self.mode == POLY:
                    options["is_kept"] = _open_sizes().is_open
                return searching.shrink(self.harness.fun, args, judge, **options)
            except searching.NothingWrong as error:
                raise CellError(f"{self.harness.name}: {error}") from error
            except searching.Refused as error:
                raise CellError(f"{self.harness.name}: JAX itself refuses it: {error}") from error

    def text(self, found: Shrunk) -> str:
        """The program as Python that prints how it differs.

        Raises:
          NoText: an equation has a param that has no text.
        """
        return text.text(found.program, self._ending(), x64=self.harness.x64)

    def _ending(self) -> list[str]:
        if self.mode not in PLAIN or is_converter(self.impl):
            given = ", ".join(map(repr, (self.impl, self.lowering, self.mode)))
            return [
                "",
                "from harnesses.engine.shrinking import cells",
                f"cells.show(f, args, {given}, x64={self.harness.x64})",
            ]
        options = ", ".join(f"{k}={v}" for k, v in LOWERINGS[self.lowering].items())
        module, call = self.impl, f"{self.impl}.convert(f, {options})"
        compiled = ", jit_compile=True" if self.mode == "compiled" else ""
        if self.mode != "eager":
            call = f"tf.function({call}, autograph=False{compiled})"
        return [
            "",
            f"import {module}",
            "import tensorflow as tf",
            "for right, other in zip(jax.jit(f)(*args), "
            f"{call}(*map(tf.constant, args)), strict=True):",
            '    print("JAX:", np.asarray(right))',
            f'    print("{module}, {self.mode}:", other.numpy())',
        ]


def like(
    harness: Harness, fun: Callable[..., Any], args: Sequence[np.ndarray], number: int
) -> Harness:
    """A harness of another program; one with a check of its own is compared as the others are."""
    return dataclasses.replace(
        harness,
        fun=fun,
        args=tuple(map(_given, args)),
        # The judge keeps what JAX gives for a name.
        name=f"{harness.name} {number}",
        check=None,
        ulps=1000 if harness.check is not None else harness.ulps,
        scale="array" if harness.check is not None else harness.scale,
    )


def of_cell(cell: str, impl: str) -> Asked:
    """A cell of the matrix by its name.

    Raises:
      CellError: no harness, lowering or mode has the name that stands in the cell's.
    """
    name, _, lowering, mode = (*cell.rsplit("-", 3), "", "", "")[:4]
    direct = (lowering, mode) == (DIRECT, DIRECT)
    if not direct and (lowering not in LOWERINGS or mode not in MODES):
        raise CellError(
            f"{cell}: shrink takes the lowerings {', '.join(LOWERINGS)} and the modes "
            f"{', '.join(MODES)}"
        )
    for harness in all_harnesses():
        if harness.name == name and mode == POLY:
            return Asked(_of_examples(harness), impl, lowering, mode)
        if harness.name == name:
            return Asked(harness, impl, lowering, mode)
    raise CellError(f"there is no harness {name!r}; python -m harnesses list names them")


def _of_examples(harness: Harness) -> Harness:
    """The vmap of a harness, with examples along an open dimension.

    Raises:
      CellError: another dimension has the size that stands for the open one.
    """
    examples = [harness.make_args(example) for example in range(OPEN)]
    sizes = {n for x in jax.tree.leaves(examples[0]) for n in np.shape(x)}
    if any(n and n % OPEN == 0 for n in sizes):
        raise CellError(
            f"{harness.name}: a dimension of {max(sizes)} cannot be told from the open one, for "
            f"which {OPEN} stands. What to do: a function with other sizes, and --mode {POLY}"
        )
    stacked = jax.tree.map(lambda *leaves: _given(np.stack(leaves)), *examples)
    return dataclasses.replace(harness, fun=jax.vmap(harness.fun), args=stacked, check=None)


def of_function(
    fun: Callable[..., Any],
    args: Sequence[Any],
    *,
    name: str = "function",
    impl: str = DEFAULT_IMPLEMENTATION,
    lowering: str = "no_xla",
    mode: str = "graph",
    ulps: int = 1000,
    x64: bool = False,
) -> Asked:
    """A function with arguments.

    Args:
      fun: a function of JAX.
      args: its arguments, pytrees of arrays.
      name: what messages call it.
      impl: the implementation or converter.
      lowering: how it converts; engines take "no_xla".
      mode: how it is run: eager, graph, compiled, an engine, its gradients (gradient_graph), or in
        a graph with an open dimension (poly), which are the dimensions of size 17.
      ulps: how far a result of floating-point numbers may be off, at the size of its largest
        element.
      x64: whether JAX has types of 64 bits.

    Raises:
      CellError: there is no such mode or lowering.
    """
    if is_converter(impl):
        lowering = mode = DIRECT
    elif mode not in MODES or lowering not in LOWERINGS:
        raise CellError(
            f"shrink takes the lowerings {', '.join(LOWERINGS)} and the modes {', '.join(MODES)}; "
            f"got {lowering!r} and {mode!r}"
        )
    harness = Harness(
        family="functions",
        primitive=name,
        name=name,
        fun=fun,
        args=jax.tree.map(_given, tuple(args)),
        dtype=np.dtype(np.float32),
        params={},
        ulps=ulps,
        scale="array",
        x64=x64,
        tags=frozenset(),
        check=None,
        where="",
    )
    return Asked(harness, impl, lowering, mode)


def show(
    fun: Callable[..., Any],
    args: Sequence[np.ndarray],
    impl: str,
    lowering: str,
    mode: str,
    *,
    x64: bool = False,
) -> None:
    """Prints how a function differs from JAX, for a program that `text` wrote."""
    asked = of_function(fun, args, impl=impl, lowering=lowering, mode=mode, ulps=0, x64=x64)
    devices.prepare(("cpu",))
    row = _judge(impl, mode).run(Cell(asked.harness, "cpu", asked.lowering, asked.mode))
    words = (row.get("exception"), row.get("message"))
    print(f"{impl}, {mode}: {': '.join(str(w) for w in (row['outcome'], *words) if w)}")


def _given(value: Any) -> _Given:
    array = np.asarray(value)
    return _Given(array.shape, array.dtype, array)


def _judge(impl: str, mode: str) -> Judge:
    if is_converter(impl):
        module = importlib.import_module("harnesses.engine.converters.judge")
        return module.ConverterJudge(converter(impl))
    kind = _open_sizes().OpenJudge if mode == POLY else KNOWN_MODES[CONVERT, mode].judge_class()
    judge: Judge = kind(impl)
    return judge


def _open_sizes() -> Any:
    # It imports TensorFlow.
    return importlib.import_module("harnesses.engine.shrinking.open_sizes")


# Words with digits, paths and what stands in brackets change with sizes and dtypes.
_CHANGES: Mapping[re.Pattern[str], str] = {
    re.compile(r"\([^()]*\)|\[[^\[\]]*\]"): "",
    re.compile(r"\S*[\d/]\S*"): "#",
    re.compile(r"\s+"): " ",
    re.compile(r"(# )+"): "# ",
}
_WORDS = 20


def _fault(row: Row) -> Hashable | None:
    """The kind of a fault: None for a program that is right, or that JAX itself refuses."""
    outcome = row["outcome"]
    if outcome == "mismatch":
        return "mismatch"
    if outcome != "error" or row.get("phase") == "trace":
        return None
    words = str(row.get("message", "")).partition("\n")[0]
    for pattern, other in _CHANGES.items():
        words = pattern.sub(other, words)
    return row.get("phase"), row.get("exception"), " ".join(words.split()[:_WORDS])
