"""`convert`: arguments, trees, dtypes, modes, caching, names, errors."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import MODES

Point = collections.namedtuple("Point", ["x", "y"])
X = np.ones(3, np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    first: object
    second: object


def assert_same(actual, expected):
    """Trees of tensors and of jax arrays: same structure, dtypes, shapes and values."""
    __tracebackhide__ = True
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for got, should in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert isinstance(got, tf.Tensor)
        assert got.dtype == tf.as_dtype(should.dtype), f"{got.dtype} but should be {should.dtype}"
        np.testing.assert_array_equal(got.numpy(), np.asarray(should))


def graph_of(fun, *args) -> tf.compat.v1.GraphDef:
    concrete = tf.function(fun, autograph=False).get_concrete_function(*args)
    return concrete.graph.as_graph_def()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fun", "args", "kwargs"),
    [
        (lambda x, y: x + y, (np.float32(1), np.float32(2)), {}),
        (lambda x, *, y: x - y, (np.ones(3, np.float32),), {"y": np.float32(2)}),
        (lambda tree: {"out": tree["a"][0] * 2}, ({"a": [np.arange(3)]},), {}),
        (lambda p: Point(p.y, p.x), (Point(np.int8(1), np.int16(2)),), {}),
        (lambda: jnp.zeros((2, 0)), (), {}),
        (lambda x: (), (np.float32(1),), {}),
        (lambda x: x, (np.zeros((0, 3), np.int32),), {}),
        (lambda x, y: x * y, (np.ones(2, ml_dtypes.bfloat16), np.float16(2)), {}),
    ],
)
def test_trees_in_and_out(mode, fun, args, kwargs):
    converted = MODES[mode](jax2tf.convert(fun))
    tensors = jax.tree.map(tf.constant, (args, kwargs))
    assert_same(converted(*tensors[0], **tensors[1]), jax.jit(fun)(*args, **kwargs))


@pytest.mark.parametrize("mode", MODES)
def test_custom_nodes_in_and_out(mode):
    def fun(pair):
        return Pair(pair.second, (pair.first, None))

    converted = jax2tf.convert(fun)
    # tf.function takes only TensorFlow's own containers, so the node is built inside of it.
    through = MODES[mode](lambda x, y: tuple(jax.tree.leaves(converted(Pair(x, y)))))
    first, second = np.uint8(1), np.array([True])
    assert_same(through(first, second), tuple(jax.tree.leaves(jax.jit(fun)(Pair(first, second)))))
    assert isinstance(converted(Pair(first, second)), Pair)


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j, np.float64(2.5), np.int64(7)])
def test_python_and_numpy_scalars_are_typed_as_jax_types_them(value):
    def fun(x):
        return x + jnp.ones((), jnp.bfloat16) if not isinstance(value, complex) else x

    assert_same(jax2tf.convert(fun)(value), jax.jit(fun)(value))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64, np.complex128, np.float32])
def test_64_bit_values_follow_the_x64_flag(x64, dtype):
    value = np.ones(2, dtype)
    with jax.enable_x64(x64):
        expected = jax.jit(lambda x: x + x)(value)
        converted = jax2tf.convert(lambda x: x + x)
        assert_same(converted(tf.constant(value)), expected)
        assert_same(converted(value), expected)
        assert jax2tf.dtype_of_val(tf.constant(value)) == tf.as_dtype(expected.dtype)


def test_one_converted_function_serves_both_values_of_the_x64_flag():
    converted = jax2tf.convert(lambda x: x * 2)
    assert converted(np.float64(1)).dtype == tf.float32
    with jax.enable_x64(True):
        assert converted(np.float64(1)).dtype == tf.float64
    assert converted(np.float64(1)).dtype == tf.float32


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, tf.bool),
        (1, tf.int32),
        (1.0, tf.float32),
        (1j, tf.complex64),
        (np.float64(1), tf.float32),
        (np.ones(1, ml_dtypes.bfloat16), tf.bfloat16),
        (np.ones(1, ml_dtypes.float8_e5m2), tf.dtypes.experimental.float8_e5m2),
        (tf.constant(1, tf.int64), tf.int32),
    ],
)
def test_dtype_of_val(value, dtype):
    assert jax2tf.dtype_of_val(value) == dtype


def test_variables_and_module_containers():
    module = tf.Module()
    module.params = {"w": [tf.Variable([1.0, 2.0]), (tf.Variable(3.0),)]}

    def fun(params):
        return params["w"][0] * params["w"][1][0]

    assert_same(jax2tf.convert(fun)(module.params), jnp.array([3.0, 6.0]))
    module.params["w"][1][0].assign(5.0)
    assert_same(jax2tf.convert(fun)(module.params), jnp.array([5.0, 10.0]))


def test_a_variable_comes_back_as_a_tensor():
    assert_same(jax2tf.convert(lambda x: x)(tf.Variable(1.0)), jnp.float32(1))


def test_it_keeps_name_and_documentation():
    def scaled(x):
        """Twice x."""
        return 2 * x

    converted = jax2tf.convert(scaled)
    assert (converted.__name__, converted.__doc__) == ("scaled", "Twice x.")


def test_a_second_call_does_not_trace():
    traces = []

    def fun(x):
        traces.append(x.shape)
        return x + 1

    converted = jax2tf.convert(fun)
    for _ in range(3):
        converted(tf.ones(2))
    converted(tf.ones(3))
    assert traces == [(2,), (3,)]


def test_a_jitted_function_is_compiled_by_itself():
    def must_compile(fun, **kwargs):
        graph = graph_of(jax2tf.convert(fun, **kwargs), tf.TensorSpec([3]))
        attributes = [f.attr for f in graph.library.function] + [n.attr for n in graph.node]
        return any(a["_XlaMustCompile"].b for a in attributes)

    assert must_compile(jax.jit(jnp.sin))
    assert not must_compile(lambda x: x * 2)
    assert not must_compile(jax.jit(jnp.sin), enable_xla=False)


def test_a_layer_called_often_is_one_function():
    @jax.jit
    def layer(x):
        return jnp.cos(jnp.sin(x) * x + x - 1)

    def model(x):
        for _ in range(12):
            x = layer(x)
        return x

    graph = graph_of(jax2tf.convert(model, with_gradient=False), tf.TensorSpec([3]))
    calls = [n for n in graph.node if n.op in ("PartitionedCall", "StatefulPartitionedCall")]
    assert len(calls) == 12
    assert len({c.attr["f"].func.name for c in calls}) == 1
    assert len(graph.library.function) == 1


def test_a_large_constant_stands_once_in_a_graph():
    table = np.arange(100, dtype=np.float32)

    @jax.jit
    def layer(x):
        return jnp.cos(jnp.sin(x) * table + table - 1)

    def model(x):
        return layer(layer(x)) + table

    graph = graph_of(jax2tf.convert(model, with_gradient=False), tf.TensorSpec([100]))
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    tables = [n for n in nodes if n.op == "Const" and n.attr["value"].tensor.tensor_content]
    assert len([n for n in tables if len(n.attr["value"].tensor.tensor_content) == 400]) == 1


def test_op_names_carry_the_name_stack():
    def fun(x):
        with jax.named_scope("encoder"), jax.named_scope("layer_0"):
            return jnp.sin(x)

    names = [n.name for n in graph_of(jax2tf.convert(fun), tf.TensorSpec([3])).node]
    assert any(n.startswith("encoder/layer_0/sin/") for n in names), names


def test_threads():
    converted = jax2tf.convert(lambda x, y: jnp.sin(x) * y + x.shape[0])
    graphs = tf.function(converted, autograph=False)

    def call(i):
        n = i % 5 + 1
        x = np.full(n, i, np.float32)
        return [np.asarray(f(x, np.float32(i))) for f in (converted, graphs)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, results in enumerate(pool.map(call, range(40))):
            n = i % 5 + 1
            expected = np.sin(np.full(n, i, np.float32)) * np.float32(i) + np.float32(n)
            for result in results:
                np.testing.assert_allclose(result, expected, rtol=1e-5)


class TestErrors:
    """Each names the function, the argument by its path, what came, and what to do."""

    def test_what_cannot_be_called(self):
        with pytest.raises(TypeError, match="fun_jax should be a function, got int"):
            jax2tf.convert(3)

    @pytest.mark.parametrize("option", ["with_gradient", "enable_xla", "native_serialization"])
    def test_a_switch_that_is_a_text(self, option):
        with pytest.raises(TypeError, match=f"{option} should be True or False, got 'no'"):
            jax2tf.convert(jnp.sin, **{option: "no"})
        assert jax2tf.convert(jnp.sin, **{option: np.bool_(False)})(1.0).dtype == tf.float32

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("text", r"expected a number.*got builtins.str"),
            (tf.constant("text"), r"JAX has no dtype string.*tf\.strings\.to_number"),
            (np.array(["a"]), r"JAX has no dtype <U1.*tf\.lookup"),
            (np.ones(2, ">f4"), r"JAX has no dtype >f4.*astype\(np\.float32\)"),
            (np.ones(2, np.longdouble), r"JAX has no dtype float\d+.*astype\(np\.float32\)"),
            (tf.ragged.constant([[1], [2, 3]]), "RaggedTensor"),
        ],
    )
    def test_no_array(self, value, words):
        with pytest.raises(TypeError, match=words) as error:
            jax2tf.convert(lambda tree: tree, with_gradient=False)({"a": [1.0, value]})
        assert "argument tree['a'][1]" in str(error.value)

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (2**40, "does not fit int32; enable jax_enable_x64 or pass a numpy array"),
            (-(2**40), "does not fit int32; enable jax_enable_x64 or pass a numpy array"),
            (2**70, "does not fit int32$"),
        ],
    )
    def test_a_number_that_is_too_large(self, value, words):
        with pytest.raises(OverflowError, match=f"Python int {value} {words}"):
            jax2tf.convert(lambda x: x)(value)

    @pytest.mark.parametrize("wrap", [lambda f: f, tf.function, MODES["graph"]])
    def test_a_structure_that_the_function_does_not_take(self, wrap):
        def fun(params, x, y=None, *, n):
            return params["w"] @ x * y * n

        converted = wrap(jax2tf.convert(jax.jit(fun, static_argnames="n"), polymorphic_shapes="b"))
        with pytest.raises(TypeError, match="string indexing") as error:
            converted(np.ones(3, np.float32), tf.ones(2), None, n="text")
        (note,) = (n for n in error.value.__notes__ if "jax2tf" in n)
        for words in (
            "jax2tf.convert(fun) called it with params: float32[b], x: float32[b], y: None, ",
            "n: 'text' (static). Where the function takes another structure",
            "tree of tf.TensorSpec in its input_signature",
        ):
            assert words in note

    @pytest.mark.parametrize(
        ("fun", "args"),
        [
            (lambda x: x["w"], [X]),
            (lambda x: x["w"], [[X]]),
            (lambda x: x["w"], [{"v": X}]),
            (lambda x: x.w, [X]),
            (lambda x: x.w, [{"w": X}]),
            (lambda x: x + 1, [{"w": X}]),
            (lambda x: x + 1, [[X]]),
            (lambda x: x + 1, [None]),
            (lambda x: jnp.sin(x), [(X, X)]),
            (lambda x: (lambda a, b: a)(**x), [X]),
            (lambda x: [a for a, b in [x]], [X]),
            (lambda x: [a for a, b in [x]], [(X,)]),
            (lambda x: [*x], [np.float32(1)]),
            (lambda x: "w" in x, [X]),
            (lambda x, y: jax.tree.map(jnp.add, x, y), [{"a": X}, {"b": X}]),
        ],
    )
    def test_which_errors_speak_of_structure(self, fun, args):
        with pytest.raises((TypeError, ValueError, KeyError, AttributeError)) as error:
            jax2tf.convert(fun)(*args)
        assert any("takes another structure" in note for note in error.value.__notes__)

    @pytest.mark.parametrize(
        ("fun", "args"),
        [
            (lambda x, y: x + y, [X, X[:2]]),
            (lambda x: x.reshape(2), [X]),
            (lambda x: {}["w"], [X]),
            (lambda x: None + x, [X]),
            (lambda x: int(x[0]), [X]),
            (lambda x: x if x[0] else -x, [X]),
            (lambda x: "text", [[X]]),
            (lambda x: [][0], [[X]]),
            (lambda x: x, [X, X]),
            (lambda x, y: x, [X]),
        ],
    )
    def test_other_errors_do_not_speak_of_structure(self, fun, args):
        with pytest.raises((TypeError, ValueError, LookupError)) as error:
            jax2tf.convert(fun)(*args)
        (note,) = (n for n in error.value.__notes__ if "jax2tf" in n)
        assert note.startswith("jax2tf.convert(<lambda>) called it with x")
        assert "structure" not in note

    @pytest.mark.parametrize(
        "fun", [tf.sin, lambda x: tf.ones(3), tf.keras.layers.Activation("relu")]
    )
    def test_tensorflow_in_the_function(self, fun):
        with pytest.raises(TypeError) as error:
            jax2tf.convert(lambda x: fun(x))(X)
        assert any("jax2tf.call_tf(tf.math.sin)(x)" in note for note in error.value.__notes__)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]), r"to_tensor\(\)"),
            (lambda: tf.sparse.from_dense(np.eye(2)), r"tf\.sparse\.to_dense"),
            (lambda: tf.IndexedSlices(tf.ones(1), tf.zeros(1, tf.int32)), "convert_to_tensor"),
            (lambda: tf.TensorArray(tf.float32, 1), r"stack\(\)"),
            (lambda: tf.data.Dataset.range(3), r"dataset\.map\(converted\)"),
            (lambda: tf.TensorSpec([3]), "get_concrete_function"),
            (lambda: tf.keras.Input([3]), r"jax2tf\.keras\.Layer"),
            (lambda: np.zeros(2, "M8[s]"), r"astype\(np\.float32\)"),
        ],
    )
    def test_what_is_no_tensor(self, make, words):
        with pytest.raises(TypeError, match=rf"argument tree\['a'\].*What to do: .*{words}"):
            jax2tf.convert(lambda tree: tree)({"a": make()})

    @pytest.mark.parametrize("order", [0, -1, 1.5, "2", None])
    def test_an_order_that_is_none(self, order):
        with pytest.raises(ValueError, match="saved_gradient_order should be a number of at least"):
            jax2tf.convert(jnp.sin, saved_gradient_order=order)

    def test_a_signature_that_the_function_does_not_take(self):
        graph = tf.function(
            jax2tf.convert(lambda params: params["w"] + params["v"]),
            input_signature=[tf.TensorSpec([3])],
        )
        with pytest.raises(TypeError, match=r"params: float32\[3\].*tree of tf.TensorSpec"):
            graph.get_concrete_function()

    def test_long_notes_are_cut(self):
        with pytest.raises(TypeError, match=r"xs\[19\]: float32\[\], and 5 more\. "):
            jax2tf.convert(lambda *xs: xs + 1)(*[1.0] * 25)

    def test_an_integer_too_wide(self):
        with pytest.raises(OverflowError, match=r"argument x: Python int 1099511627776 does not"):
            jax2tf.convert(lambda *, x: x)(x=2**40)

    def test_a_tracer(self):
        with pytest.raises(TypeError, match=r"argument x: got a JAX tracer.*call_tf"):
            jax.jit(jax2tf.convert(jnp.sin))(1.0)

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}])
    @pytest.mark.parametrize("fun", [lambda x, y: x + y, lambda x, y: y, lambda x, y: 2 * y[:1]])
    def test_a_value_of_another_trace(self, fun, options):
        left = []
        jax2tf.convert(lambda x: left.append(x * 2) or x)(tf.ones(3))
        words = r"the function reads a value of another trace of JAX's \(float32\[3\]\).* argument"
        with pytest.raises(jax.errors.UnexpectedTracerError, match=words):
            jax2tf.convert(lambda x: fun(x, left[0]), **options)(tf.ones(3))
        with pytest.raises(jax.errors.UnexpectedTracerError, match=words):
            jax2tf.convert(lambda: fun(1.0, left[0]), **options)()

    def test_an_unknown_dimension(self):
        fun = tf.function(jax2tf.convert(jnp.sin), autograph=False)
        with pytest.raises(
            ValueError, match=r"argument x: its shape \(None, 3\) is not fully known"
        ):
            fun.get_concrete_function(tf.TensorSpec([None, 3]))

    def test_a_dtype_that_tensorflow_lacks(self):
        with pytest.raises(jax2tf.UnsupportedDtypeError, match="no dtype float8_e3m4"):
            jax2tf.convert(lambda x: x)(np.ones(2, ml_dtypes.float8_e3m4))

    def test_the_users_line_is_noted_on_any_failure(self):
        def fun(x):
            return jax.pure_callback(lambda v: v, x, x)

        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="cannot compile a call back"):
            tf.function(jax2tf.convert(fun), jit_compile=True, autograph=False)(1.0)
