"""Tests under jax.jit: on JAX, the regime of a library's test that a graph is on TensorFlow.

A test computes and asserts in turn, and what it asserts about are values. So jax.jit traces the
test up to the first value that it asks for (`self.evaluate`, or an assertion about a tensor), and
the compiled program gives that value. The test is then traced again from its start, with the value,
up to the next one, until it ends. Tensors of floats are traced, also those that are known.

A test that cannot be traced is skipped and says why: it reads values by NumPy or Python, it needs
state, or it expects an error that values decide, which a compiled program does not raise.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable
from typing import Any

from tf_substrates.numpy import debugging, known_values, nest
from tf_substrates.numpy.errors import StatefulError, UnknownValueError
from tf_substrates.numpy.tensors import traced

JAX_MODE = False
if JAX_MODE:
    import jax

    _REFUSALS: tuple[type[Exception], ...] = (
        jax.errors.JAXTypeError,
        jax.errors.JAXIndexError,
        StatefulError,
        UnknownValueError,
    )


class _Asked(BaseException):
    """Ends a trace where the test asks for values; no `except Exception` of a test stops it."""

    def __init__(self, tensors: list):
        super().__init__("a test under jax.jit has asked for values")
        self.tensors = tensors


class _Run:
    """One run of a test.

    Attributes:
      values: those that the test has asked for, in their order.
      next: which one it asks for next.
      ended: whether the test has been traced to its end.
    """

    def __init__(self, test: Callable[[], object]):
        self.test = test
        self.values: list[list] = []
        self.next = 0
        self.ended = False

    def trace(self) -> list:
        """The tensors that the test asks for next."""
        self.next = 0
        outer, _CURRENT.run = _CURRENT.run, self
        try:
            with known_values.floats_traced():
                self.test()
        except _Asked as asked:
            return asked.tensors
        finally:
            _CURRENT.run = outer
        self.ended = True
        return []

    def asked(self, tensors: list) -> list:
        """Their values."""
        if self.next == len(self.values):
            raise _Asked(tensors)
        self.next += 1
        return self.values[self.next - 1]


class _Current:
    """The test that is traced."""

    run: _Run | None = None


_CURRENT = _Current()


def values_of(structure: Any) -> Any:
    """The structure, with values in the place of traced tensors where a test is traced."""
    if _CURRENT.run is None:
        return structure
    leaves = nest.flatten(structure, expand_composites=True)
    unknown = [i for i, leaf in enumerate(leaves) if traced(leaf)]
    if not unknown:
        return structure
    values = _CURRENT.run.asked([leaves[i] for i in unknown])
    for i, value in zip(unknown, values, strict=True):
        leaves[i] = value
    return nest.pack_sequence_as(structure, leaves, expand_composites=True)


def compiled(method: Callable) -> Callable:
    """The method of a test case, under jax.jit.

    Raises:
      unittest.SkipTest: it cannot be traced.
    """

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        run = _Run(functools.partial(method, self, *args, **kwargs))
        before = debugging.DROPPED.count
        try:
            while not run.ended:
                # A function of its own each time, which jax.jit has not traced yet.
                values = jax.jit(lambda: run.trace())()
                run.values.append([jax.device_get(value) for value in values])
        except Exception as error:
            reason = _reason(error, debugging.DROPPED.count > before)
            if reason is None:
                raise
            raise unittest.SkipTest(f"cannot be traced by jax.jit: {reason}") from error

    return call


def _reason(error: BaseException, dropped: bool) -> str | None:
    """Why a test cannot be traced, or None if that is not what is wrong.

    Args:
      dropped: whether tf.debugging has dropped assertions about traced values.
    """
    expects_error = isinstance(error, AssertionError) and (
        "not raised" in str(error) or "No exception raised" in str(error)
    )
    if expects_error and dropped:
        return "it expects an error that values decide, which a compiled program does not raise"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _REFUSALS):
            return f"{type(cause).__name__}: {str(cause).splitlines()[0]}"
        cause = cause.__cause__ or cause.__context__
    return None


def run_in_graph_and_eager_modes(
    func: Callable | None = None,
    config: Any = None,
    use_gpu: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Callable:
    """A test that runs eagerly and, on JAX, as a subtest under jax.jit."""
    if func is None:
        return run_in_graph_and_eager_modes
    if not JAX_MODE:
        return func

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        func(self, *args, **kwargs)
        self.tearDown()
        self.setUp()
        with self.subTest("under jax.jit"):
            compiled(func)(self, *args, **kwargs)

    return call


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """The class, of which each test of its own runs eagerly and under jax.jit."""
    for name, method in list(vars(cls).items()):
        if name.startswith("test") and inspect.isfunction(method):
            setattr(cls, name, run_in_graph_and_eager_modes(method))
    return cls


def in_test_combinations(module: dict[str, Any]) -> None:
    """Lets `mode="graph"` of TensorFlow Probability's test_combinations be under jax.jit."""
    if not JAX_MODE:
        return
    own = module["_augment_with_special_arguments"]

    def augmented(test_method: Callable, test_combinations: Any) -> Callable:
        eager = own(test_method, test_combinations)
        whole = compiled(eager)

        @functools.wraps(eager)
        def call(self: Any, **kwargs: Any) -> None:
            (whole if kwargs.get("mode") == "graph" else eager)(self, **kwargs)

        return call

    module["_augment_with_special_arguments"] = augmented


def in_test_util(module: dict[str, Any]) -> None:
    """Lets the assertions of TensorFlow Probability's TestCase ask for values."""
    if not JAX_MODE:
        return
    case = module["TestCase"]
    for name in ("evaluate", "_GetNdArray"):
        setattr(case, name, _of_values(getattr(case, name)))


def _of_values(method: Callable) -> Callable:
    @functools.wraps(method)
    def call(self: Any, structure: Any) -> Any:
        return method(self, values_of(structure))

    return call
