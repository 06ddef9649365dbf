"""What users do with a converted program, each held against what JAX gives."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import jax
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

import jax2tf
from harnesses.engine.graphs import nodes
from tests.impl.fuzzing.combinations import Program, programs
from tests.impl.fuzzing.law import Called, inexact
from tests.running import MODES, assert_near

# Relative to the largest element of what is compared, and to 1.
ULPS = 128
SAVED = tf.saved_model.SaveOptions(experimental_custom_gradients=True)


@dataclasses.dataclass(frozen=True)
class How:
    """How TensorFlow runs a converted program.

    Attributes:
      mode: one of MODES.
      enable_xla: which op set.
      native: whether it is StableHLO instead of ops.
      jitted: whether what is converted is jitted.
      x64: whether JAX has 64-bit types.
    """

    mode: str
    enable_xla: bool = True
    native: bool = False
    jitted: bool = False
    x64: bool = False

    @property
    def conversion(self) -> How:
        """The same for what differs in the mode alone, which may share what was converted."""
        return dataclasses.replace(self, mode="eager")

    def converted(self, program: Program, **options: Any) -> Callable[..., Any]:
        """What convert makes of the program."""
        fun = program.jitted if self.jitted else program.function
        if self.native:
            return jax2tf.convert(fun, native_serialization=True, **options)
        return jax2tf.convert(fun, enable_xla=self.enable_xla, **options)

    def run(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """The function as the mode runs it."""
        return MODES[self.mode](fun)


class Tensors:
    """A called program as TensorFlow sees it: a function of one tensor for each array passed."""

    def __init__(self, called: Called, how: How, converted: Callable[..., Any] | None = None):
        self.called, self.how, self.program = called, how, called.program
        self.fun = converted or called.cached(how.conversion, lambda: how.converted(self.program))
        # No tensor stands for a typed key.
        kinds = [leaf.kind for leaf in self.program.leaves]
        self.passed = [i for i in self.program.passed if kinds[i] != "key"]
        self.values = [tf.constant(called.values[i]) for i in self.passed]
        self.given = [self.passed.index(i) for i in called.given]

    def __call__(self, *tensors: tf.Tensor) -> Any:
        values = list(self.called.values)
        for i, tensor in zip(self.passed, tensors, strict=True):
            values[i] = tensor
        return self.program.call(self.fun, values)

    def inexact(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        return inexact_tensors(self(*tensors))

    def signature(self) -> list[tf.TensorSpec]:
        return [tf.TensorSpec(v.shape, v.dtype) for v in self.values]

    def of(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Those of the tensors that have gradients."""
        return [tensors[i] for i in self.given]


def inexact_tensors(results: Any) -> list[tf.Tensor]:
    leaves = jax.tree.leaves(results)
    return [y for y in leaves if y.dtype.is_floating or y.dtype.is_complex]


def near(actual: Any, expected: Any) -> None:
    """Dtypes, shapes and values are those of JAX."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert_near(jax.tree.map(_as_array, actual), expected, ULPS, least=1)


def _as_array(value: Any) -> np.ndarray:
    # NumPy takes no scalar tensor of bfloat16.
    return np.asarray(value.numpy() if tf.is_tensor(value) else value)


def gradients(
    fun: Callable[..., Any],
    given: Callable[..., list[tf.Tensor]],
    cotangents: Sequence[np.ndarray],
    each: bool = False,
) -> Callable[..., Any]:
    """The function's gradients by a tape, of all results together or of each alone."""

    def of_tape(*tensors: tf.Tensor) -> Any:
        with tf.GradientTape(persistent=each) as tape:
            tape.watch(given(tensors))
            results = inexact_tensors(fun(*tensors))
        # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
        wanted = [tf.constant(np.conj(ct)) for ct in cotangents]

        def of(results: Any, wanted: Any) -> list[tf.Tensor]:
            return tape.gradient(results, given(tensors), wanted, tf.UnconnectedGradients.ZERO)

        if each:
            return [of(*pair) for pair in zip(results, wanted, strict=True)]
        return of(results, wanted)

    return of_tape


def _conj(values: Sequence[Any]) -> list[np.ndarray]:
    return [np.conj(v) for v in values]


def call(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    near(how.run(tensors)(*tensors.values), called.results)


def call_again(called: Called, how: How) -> None:
    """Calls it, and calls it again with other sizes and other static arguments."""
    first, others = Tensors(called, how), []
    with_rows = {i for i, leaf in enumerate(called.program.leaves) if leaf.has_rows}
    # What is captured has as many rows as before, and is computed with the others.
    if with_rows and with_rows <= set(called.program.passed):
        others.append(Called(called.program, rows=1))
    if called.program.statics:
        others.append(Called(called.program.with_other_statics()))
    near(how.run(first)(*first.values), called.results)
    for each in others:
        tensors = Tensors(each, how, first.fun)
        near(how.run(tensors)(*tensors.values), each.results)
    near(first(*first.values), called.results)


def call_often(called: Called, how: How) -> None:
    """The tenth call gives the same: what is kept between eager calls stands for what it did."""
    tensors = Tensors(called, how)
    for _ in range(10):
        near(how.run(tensors)(*tensors.values), called.results)


def tape_inside(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    of_tape = how.run(gradients(tensors, tensors.of, called.cotangents))
    near(of_tape(*tensors.values), _conj(called.gradients))


def tape_outside(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    of_tape = gradients(how.run(tensors), tensors.of, called.cotangents)
    near(of_tape(*tensors.values), _conj(called.gradients))


def tape_across(called: Called, how: How) -> None:
    """A tape in a graph around a function of another graph."""
    tensors = Tensors(called, how)
    of_tape = how.run(gradients(how.run(tensors), tensors.of, called.cotangents))
    near(of_tape(*tensors.values), _conj(called.gradients))


def in_a_branch(called: Called, how: How) -> None:
    """In a branch of a tf.cond, which sees its arguments from the graph around it."""
    tensors = Tensors(called, how)

    def branched(*values: tf.Tensor) -> Any:
        zeros = [tf.zeros(y.shape, y.dtype) for y in called.inexact]
        any_size = tf.size(values[0]) >= 0
        return tf.cond(any_size, lambda: tensors.inexact(*values), lambda: zeros)

    of_tape = how.run(gradients(branched, tensors.of, called.cotangents))
    near(of_tape(*tensors.values), _conj(called.gradients))
    of_tape = gradients(how.run(branched), tensors.of, called.cotangents)
    near(of_tape(*tensors.values), _conj(called.gradients))


def persistent_tape(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    of_tape = gradients(how.run(tensors), tensors.of, called.cotangents, each=True)
    near(of_tape(*tensors.values), [_conj(of_one) for of_one in called.each_gradient])


def jacobian(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    real = [i for i, y in enumerate(called.inexact) if not np.iscomplexobj(y)]
    if not real or any(np.iscomplexobj(v) for v in called.given_values):
        return
    # Of an op that it has no rule for, TensorFlow's pfor takes the first of no steps.
    if (how.native or how.mode == "compiled") and not called.inexact[real[-1]].size:
        return

    def of_tape(*values: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(tensors.of(values))
            y = tensors.inexact(*values)[real[-1]]
        return tape.jacobian(
            y, tensors.of(values), unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

    run = how.run(of_tape)
    if how.mode == "compiled" and _has_lists_of_lists(run.get_concrete_function(*tensors.values)):
        return
    near(run(*tensors.values), called.jacobian(real[-1]))


def _has_lists_of_lists(traced: Any) -> bool:
    """Whether pfor made lists of TensorFlow's loop into a list of them, which XLA has not."""
    return any(
        node.op == "TensorListReserve"
        and node.attr["element_dtype"].type == tf.variant.as_datatype_enum
        for node in nodes(traced.graph)
    )


def forward_accumulator(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    if any(np.iscomplexobj(v) for v in (*called.given_values, *called.inexact)):
        return

    def pushed(*values: tf.Tensor) -> Any:
        given = tensors.of(values)
        with tf.autodiff.ForwardAccumulator(given, given) as accumulator:
            results = tensors.inexact(*values)
        return accumulator.jvp(results, tf.UnconnectedGradients.ZERO)

    near(how.run(pushed)(*tensors.values), called.pushed_forward)


def _norm_of_gradients(tensors: Tensors, fun: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of the squared norm of the gradients, by two tapes."""
    first = gradients(fun, tensors.of, tensors.called.cotangents)

    def second(*values: tf.Tensor) -> Any:
        given = tensors.of(values)
        with tf.GradientTape() as tape:
            tape.watch(given)
            squares = (tf.abs(g) ** 2 for g in first(*values))
            norm = tf.add_n([tf.cast(tf.reduce_sum(s), tf.float32) for s in squares])
        return tape.gradient(norm, given, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    return second


def second_order(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    second = _norm_of_gradients(tensors, tensors)
    near(how.run(second)(*tensors.values), _conj(called.second))


def second_order_outside(called: Called, how: How) -> None:
    tensors = Tensors(called, how)
    second = _norm_of_gradients(tensors, how.run(tensors))
    near(second(*tensors.values), _conj(called.second))


def saved(called: Called, how: How, order: int = 1) -> None:
    """A SavedModel gives the same, and so does its gradient."""
    tensors = Tensors(called, how, how.converted(called.program, saved_gradient_order=order))
    module = tf.Module()
    module.f = tf.function(
        lambda *values: {"results": jax.tree.leaves(tensors(*values))},
        input_signature=tensors.signature(),
        autograph=False,
        jit_compile=how.mode == "compiled",
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, options=SAVED)
        restored = tf.saved_model.load(folder)
        fun = lambda *values: restored.f(*values)["results"]  # noqa: E731
        near(fun(*tensors.values), jax.tree.leaves(called.results))
        of_tape = gradients(fun, tensors.of, called.cotangents)
        near(of_tape(*tensors.values), _conj(called.gradients))
        if order > 1:
            near(_norm_of_gradients(tensors, fun)(*tensors.values), _conj(called.second))


def saved_for_second(called: Called, how: How) -> None:
    saved(called, how, order=2)


def in_module(called: Called, how: How) -> None:
    """The first argument as variables of a Module, of which a tape has gradients."""
    program = called.program
    (params, *inputs), kwargs = jax.tree.map(
        lambda i: called.values[i], (program.args, program.kwargs)
    )
    kwargs = {**kwargs, **program.scalars, **program.statics}
    module = jax2tf.Module(program.function, params, enable_xla=how.enable_xla)
    wanted = [tf.constant(np.conj(ct)) for ct in called.cotangents]

    def run() -> Any:
        with tf.GradientTape() as tape:
            results = module(*inputs, **kwargs)
        variables, zero = list(module.trainable_variables), tf.UnconnectedGradients.ZERO
        return results, tape.gradient(inexact_tensors(results), variables, wanted, zero)

    results, of_variables = how.run(run)()
    near(results, called.results)
    leaves, tree = jax.tree.flatten(params)
    trained = [i for i, leaf in enumerate(leaves) if inexact([leaf])]

    def of_trained(values: Sequence[Any]) -> list[jax.Array]:
        replaced = dict(zip(trained, values, strict=True))
        params = tree.unflatten([replaced.get(i, leaf) for i, leaf in enumerate(leaves)])
        return inexact(program.function(params, *inputs, **kwargs))

    vjp = jax.jit(lambda values, cotangents: jax.vjp(of_trained, values)[1](cotangents)[0])
    expected = vjp([leaves[i] for i in trained], called.cotangents)
    near(of_variables, _conj(expected))


def call_tf_round_trip(called: Called, how: How) -> None:
    """JAX calls what was converted, as it calls anything of TensorFlow's, and differentiates it."""
    tensors = Tensors(called, how)
    back = jax2tf.call_tf(tensors)
    # numpy takes no scalar bfloat16 tensor as it is.
    values = [np.asarray(v.numpy()) for v in tensors.values]
    stage = (lambda f: f) if how.mode == "eager" else jax.jit
    if not called.given:
        near(stage(back)(*values), called.results)
        return

    def run(values: Sequence[Any]) -> Any:
        def of_given(*given: Any) -> Any:
            replaced = dict(zip(tensors.given, given, strict=True))
            results = back(*(replaced.get(i, value) for i, value in enumerate(values)))
            return inexact(results), results

        given = [values[i] for i in tensors.given]
        _, pullback, results = jax.vjp(of_given, *given, has_aux=True)
        return results, list(pullback(called.cotangents))

    near(stage(run)(values), (called.results, called.gradients))


def threads(called: Called, how: How) -> None:
    """Eight threads make the first call at once."""
    tensors = Tensors(called, how, how.converted(called.program))
    fun = how.run(tensors)
    of_tape = gradients(fun, tensors.of, called.cotangents)
    ready = threading.Barrier(8)

    def work(i: int) -> Any:
        with jax.enable_x64(how.x64):
            ready.wait()
            return of_tape(*tensors.values) if i % 2 and called.given else fun(*tensors.values)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(8)))
    for i, results in enumerate(done):
        differentiated = i % 2 and called.given
        near(results, _conj(called.gradients) if differentiated else called.results)


USES: dict[str, dict[str, Callable[[Called, How], None]]] = {
    "calls": {
        "call": call,
        "call again": call_again,
        "call often": call_often,
        "Module": in_module,
        "call_tf": call_tf_round_trip,
    },
    "first order": {
        "tape inside": tape_inside,
        "tape outside": tape_outside,
        "tape across": tape_across,
        "in a branch": in_a_branch,
        "persistent tape": persistent_tape,
        "jacobian": jacobian,
        "threads": threads,
        "saved": saved,
    },
    "second order": {
        "forward accumulator": forward_accumulator,
        "second order": second_order,
        "second order outside": second_order_outside,
        "saved for second order": saved_for_second,
    },
}
ORDERS = tuple(USES)
# These take seconds.
SLOW = {"saved", "saved for second order", "second order outside", "threads"}
# So many things are done with one program: JAX's results are compiled once for all of them.
TOGETHER = 4
# In eager mode these are what a tape inside is.
OUTSIDE = {"tape outside", "tape across", "in a branch", "second order outside"}


@dataclasses.dataclass(frozen=True, eq=False)
class Combination:
    """A program, how it is converted, and what is done with it, each in a mode."""

    program: Program
    how: How
    order: str
    uses: tuple[tuple[str, str], ...]

    @property
    def n_examples(self) -> int:
        """A program in one use is one example."""
        return len(self.uses)

    def check(self) -> None:
        """TensorFlow gives what JAX gives."""
        with jax.enable_x64(self.how.x64):
            called = Called(self.program, differentiated=self.order != "calls")
            differentiable = called.given and called.inexact
            for i, (name, mode) in enumerate(self.uses):
                name = name if differentiable else _WITHOUT_GRADIENT[i % len(_WITHOUT_GRADIENT)]
                try:
                    _FUNCTIONS[name](called, dataclasses.replace(self.how, mode=mode))
                except Exception as error:
                    if called.is_not_differentiable:
                        hypothesis.reject()
                    error.add_note(f"The use that failed: {name}, {mode}")
                    raise


_WITHOUT_GRADIENT = ("call", "call_tf", "call again")
_FUNCTIONS = {name: use for uses in USES.values() for name, use in uses.items()}


def _uses(order: str) -> list[str]:
    """The uses of this order and of those before."""
    return [u for o in ORDERS[: ORDERS.index(order) + 1] for u in USES[o]]


def _in_a_mode(uses: Sequence[str]) -> st.SearchStrategy[tuple[str, str]]:
    """One of the uses, in a mode; compiling costs most."""
    modes = ("graph", "graph", "eager", "eager", "compiled")

    def named(drawn: tuple[str, str]) -> tuple[str, str]:
        name, mode = drawn
        if name == "call often":
            return name, "eager"
        return name, "graph" if mode == "eager" and name in OUTSIDE else mode

    return st.tuples(st.sampled_from(uses), st.sampled_from(modes)).map(named)


@st.composite
def combinations(draw: Any, order: str, use: str = "", **of_program: Any) -> Combination:
    """A combination with uses up to an order of derivatives, or with this one use."""
    native = draw(st.integers(0, 11)) == 11
    how = How(
        mode="eager",
        enable_xla=native or draw(st.booleans()),
        native=native,
        jitted=draw(st.integers(0, 5)) == 5,
        x64=draw(st.integers(0, 3)) == 3,
    )
    slow = sorted(SLOW & set(USES[order]))
    first = slow if slow and draw(st.integers(0, 7)) == 7 else sorted(set(USES[order]) - SLOW)
    fast = [u for u in _uses(order) if u not in SLOW]
    own = draw(_in_a_mode([use] if use else first))
    rest = draw(st.lists(_in_a_mode(fast), min_size=TOGETHER, max_size=TOGETHER, unique=True))
    with jax.enable_x64(how.x64):
        # JAX differentiates the gradients of some programs in reverse mode alone, or not at all.
        program = draw(programs(reverse=order != "second order", **of_program))
    uses = (own, *(u for u in rest if u != own))
    return Combination(program, how, order, uses[:1] if use else uses[:TOGETHER])
