"""Runs one cell and says what came of it.

JAX's own result is the law: `jax.jit` of the harness's function, on the cell's device, with the
harness's setting of x64. An outcome is one of

    pass       same tree, dtypes, shapes, and values within the tolerance
    mismatch   a result, and a wrong one
    error      an exception; its phase is "trace" if JAX itself cannot run the harness, "lower" if
               the implementation raised while it built TensorFlow ops, "run" if the ops raised

and, seen only from outside the process, crash and timeout; also "inapplicable", for a harness whose
result JAX itself does not define on the device, and in the modes of `harnesses.engine.transformed`.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from harnesses.cell.cells import Cell
from harnesses.cell.names import JAX_SIDE
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import Row
from harnesses.engine import interrupts, opinion
from harnesses.engine.adapter import Adapter
from harnesses.engine.compare import Comparison, compare
from harnesses.harness import CONVERT, Harness

_MESSAGE_LENGTH = 1000

# What TensorFlow wraps around the message of an op: where it was built, and names with counters.
_AROUND_OPS = re.compile(
    r"Graph execution error:\s*"
    r"|Detected at node .* defined at \(most recent call last\):\n(?:  File .*\n|\n|<stack .*\n)*"
    r"|\s*\[\[\{\{node .*?\}\}\]\]"
    r"|\s*\[Op:\w+\]"
    r"|\s*The op is created at:\s*\n(?:File .*(?:\n|$))*"
)
_FUNCTION = re.compile(r"__inference_(\S+?)_\d+(?:\[[^\]]*\])?")


class Judge:
    """Runs cells against one implementation; against none of them for JAX's own side."""

    def __init__(self, impl: str | None):
        if impl is not None:
            # TensorFlow is imported here and not above: JAX's own side runs without it.
            from harnesses.engine import graphs, modes

            self._tensorflow = modes
            self._graphs = graphs
            self._adapter = Adapter(impl)
        self._last: tuple[Any, Any] = (None, None)
        self._exact: tuple[Callable[..., Any], tuple, opinion.Exact | None] | None = None
        self._nodes: int | None = None

    def run(self, cell: Cell) -> Row:
        """What was observed: the columns of `rows.COLUMNS` from outcome to seconds."""
        start = time.perf_counter()
        self._nodes = None
        observed = self._observe(cell)
        seconds = round(time.perf_counter() - start, 4)
        return {**observed, "nodes": self._nodes, "seconds": seconds}

    def _observe(self, cell: Cell) -> Row:
        if cell.device == "gpu" and "ordered" in cell.harness.tags:
            return {
                "outcome": INAPPLICABLE,
                "message": "a GPU combines numbers in no defined order",
            }
        args, expected = self._reference(cell)
        if isinstance(expected, Inapplicable):
            return {"outcome": INAPPLICABLE, "message": _shortened(str(expected))}
        if isinstance(expected, Exception):
            return _error("trace", expected, str(expected))
        if cell.mode == JAX_SIDE:
            return {"outcome": "pass", "ulps": 0.0, "tolerance": 0}
        try:
            actual = self._run(cell, args)
        except _PhaseError as failure:
            return _error(failure.phase, failure.error, self._message_of(failure.error))
        comparison = self._compare(cell, args, expected, actual)
        return {
            "outcome": "pass" if comparison.problem is None else "mismatch",
            "message": comparison.problem,
            "ulps": comparison.ulps,
            "tolerance": comparison.tolerance,
        } | self._opinion(cell, args, expected, actual, comparison)

    def _opinion(
        self, cell: Cell, args: tuple, expected: Any, actual: Any, comparison: Comparison
    ) -> Row:
        """Who is wrong where the two differ by more than rounding; empty if nobody can tell."""
        if comparison.ulps is None or comparison.ulps <= opinion.DISPUTED:
            return {}
        asked = self._question(cell, args)
        if asked is None or cell.harness.check is not None:
            return {}
        with jax.enable_x64(cell.harness.x64):
            found = self._exact_result(*asked)
        third = opinion.third_opinion(found, asked[1], expected, actual, cell.harness.scale)
        return {} if third is None else third._asdict()

    def _exact_result(self, fun: Callable[..., Any], args: tuple) -> opinion.Exact | None:
        """As `opinion.exact_result`; kept for the next cells that ask about the same arguments."""
        if self._exact is None or self._exact[0] is not fun or self._exact[1] is not args:
            self._exact = (fun, args, opinion.exact_result(fun, args))
        return self._exact[2]

    def _question(self, cell: Cell, args: tuple) -> tuple[Callable[..., Any], tuple] | None:
        """The function of JAX whose results are compared, and its arguments; None without one."""
        return (cell.harness.fun, args) if cell.harness.direction == CONVERT else None

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        """The arguments and JAX's result, or the exception that JAX raised.

        Kept for the next cells of the same harness: compiling for JAX costs more than running.
        """
        key = (cell.harness.name, cell.device)
        if self._last[0] != key:
            device = jax.default_device(jax.devices(cell.device)[0])
            with jax.enable_x64(cell.harness.x64), device:
                self._last = (key, self._arguments_and_expected(cell.harness))
        return self._last[1]

    def _arguments_and_expected(self, harness: Harness) -> tuple[tuple, Any]:
        """As `_reference`, computed on the device and with the x64 that are set."""
        args = harness.make_args()
        try:
            return args, result_of_jax(harness.fun, args)
        except Exception as error:
            return args, error

    def _message_of(self, error: BaseException) -> str:
        """What an exception says, without what changes from run to run."""
        return str(error)

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        return compare(cell.harness, args, expected, actual)

    @contextlib.contextmanager
    def _settings(self, cell: Cell) -> Iterator[None]:
        """What a cell runs under: its setting of x64 and its device, in JAX and in TensorFlow."""
        with (
            jax.enable_x64(cell.harness.x64),
            jax.default_device(jax.devices(cell.device)[0]),
            self._tensorflow.device(cell.device),
        ):
            yield

    def _run(self, cell: Cell, args: tuple) -> Any:
        harness = cell.harness
        with self._settings(cell):
            with phase("lower"):
                tensors = jax.tree.map(self._tensorflow.constant, args)
                # With gradients, as users convert; it also compiles faster than the refusal does.
                converted = self._adapter.convert(harness.fun, cell.lowering, with_gradient=True)
            return self._executed(cell, cell.mode, converted, tensors)

    def _executed(
        self, cell: Cell, mode: str, function: Callable[..., Any], tensors: Sequence[Any]
    ) -> Any:
        """The arrays that a function of tensors gives in a mode: eager, graph or compiled."""
        with phase("lower"):
            callable_ = self._tensorflow.MODES[mode](function, tuple(tensors))
            self._inspect(cell, self._tensorflow.graph_of(callable_, tuple(tensors)))
        try:
            return jax.tree.map(self._tensorflow.to_numpy, callable_(*tensors))
        except interrupts.RAISED as error:
            if interrupts.is_of_the_user(error):
                raise
            in_ops = mode != "eager" or self._tensorflow.is_op_error(error)
            raise _PhaseError("run" if in_ops else "lower", error) from error

    def _inspect(self, cell: Cell, graph: Any) -> None:
        """Takes note of the size of a cell's graph; raises XlaOpError as `graphs.budget` does."""
        if graph is not None:
            self._nodes = self._graphs.budget(cell, graph)


def result_of_jax(fun: Callable[..., Any], args: tuple) -> Any:
    """What jax.jit gives, as NumPy arrays; nothing that was compiled is kept."""
    jitted: Any = jax.jit(fun)
    result = jax.tree.map(np.asarray, jitted(*args))
    jitted.clear_cache()  # thousands follow, and none is called again
    return result


class Inapplicable(Exception):
    """JAX itself does not transform the harness as the mode asks; the message says why."""


class _PhaseError(Exception):
    """An exception of the implementation or of TensorFlow, with the phase that it belongs to."""

    def __init__(self, phase: str, error: BaseException):
        super().__init__(phase, error)
        self.phase = phase
        self.error = error


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Exceptions inside belong to the phase, those too that would end the process."""
    try:
        yield
    except interrupts.RAISED as error:
        if interrupts.is_of_the_user(error):
            raise
        raise _PhaseError(name, error) from error


def _error(phase: str, error: BaseException, words: str) -> Row:
    return {
        "outcome": "error",
        "phase": phase,
        "exception": type(error).__name__,
        "message": _shortened(words),
    }


def _shortened(words: str) -> str:
    return _FUNCTION.sub(r"\1", _AROUND_OPS.sub("", words)).strip()[:_MESSAGE_LENGTH]
