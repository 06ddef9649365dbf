"""Control flow, functions with gradients of their own, tf.nest, tf.debugging and dtypes."""

from collections.abc import Callable
from typing import Any

from harnesses.substrates import family
from harnesses.substrates.asking import (
    FLOAT64,
    NO_DERIVATIVES,
    SHAPE,
    Program,
    ask,
    ask_raises,
    between,
    indices,
    normal,
)

ONE = normal(SHAPE)
_NUMBERS = ("float32", "float64", "int32")


@family.builder
def loops_and_branches() -> None:
    """Loops, and branches that a condition or an index chooses."""
    ask("while_loop", ONE, lambda tf, x: tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * x + 1), (0, x)),
        dtypes=_NUMBERS)  # fmt: skip
    ask("while_loop", ONE, lambda tf, x: tf.while_loop(
        lambda i, y: i < 9, lambda i, y: (i + 1, tf.sin(y)), (0, x), maximum_iterations=2),
        case="limit", dtypes=FLOAT64)  # fmt: skip
    ask("cond", ONE, lambda tf, x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1),
        dtypes=_NUMBERS)  # fmt: skip
    ask("case", ONE, lambda tf, x: tf.case(
        [(x[0, 0] > 100, lambda: x), (x[0, 0] < 100, lambda: x * 3)], default=lambda: x - 1),
        dtypes=_NUMBERS)  # fmt: skip
    ask("switch_case", lambda d: [*ONE(d), indices(1)], lambda tf, x, i: tf.switch_case(
        i, [lambda: x, lambda: x * x, lambda: x - 1]), dtypes=_NUMBERS)  # fmt: skip


@family.builder
def loops_over_rows() -> None:
    """Scans, folds and maps over the rows of a tensor, and arrays of tensors."""
    ask("scan", ONE, lambda tf, x: tf.scan(lambda a, b: a * b + 1, x), dtypes=_NUMBERS)
    ask("scan", ONE, lambda tf, x: tf.scan(lambda a, b: a * b, x, initializer=x[0], reverse=True),
        case="reverse", dtypes=FLOAT64)  # fmt: skip
    ask("foldl", ONE, lambda tf, x: tf.foldl(lambda a, b: a * 2 + b, x), dtypes=_NUMBERS)
    ask("foldr", ONE, lambda tf, x: tf.foldr(lambda a, b: a * 2 + b, x), dtypes=_NUMBERS)
    ask("map_fn", ONE, lambda tf, x: tf.map_fn(lambda row: row * row, x), dtypes=_NUMBERS)
    ask("vectorized_map", ONE,
        lambda tf, x: tf.vectorized_map(lambda row: row * tf.reduce_sum(row), x),
        dtypes=_NUMBERS, tags=("not_jvp",))  # fmt: skip
    ask("TensorArray", ONE, lambda tf, x: tf.TensorArray(x.dtype, 3).unstack(x).write(
        1, x[0] * 2).stack(), dtypes=_NUMBERS)  # fmt: skip


@family.builder
def functions_and_groups() -> None:
    """Traced functions, recomputed gradients, and groups of operations."""
    ask("function", ONE, lambda tf, x: tf.function(lambda y: tf.sin(y) * y)(x), dtypes=FLOAT64)
    ask("recompute_grad", ONE, lambda tf, x: tf.recompute_grad(lambda y: tf.sin(y) * y)(x),
        dtypes=FLOAT64, tags=("not_jvp",))  # fmt: skip
    ask("group", ONE, lambda tf, x: [x, tf.group(x)][:1], dtypes=FLOAT64)
    ask("no_op", ONE, lambda tf, x: [x, tf.no_op()][:1])


def _with_gradient(tf: Any, x: Any) -> Any:
    @tf.custom_gradient
    def clipped(y: Any) -> Any:
        return tf.exp(y), lambda upstream: upstream * 3

    return clipped(x)


def _of_tape(tf: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(x) * x)
    return tape.gradient(y, x)


@family.builder
def gradients_within_programs() -> None:
    """Gradients that a program defines or takes by itself."""
    ask("custom_gradient", between(-1, 1, SHAPE), _with_gradient, dtypes=FLOAT64, tags=("not_jvp",))
    ask("GradientTape", ONE, _of_tape, dtypes=FLOAT64)
    ask("autodiff.GradientTape", ONE, _of_tape, dtypes=FLOAT64, tags=NO_DERIVATIVES)


def _inside(scope: Callable[[Any], Any]) -> Program:
    """A program that runs inside of a scope of `tf`."""

    def program(tf: Any, x: Any) -> Any:
        with scope(tf):
            return x * 2

    return program


@family.builder
def scopes() -> None:
    """Scopes around a program, which change no value."""
    for op, scope in {
        "name_scope": lambda tf: tf.name_scope("a"),
        "control_dependencies": lambda tf: tf.control_dependencies([]),
        "init_scope": lambda tf: tf.init_scope(),
        "device": lambda tf: tf.device("/cpu:0"),
    }.items():
        ask(op, ONE, _inside(scope), tags=() if op != "init_scope" else (
            "not_jit", "not_grad", "not_jvp", "not_vmap", "not_round_trip"))  # fmt: skip


@family.builder
def nested_structures() -> None:
    """tf.nest's functions of nested structures."""
    ask("nest.flatten", ONE, lambda tf, x: tf.nest.flatten({"b": x, "a": [x * 2, (x * 3,)]}))
    ask("nest.map_structure", ONE, lambda tf, x: tf.nest.map_structure(
        lambda a, b: a - b, {"a": [x]}, {"a": [x * 2]}))  # fmt: skip
    ask("nest.pack_sequence_as", ONE, lambda tf, x: tf.nest.pack_sequence_as(
        {"b": 0, "a": (1, 2)}, [x, x * 2, x * 3]))  # fmt: skip
    ask("nest.is_nested", ONE, lambda tf, x: [
        tf.nest.is_nested(x), tf.nest.is_nested([x]), tf.nest.is_nested({}),
        tf.nest.is_nested("a")],
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("nest.assert_same_structure", ONE, lambda tf, x: [
        x, tf.nest.assert_same_structure([x, {"a": x}], [1, {"a": 2}])][:1])  # fmt: skip


@family.builder
def refused_structures_and_loops() -> None:
    """Structures that differ, loops and branches without functions, writes that do not fit."""
    for op, case, program in (
        ("nest.assert_same_structure", "length",
         lambda tf: tf.nest.assert_same_structure([1], [1, 2])),
        ("nest.assert_same_structure", "types",
         lambda tf: tf.nest.assert_same_structure([1], (1,))),
        ("nest.map_structure", "structures", lambda tf: tf.nest.map_structure(max, [1], [1, 2])),
        ("nest.map_structure", "no_function", lambda tf: tf.nest.map_structure(1, [1])),
        ("nest.pack_sequence_as", "length", lambda tf: tf.nest.pack_sequence_as([1, 2], [1])),
        ("while_loop", "no_function", lambda tf: tf.while_loop(1, lambda i: i, [0])),
        ("cond", "no_function", lambda tf: tf.cond(tf.constant(True), 1, lambda: 2)),
        ("switch_case", "integer", lambda tf: tf.switch_case("a", [lambda: 1])),
        ("map_fn", "scalar", lambda tf: tf.map_fn(lambda x: x, tf.constant(1.0))),
        ("TensorArray", "outside", lambda tf: tf.TensorArray(tf.float32, 3).write(7, 1.0)),
        ("TensorArray", "dtype", lambda tf: tf.TensorArray(tf.float32, 3).write(0, tf.constant(1))),
    ):  # fmt: skip
        ask_raises(op, case, program)


# Of each assertion: the arguments for which it holds, and those for which it fails.
_ASSERTIONS = {
    "assert_equal": ((1, 1), (1, 2)),
    "assert_none_equal": ((1, 2), (1, 1)),
    "assert_less": ((1, 2), (2, 1)),
    "assert_less_equal": ((1, 1), (2, 1)),
    "assert_greater": ((2, 1), (1, 2)),
    "assert_greater_equal": ((1, 1), (1, 2)),
    "assert_near": ((1.0, 1.0), (1.0, 2.0)),
    "assert_positive": ((1,), (0,)),
    "assert_negative": ((-1,), (0,)),
    "assert_non_negative": ((0,), (-1,)),
    "assert_non_positive": ((0,), (1,)),
    "assert_rank": (([1], 1), ([1], 2)),
    "assert_rank_at_least": (([1], 1), ([1], 2)),
    "assert_rank_in": (([1], [1, 2]), ([1], [2, 3])),
    "assert_integer": ((1,), (1.5,)),
    "assert_scalar": ((1,), ([1],)),
    "assert_all_finite": ((1.0, "no"), (float("inf"), "no")),
    "check_numerics": ((1.0, "no"), (float("nan"), "no")),
}


def _asserting(name: str, arguments: tuple[Any, ...]) -> Program:
    """A program with an assertion of that name, whose first argument is a tensor."""

    def program(tf: Any, x: Any) -> Any:
        getattr(tf.debugging, name)(tf.constant(arguments[0]), *arguments[1:])
        return x + 1

    return program


@family.builder
def assertions() -> None:
    """Assertions that hold, and those that fail."""
    for name, (right, wrong) in _ASSERTIONS.items():
        ask(f"debugging.{name}", ONE, _asserting(name, right), tags=NO_DERIVATIVES)
        ask_raises(f"debugging.{name}", "wrong", lambda tf, name=name, wrong=wrong:
                   getattr(tf.debugging, name)(tf.constant(wrong[0]), *wrong[1:]))  # fmt: skip


@family.builder
def checks_of_dtypes_and_shapes() -> None:
    """Checks of a tensor's dtype and shape that hold."""
    ask("debugging.is_numeric_tensor", ONE, lambda tf, x: tf.debugging.is_numeric_tensor(x),
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("debugging.assert_type", ONE,
        lambda tf, x: [x, tf.debugging.assert_type(x, tf.float32)][:1],
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("debugging.assert_same_float_dtype", ONE,
        lambda tf, x: tf.debugging.assert_same_float_dtype([x], tf.float32).name,
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("debugging.assert_shapes", ONE,
        lambda tf, x: [x, tf.debugging.assert_shapes([(x, ("n", 4))])][:1],
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("debugging.Assert", ONE, lambda tf, x: [x, tf.debugging.Assert(tf.constant(True), [1])][:1],
        tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def failing_checks() -> None:
    """Checks of a tensor's dtype and shape that fail."""
    for op, case, program in (
        ("debugging.Assert", "wrong", lambda tf: tf.debugging.Assert(tf.constant(False), [1])),
        ("debugging.assert_type", "wrong",
         lambda tf: tf.debugging.assert_type(tf.ones([1]), tf.int32)),
        ("debugging.assert_same_float_dtype", "wrong",
         lambda tf: tf.debugging.assert_same_float_dtype([tf.ones([1])], tf.float64)),
        ("debugging.assert_shapes", "wrong",
         lambda tf: tf.debugging.assert_shapes([(tf.ones([2]), (3,))])),
    ):  # fmt: skip
        ask_raises(op, case, program)


@family.builder
def descriptions_of_tensors() -> None:
    """Dtypes, shapes and specifications: what says what a tensor is."""
    ask("is_tensor", ONE, lambda tf, x: [tf.is_tensor(x), tf.is_tensor(1), tf.is_tensor("a")],
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("as_dtype", ONE, lambda tf, x: [
        tf.as_dtype(x.dtype).name, tf.as_dtype("half").name, tf.as_dtype("bool").size,
        tf.as_dtype("complex64").real_dtype.name, tf.as_dtype("int8").max],
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("get_static_value", [], lambda tf: tf.get_static_value(tf.constant([1, 2])))
    ask("TensorShape", ONE, lambda tf, x: [
        tf.TensorShape(x.shape).rank, str(tf.TensorShape([None, 4])),
        tf.TensorShape([None, 4]).merge_with([3, 4]).as_list(),
        tf.TensorShape([None, 4]).is_compatible_with([5, 4]),
        tf.TensorShape([2]).concatenate([3]).num_elements()], tags=NO_DERIVATIVES)  # fmt: skip
    ask("TensorSpec", ONE, lambda tf, x: [
        tf.TensorSpec([3, None]).shape.as_list(), tf.TensorSpec([3, None]).dtype.name,
        str(tf.TensorSpec([3], tf.int32, "a"))], tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def refused_descriptions() -> None:
    """Dtypes, shapes and specifications that TensorFlow refuses."""
    for op, case, program in (
        ("as_dtype", "unknown", lambda tf: tf.as_dtype("float31")),
        ("TensorShape", "negative", lambda tf: tf.TensorShape([-2])),
        ("TensorShape", "incompatible", lambda tf: tf.TensorShape([2]).merge_with([3])),
        ("TensorShape", "unknown_list", lambda tf: tf.TensorShape(None).as_list()),
        ("TensorSpec", "shape", lambda tf: tf.TensorSpec("a")),
    ):  # fmt: skip
        ask_raises(op, case, program)


@family.builder
def python_functions() -> None:
    """Functions of Python's, called eagerly or by the compiled program."""

    def twice(x: Any) -> Any:
        return x * 2

    for op in ("py_function", "numpy_function"):
        ask(op, ONE, lambda tf, x, op=op: getattr(tf, op)(
            twice, [x], tf.TensorSpec(x.shape, x.dtype)) + x, dtypes=_NUMBERS,
            tags=NO_DERIVATIVES if op == "py_function" else ())  # fmt: skip


@family.builder
def parts_of_graphs() -> None:
    """Derivatives along a graph and scopes in it, which eager programs do not have."""
    for op in ("gradients", "hessians"):
        ask_raises(op, "eager", lambda tf, op=op: getattr(tf, op)(tf.ones([2]), tf.ones([2])))
    ask_raises(
        "xla.experimental.jit_scope",
        "eager",
        lambda tf: tf.xla.experimental.jit_scope().__enter__(),
    )


@family.builder
def datasets_and_directions() -> None:
    """Elements of datasets, and derivatives along tangents."""
    ask("data.Dataset", ONE, lambda tf, x: tf.stack([
        tf.reduce_sum(rows) for rows in tf.data.Dataset.from_tensor_slices(x).batch(2)]),
        dtypes=_NUMBERS, tags=NO_DERIVATIVES)  # fmt: skip
    ask("data.Dataset", ONE, lambda tf, x: tf.stack(list(
        tf.data.Dataset.from_tensor_slices(x).shuffle(2, seed=1).map(lambda row: row * 2))),
        case="shuffle", dtypes=_NUMBERS, tags=NO_DERIVATIVES)  # fmt: skip
    ask("autodiff.ForwardAccumulator", normal(SHAPE, SHAPE), _along, dtypes=FLOAT64,
        tags=NO_DERIVATIVES)  # fmt: skip


def _along(tf: Any, x: Any, tangent: Any) -> Any:
    """The derivative of a function along a tangent."""
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        y = tf.sin(x) * x
    return accumulator.jvp(y)
