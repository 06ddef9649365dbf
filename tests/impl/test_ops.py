"""The one place from which rules take the ops that they make."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import compat, ops
from jax2tf._src.ops import writing

LOWERING = Path(jax2tf.__file__).parent / "_src/lowering"


def _imports_of_tensorflow(source: str) -> list[str]:
    """The imports of TensorFlow in a module, those for types only too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [name.name for name in node.names]
            modules = names if isinstance(node, ast.Import) else [node.module or ""]
            if "tf" in names or any(m.partition(".")[0] == "tensorflow" for m in modules):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "path",
    sorted(LOWERING.rglob("*.py")),
    ids=lambda path: str(path.relative_to(LOWERING)),
)
def test_rules_make_ops_through_one_package(path):
    source = path.read_text()
    assert not _imports_of_tensorflow(source), "take these from jax2tf._src.ops and util/tensors.py"
    assert "xla_ops" not in source


def test_what_goes_around_the_package_is_seen():
    source = """
if TYPE_CHECKING:
    import tensorflow as tf
def rule():
    from tensorflow import raw_ops
    from jax2tf._src.util.lazy_imports import tf
    from tensorflow_probability import math
"""
    assert _imports_of_tensorflow(source) == [
        "import tensorflow as tf",
        "from tensorflow import raw_ops",
        "from jax2tf._src.util.lazy_imports import tf",
    ]


F32 = tf.TensorSpec([3, 4], tf.float32)
I32 = tf.TensorSpec([3, 4], tf.int32)
MASK = tf.TensorSpec([3, 4], tf.bool)
ANY_ROWS = tf.TensorSpec([None, 4], tf.float32)
C64 = tf.TensorSpec([3, 4], tf.complex64)
IMAGES = tf.TensorSpec([None, 8, 8, 3], tf.float32)
KERNEL = tf.TensorSpec([3, 3, 3, 2], tf.float32)

# Functions of `ops` beside TensorFlow's, as rules call them.
FUNCTIONS = {
    "add": (lambda f: lambda x, y: f(x, y), tf.add, (F32, F32)),
    "add of a number": (lambda f: lambda x: f(x, 1.0), tf.add, (F32,)),
    "atan2": (lambda f: lambda x, y: f(x, y), tf.atan2, (F32, F32)),
    "bitcast": (lambda f: lambda x: f(x, tf.int32), tf.bitcast, (F32,)),
    "bitwise_xor": (lambda f: lambda x, y: f(x, y), tf.bitwise.bitwise_xor, (I32, I32)),
    "cast": (lambda f: lambda x: f(x, tf.int64), tf.cast, (F32,)),
    "cast of complex": (lambda f: lambda x: f(x, tf.float32), tf.cast, (C64,)),
    "cast to complex": (lambda f: lambda x: f(x, tf.complex64), tf.cast, (F32,)),
    "cast to itself": (lambda f: lambda x: f(x, tf.float32), tf.cast, (F32,)),
    "concat": (lambda f: lambda x, y: f([x, y], 1), tf.concat, (F32, F32)),
    "concat of one": (lambda f: lambda x: f([x], 1), tf.concat, (F32,)),
    "concat along a tensor": (
        lambda f: lambda x, y: f([x, y], tf.constant(1)),
        tf.concat,
        (F32, F32),
    ),
    "constant": (lambda f: lambda: f([1, 2, 3]), tf.constant, ()),
    "constant of a dtype": (lambda f: lambda: f(1, tf.bfloat16), tf.constant, ()),
    "constant array": (lambda f: lambda: f(np.ones((2, 0), np.uint8)), tf.constant, ()),
    "conv2d": (
        lambda f: lambda x, y: f(x, y, (1, 2), "SAME", dilations=(2, 1)),
        tf.nn.conv2d,
        (IMAGES, KERNEL),
    ),
    "conv2d with paddings": (
        lambda f: lambda x, y: f(x, y, (1, 1), [[0, 0], [1, 2], [0, 3], [0, 0]], dilations=(1, 1)),
        tf.nn.conv2d,
        (IMAGES, KERNEL),
    ),
    "ensure_shape": (
        lambda f: lambda x: f(x, tf.TensorShape([None, 4])),
        tf.ensure_shape,
        (ANY_ROWS,),
    ),
    "equal": (lambda f: lambda x, y: f(x, y), tf.equal, (MASK, MASK)),
    "exp": (lambda f: lambda x: f(x), tf.exp, (ANY_ROWS,)),
    "expand_dims": (lambda f: lambda x: f(x, -1), tf.expand_dims, (ANY_ROWS,)),
    "expand_dims at a tensor": (
        lambda f: lambda x: f(x, tf.constant(0)),
        tf.expand_dims,
        (ANY_ROWS,),
    ),
    "gather": (lambda f: lambda x, i: f(x, i, axis=1), tf.gather, (F32, I32)),
    "gather in batches": (lambda f: lambda x, i: f(x, i, batch_dims=1), tf.gather, (F32, I32)),
    "gather in all but one": (lambda f: lambda x, i: f(x, i, batch_dims=-1), tf.gather, (F32, I32)),
    "gather of an array": (lambda f: lambda i: f(np.ones((3, 4)), i), tf.gather, (I32,)),
    "identity": (lambda f: lambda x: f(x), tf.identity, (ANY_ROWS,)),
    "matmul": (lambda f: lambda x, y: f(x, y, transpose_b=True), tf.matmul, (F32, F32)),
    "matmul of batches": (
        lambda f: lambda x, y: f(x[None], y, adjoint_a=True),
        tf.matmul,
        (F32, F32),
    ),
    "matmul of complex": (lambda f: lambda x, y: f(x, y, adjoint_a=True), tf.matmul, (C64, C64)),
    "maximum of a number": (lambda f: lambda x: f(x, 0), tf.maximum, (I32,)),
    "reduce_sum": (lambda f: lambda x: f(x, [0, 1]), tf.reduce_sum, (F32,)),
    "reduce_sum of all": (lambda f: lambda x: f(x), tf.reduce_sum, (ANY_ROWS,)),
    "reduce_max": (lambda f: lambda x: f(x, -1, keepdims=True), tf.reduce_max, (ANY_ROWS,)),
    "reduce_any": (lambda f: lambda x: f(x, [0]), tf.reduce_any, (MASK,)),
    "reshape": (lambda f: lambda x: f(x, (2, -1)), tf.reshape, (F32,)),
    "reshape to what is not known": (
        lambda f: lambda x: f(x, [tf.shape(x)[0] * 2, 2]),
        tf.reshape,
        (ANY_ROWS,),
    ),
    "split": (lambda f: lambda x: f(x, 2, tf.constant(1), num=2), tf.split, (F32,)),
    "split into sizes": (
        lambda f: lambda x: f(x, tf.constant([1, 3]), tf.constant(1), num=2),
        tf.split,
        (F32,),
    ),
    "split without a number": (lambda f: lambda x: f(x, 2, 1), tf.split, (F32,)),
    "squeeze": (lambda f: lambda x: f(x[None], 0), tf.squeeze, (F32,)),
    "squeeze of all": (lambda f: lambda x: f(x[None]), tf.squeeze, (F32,)),
    "transpose": (lambda f: lambda x: f(x, [1, 0]), tf.transpose, (ANY_ROWS,)),
    "transpose of all": (lambda f: lambda x: f(x), tf.transpose, (F32,)),
    "unstack": (lambda f: lambda x: f(x, 4, 1), tf.unstack, (ANY_ROWS,)),
    "unstack of all": (lambda f: lambda x: f(x), tf.unstack, (F32,)),
    "where": (lambda f: lambda c, x, y: f(c, x, y), tf.where, (MASK, F32, F32)),
    "where of a number": (lambda f: lambda c, x: f(c, x, 0.0), tf.where, (MASK, F32)),
}

# Those of them that are left to TensorFlow; a cast to itself makes nothing.
LEFT_TO_TENSORFLOW = {
    *("cast of complex", "cast to complex", "cast to itself", "concat of one"),
    *("gather of an array", "matmul of complex", "reduce_sum of all"),
    *("reshape to what is not known", "split without a number", "squeeze of all"),
    *("transpose of all", "unstack of all"),
}


def _nodes(function, *specs):
    """The nodes of a graph but for the last part of their names; what it gives."""
    graph = tf.function(function, autograph=False).get_concrete_function(*specs)
    nodes = list(graph.graph.as_graph_def().node)
    order = {node.name: i for i, node in enumerate(nodes)}
    return [
        (
            node.op,
            node.name.rpartition("/")[0] if node.op not in ("Const", "MatMul") else "",
            [(order[name.split(":")[0].lstrip("^")], name.split(":")[1:]) for name in node.input],
            # TensorFlow numbers functions as it makes them, and leaves its optimiser free.
            sorted(
                (key, re.sub(r"_\d+", "", str(value)))
                for key, value in node.attr.items()
                if not key.startswith("_grappler")
            ),
        )
        for node in nodes
    ], [(tensor.dtype, str(tensor.shape)) for tensor in graph.outputs]


@pytest.fixture
def written():
    """Ops are written."""
    with writing.switched(True):
        yield


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_make_the_ops_that_those_of_tensorflow_make(name):
    call, by_tensorflow, specs = FUNCTIONS[name]
    assert _nodes(call(getattr(ops, name.split()[0])), *specs) == _nodes(
        call(by_tensorflow), *specs
    )


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "constant" not in name])
def test_functions_write_their_ops_themselves(name):
    call, _, specs = FUNCTIONS[name]
    with writing.counted() as counts:
        _nodes(call(getattr(ops, name.split()[0])), *specs)
    assert {is_written for _, is_written in counts} == (
        set() if name in LEFT_TO_TENSORFLOW else {True}
    )


def _softmax_of_product(x, y):
    hidden = jnp.tanh(x @ y.T) * jnp.where(x[:, :1] > 0, 2.0, 0.5)
    return jax.nn.softmax(hidden), jnp.argsort(x, axis=-1), jnp.cumsum(y, axis=0)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("target", ["xla", "tensorflow", "litert", "onnx"])
def test_graphs_are_the_same_node_by_node(target):
    def nodes():
        fun = jax2tf.convert(_softmax_of_product, with_gradient=False, target=target)
        return _nodes(fun, F32, F32)

    with writing.counted() as counts:
        written = nodes()
    with writing.switched(False):
        assert nodes() == written
    made = sum(counts.values())
    assert sum(n for (_, is_written), n in counts.items() if is_written) > 0.9 * made > 10


def test_nothing_is_written_unless_it_is_switched_on(monkeypatch):
    monkeypatch.setattr(compat.graphs, "write_op", lambda *_: pytest.fail("an op was written"))
    with writing.switched(False):
        assert len(_nodes(lambda x: ops.raw.Mul(x=x, y=ops.constant(2.0)), F32)[0]) == 4


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("writes", [True, False])
def test_attributes_keep_the_sign_of_zero(writes):
    graph = tf.Graph()
    with graph.as_default(), writing.switched(writes):
        x = tf.compat.v1.placeholder(tf.float32, [2])
        made = [ops.raw.LeakyRelu(features=x, alpha=a) for a in (0.0, -0.0, 1.0, True, 0.0)]
    alphas = [op.op.get_attr("alpha") for op in made]
    np.testing.assert_array_equal(np.signbit(alphas), [False, True, False, False, False])


@pytest.mark.usefixtures("written")
class TestWriting:
    """Where ops are written and where TensorFlow makes them."""

    @staticmethod
    def counts(build):
        with writing.counted() as counts:
            build()
        return dict(counts)

    def test_in_a_function(self):
        def build():
            tf.function(lambda x: ops.raw.Cos(x=x)).get_concrete_function(F32)

        assert self.counts(build) == {("Cos", True): 1}
        with writing.switched(False):
            assert self.counts(build) == {}

    def test_eager_mode_makes_no_graph(self):
        assert self.counts(lambda: ops.raw.Cos(x=tf.ones([2]))) == {}

    def test_not_in_a_graph_of_the_first_version(self):
        def build():
            with tf.Graph().as_default():
                ops.raw.Cos(x=tf.compat.v1.placeholder(tf.float32))

        assert self.counts(build) == {("Cos", False): 1}

    def test_not_where_a_tape_has_to_see_it(self):
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = ops.raw.Sin(x=x)
            return tape.gradient(y, x)

        assert self.counts(lambda: tf.function(gradient).get_concrete_function(F32)) == {
            ("Sin", False): 1
        }
        x = tf.constant([0.5, 1.0])
        np.testing.assert_allclose(tf.function(gradient)(x), np.cos(x), rtol=1e-6)

    def test_not_what_has_side_effects_or_several_results(self):
        def build():
            tf.function(
                lambda x: (
                    ops.raw.TopKV2(input=x, k=2).values,
                    ops.raw.RandomStandardNormal(shape=[2], dtype=tf.float32),
                )
            ).get_concrete_function(F32)

        assert self.counts(build) == {
            ("TopKV2", False): 1,
            ("RandomStandardNormal", False): 1,
        }

    def test_numbers_have_the_dtype_of_the_other_operand(self):
        def build(x):
            return ops.raw.Sum(input=ops.raw.Mul(x=x, y=2), axis=[0], keep_dims=True)

        counts = self.counts(lambda: tf.function(build).get_concrete_function(F32))
        assert counts == {("Mul", True): 1, ("Sum", True): 1}
        np.testing.assert_array_equal(tf.function(build)(tf.ones([3, 2])), [[6.0, 6.0]])

    def test_tensorflow_says_what_it_refuses(self):
        with pytest.raises(TypeError, match="bool"):
            tf.function(lambda x: ops.raw.Cos(x=x)).get_concrete_function(MASK)
        with pytest.raises(ValueError, match="Dimensions must be equal"):
            tf.function(lambda x: ops.raw.MatMul(a=x, b=x)).get_concrete_function(F32)
        with pytest.raises(TypeError, match="unexpected"):
            tf.function(lambda x: ops.raw.Cos(x=x, z=1)).get_concrete_function(F32)

    def test_scopes_devices_and_control_dependencies_hold(self):
        def build(x):
            with tf.name_scope("outer"), tf.device("/CPU:0"):
                first = ops.raw.Cos(x=x)
            with tf.control_dependencies([first]):
                second = ops.raw.Sin(x=x)
            return second

        graph = tf.function(build).get_concrete_function(F32).graph
        first = graph.get_operation_by_name("outer/Cos")
        assert first.device == "/device:CPU:0"
        assert graph.get_operation_by_name("Sin").control_inputs == [first]
        assert any("test_ops.py" in frame.filename for frame in first.traceback)

    @pytest.mark.parametrize("jit_compile", [None, True])
    def test_tensors_of_the_graph_around_are_captured(self, jit_compile):
        eager = tf.constant([1.0, 2.0])

        @tf.function(jit_compile=jit_compile)
        def outer(x):
            inner = tf.function(lambda: ops.raw.AddV2(x=ops.raw.Mul(x=x, y=eager), y=x))
            return tf.cond(x[0] > 0, inner, lambda: ops.raw.Neg(x=x))

        np.testing.assert_array_equal(outer(tf.constant([3.0, 4.0])), [6.0, 12.0])
        np.testing.assert_array_equal(outer(tf.constant([-3.0, 4.0])), [3.0, -4.0])

    def test_a_function_is_a_tf_function(self):
        scalar = tf.TensorSpec([], tf.float32)
        for function in (ops.add, ops.maximum):
            graph = tf.function(function, autograph=False).get_concrete_function(scalar, scalar)
            assert len(graph.inputs) == 2

    def test_a_variable_is_read(self):
        variable = tf.Variable([1.0, 2.0])
        function = tf.function(lambda x: ops.raw.Mul(x=x, y=variable))
        function(tf.ones([2]))
        variable.assign([5.0, 6.0])
        np.testing.assert_array_equal(function(tf.ones([2])), [5.0, 6.0])

    def test_the_gradient_of_a_loop_is_tensorflows(self):
        f = jax2tf.convert(lambda x: jnp.sin(x) * x)

        @tf.function
        def loss(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                total = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, f(y)), (0, x))[1]
            return tape.gradient(total, x)

        def in_jax(x):
            for _ in range(3):
                x = jnp.sin(x) * x
            return x.sum()

        x = np.array([0.5, 1.5], np.float32)
        np.testing.assert_allclose(loss(tf.constant(x)), jax.grad(in_jax)(x), rtol=1e-5)


@pytest.mark.parametrize("compare", [ops.greater, ops.greater_equal])
@pytest.mark.parametrize("dtype", ["int64", "float64", "int32"])
def test_a_number_is_compared_in_the_dtype_of_the_tensor(compare, dtype):
    """Larger is smaller the other way round, where the number stands first."""
    run = tf.function(lambda x: compare(x, 1), autograph=False)
    expected = [False, compare is ops.greater_equal, True]
    assert run(tf.constant([0, 1, 2], dtype)).numpy().tolist() == expected


class TestTheSearchForEffects:
    """TensorFlow puts ops with effects in order where a function ends."""

    def fun(self, variable):
        converted = jax2tf.convert(lambda x: jnp.sin(x) * 2)

        @tf.function(autograph=False)
        def with_effects(x):
            before = converted(x)
            variable.assign_add(tf.reduce_sum(before))
            read = variable.read_value()
            variable.assign(read * 3)
            return converted(before) + variable

        return with_effects

    def test_effects_stay_in_order(self):
        variable = tf.Variable(1.0)
        fun = self.fun(variable)
        for _ in range(2):
            expected = (variable.numpy() + 2 * np.sin(0.5)) * 3
            result = fun(tf.constant(0.5))
            np.testing.assert_allclose(variable, expected, rtol=1e-6)
            np.testing.assert_allclose(result, 2 * np.sin(2 * np.sin(0.5)) + expected, rtol=1e-6)

    def test_the_graph_is_the_same_without_it(self, monkeypatch):
        def graph():
            variable = tf.Variable(1.0)
            return self.fun(variable).get_concrete_function(tf.TensorSpec([])).graph.as_graph_def()

        spared = graph()
        monkeypatch.setattr(compat.graphs, "skip_order_of_effects", lambda graph: None)
        searched = graph()
        assert [re.sub(r"[._]\d+", "", str(n)) for n in spared.node] == [
            re.sub(r"[._]\d+", "", str(n)) for n in searched.node
        ]

    def test_it_is_spared_where_nothing_has_effects(self):
        variable = tf.Variable(1.0)

        def left(read):
            seen = []

            @tf.function(autograph=False)
            def fun(x):
                x = x * variable if read else x
                result = jax2tf.convert(jnp.sin)(x)
                graph = tf.compat.v1.get_default_graph()
                seen.append(graph.num_operations() - graph.experimental_acd_manager._n_operations)
                return result

            fun.get_concrete_function(tf.TensorSpec([]))
            return seen[0]

        assert left(read=False) == 0
        assert left(read=True) > 3
