"""Programs of each device of a mesh (shard_map, pmap) as one program over whole arrays."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import jax2tf
from tests.impl.parallel_programs import PROGRAMS, mesh_of, normal
from tests.running import assert_near

AUTO = AxisType.Auto


def nodes_of(function) -> list[str]:
    """The ops of a concrete function and of all functions that it calls."""
    graph = function.graph.as_graph_def()
    return [
        n.op for part in (graph.node, *(f.node_def for f in graph.library.function)) for n in part
    ]


def graph_of(fun, *args, **options):
    flat, tree = jax.tree.flatten(args)

    @tf.function(autograph=False)
    def run(*leaves):
        return jax.tree.leaves(jax2tf.convert(fun, **options)(*jax.tree.unflatten(tree, leaves)))

    return run.get_concrete_function(*map(tf.constant, flat))


# Eight layers one behind the other amplify the last digits of tanh: held against float64, JAX's own
# gradient is 17 away and TensorFlow's 89, on a processor with AVX-512.
GRADIENT_ULPS = {"pipeline": 256}


@pytest.mark.parametrize("name", PROGRAMS)
class TestPrograms:
    def test_gives_what_jax_gives(self, name):
        fun, args = PROGRAMS[name](8)
        expected = jax.tree.leaves(jax.jit(fun)(*args))
        leaves = jax.tree.leaves(args)
        for enable_xla in (True, False):
            graph = graph_of(fun, *args, enable_xla=enable_xla)
            assert_near([t.numpy() for t in graph(*map(tf.constant, leaves))], expected)
        eager = jax.tree.leaves(jax2tf.convert(fun)(*args))
        assert_near([t.numpy() for t in eager], expected)
        compiled = tf.function(graph, jit_compile=True, autograph=False)
        assert_near([t.numpy() for t in compiled(*map(tf.constant, leaves))], expected)

    def test_its_gradient_is_jaxs(self, name):
        fun, args = PROGRAMS[name](8)

        def loss(*args):
            return sum(jnp.sum(y**2) for y in jax.tree.leaves(fun(*args)))

        variables = jax.tree.map(tf.Variable, args)
        with tf.GradientTape() as tape:
            y = jax2tf.convert(loss)(*variables)
        gradients = jax.tree.map(np.asarray, tape.gradient(y, variables))
        expected = jax.jit(jax.grad(loss, tuple(range(len(args)))))(*args)
        assert_near(gradients, expected, GRADIENT_ULPS.get(name, 64))

    def test_one_device(self, name):
        fun, args = PROGRAMS[name](1)
        results = [t.numpy() for t in jax.tree.leaves(jax2tf.convert(fun)(*args))]
        assert_near(results, jax.tree.leaves(jax.jit(fun)(*args)))


def test_a_saved_program_needs_no_jax_and_no_mesh(tmp_path, without_jax):
    fun, args = PROGRAMS["tensor_parallel"](8)
    module = tf.Module()
    module.f = tf.function(jax2tf.convert(fun), autograph=False)
    module.f.get_concrete_function(*map(tf.constant, args))
    tf.saved_model.save(module, str(tmp_path / "saved"))
    for i, arg in enumerate(args):
        np.save(tmp_path / f"{i}.npy", arg)
    lines = without_jax(
        """
        folder = sys.argv[1]
        args = [np.load(f"{folder}/{i}.npy") for i in range(4)]
        result = tf.saved_model.load(f"{folder}/saved").f(*args)
        np.save(f"{folder}/result.npy", result)
        print(result.shape)
        """,
        tmp_path,
    )
    expected = jax.jit(fun)(*args)
    assert lines == [str(expected.shape)]
    assert_near(np.load(tmp_path / "result.npy"), expected)


class TestSizeOfTheMesh:
    @staticmethod
    def of(size: int):
        mesh = AbstractMesh((size,), ("a",), axis_types=(AUTO,))

        def each(x):
            def step(carry, _):
                return lax.ppermute(carry, "a", [(i, (i + 1) % size) for i in range(size)]), None

            moved, _ = lax.scan(step, x, None, length=3)
            return lax.pmean(jnp.sin(moved), "a") + lax.axis_index("a")

        return jax.shard_map(each, mesh=mesh, in_specs=P("a"), out_specs=P("a"))

    def test_no_devices_are_needed(self):
        x = normal(512, 3)
        blocks = np.sin(np.roll(x.reshape(256, 2, 3), 3, axis=0)).mean(0)
        expected = (blocks + np.arange(256, dtype=np.float32)[:, None, None]).reshape(512, 3)
        assert_near(jax2tf.convert(self.of(256))(x).numpy(), expected)

    def test_the_graph_does_not_grow(self):
        x = normal(512, 3)
        small, large = (nodes_of(graph_of(self.of(size), x)) for size in (128, 256))
        assert sorted(small) == sorted(large)

    def test_one_device_leaves_nothing_behind(self):
        mesh = mesh_of(a=1, b=1)
        plain = graph_of(lambda x: jnp.sin(x), normal(2, 3))
        mapped = jax.shard_map(
            lambda x: lax.pcast(lax.psum(jnp.sin(x), ("a", "b")), ("a", "b"), to="varying"),
            mesh=mesh,
            in_specs=P("a", "b"),
            out_specs=P("a", "b"),
        )
        assert sorted(nodes_of(graph_of(mapped, normal(2, 3)))) == sorted(nodes_of(plain))


def test_polymorphic_batch():
    fun = jax.shard_map(
        lambda x: x - lax.pmean(x.mean(0), "a"),
        mesh=mesh_of(a=8),
        in_specs=P("a"),
        out_specs=P("a"),
    )
    converted = tf.function(
        jax2tf.convert(fun, polymorphic_shapes="8*b, _"),
        input_signature=[tf.TensorSpec([None, 3])],
        autograph=False,
    )
    for size in (8, 24):
        x = normal(size, 3)
        assert_near(converted(x).numpy(), jax.jit(fun)(x))


def test_ragged_all_to_all():
    """JAX compiles it for no CPU: what its documentation says, as a loop over rows."""
    n, sizes = 4, np.array([[1, 2, 0, 1], [2, 0, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1]], np.int32)
    inputs = (np.cumsum(sizes, 1) - sizes).astype(np.int32)
    outputs = (np.cumsum(sizes, 0) - sizes).astype(np.int32)
    x, y = normal(n * 4, 2), normal(n * 6, 2, seed=1)

    def each(x, y, inputs, sent, outputs, received):
        return lax.ragged_all_to_all(
            x, y, inputs[0], sent[0], outputs[0], received[0], axis_name="a"
        )

    mesh = AbstractMesh((n,), ("a",), axis_types=(AUTO,))
    fun = jax.shard_map(each, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    expected = y.reshape(n, 6, 2).copy()
    for i in range(n):
        for j in range(n):
            rows = x.reshape(n, 4, 2)[i, inputs[i, j] : inputs[i, j] + sizes[i, j]]
            expected[j, outputs[i, j] : outputs[i, j] + sizes[i, j]] = rows
    for mode in (lambda f: f, tf.function(autograph=False)):
        result = mode(jax2tf.convert(fun))(x, y, inputs, sizes, outputs, sizes.T)
        np.testing.assert_array_equal(result, expected.reshape(-1, 2))


class TestErrors:
    def test_a_mesh_that_does_not_divide(self):
        fun = jax.shard_map(lambda x: x, mesh=mesh_of(a=8), in_specs=P("a"), out_specs=P("a"))
        with pytest.raises(ValueError, match="8 does not evenly divide 6"):
            jax2tf.convert(fun)(normal(6, 3))

    def test_an_unbound_axis(self):
        with pytest.raises(NameError, match=re.escape("unbound axis name: nowhere")):
            jax2tf.convert(lambda x: lax.psum(x, "nowhere"))(normal(2))
