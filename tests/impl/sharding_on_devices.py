"""Partitioning over eight devices of a CPU: test_sharding.py runs this in a process that has them.

TensorFlow partitions on TPUs alone, so what is looked at are the XlaSharding ops of a graph.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import jax2tf
from tests.impl.test_sharding import shardings_in

P = PartitionSpec
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(scope="module")
def mesh():
    assert jax.device_count() == 8
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


@pytest.fixture
def on(mesh):
    """on("data", None): a sharding over the mesh."""
    return lambda *spec: NamedSharding(mesh, P(*spec))


def graph_of(fun, *args, **options):
    graph = tf.function(jax2tf.convert(fun, **options), autograph=False)
    return graph.get_concrete_function(*map(tf.constant, args))


def _sin(x):
    return jnp.sin(x) @ x.T


ROWS = "4,1,2 of 8, last replicated"
BOTH = "4,2 of 8"
WHOLE = "replicated"
COLUMNS = "1,2,4 of 4,2 transposed 1,0, last replicated"


class TestJit:
    def test_arguments_and_results(self, on):
        f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))
        graph = graph_of(f, X)
        assert shardings_in(graph) == [ROWS, BOTH]
        np.testing.assert_allclose(graph(tf.constant(X)), jax.jit(_sin)(X), rtol=1e-6)

    def test_order_of_devices(self, mesh):
        turned = jax.sharding.Mesh(mesh.devices.T, ("model", "data"), axis_types=mesh.axis_types)
        f = jax.jit(_sin, in_shardings=NamedSharding(turned, P("data", "model")))
        assert shardings_in(graph_of(f, X)) == ["4,2 of 2,4 transposed 1,0"]

    @pytest.mark.parametrize("spec", [(), (None, None)])
    def test_nothing_where_all_is_replicated(self, on, spec):
        f = jax.jit(_sin, in_shardings=on(*spec), out_shardings=on(*spec))
        assert shardings_in(graph_of(f, X)) == []
        np.testing.assert_allclose(jax2tf.convert(f)(X), f(X), rtol=1e-6)

    def test_some_arguments(self, on):
        f = jax.jit(lambda p, x: x @ p["w"], in_shardings=({"w": on(None, "model")}, None))
        graph = tf.function(jax2tf.convert(f), autograph=False)
        concrete = graph.get_concrete_function({"w": tf.ones([4, 2])}, tf.constant(X))
        assert shardings_in(concrete) == [COLUMNS]

    def test_inner_functions(self, on):
        inner = jax.jit(_sin, in_shardings=on("data", None))
        assert shardings_in(graph_of(lambda x: inner(x) + 1, X)) == [ROWS]

    def test_batch_of_any_size(self, on):
        f = jax.jit(lambda x: x + 1, in_shardings=on("data", None), out_shardings=on("data"))
        graph = tf.function(
            jax2tf.convert(f, polymorphic_shapes="4*b, _"),
            autograph=False,
            input_signature=[tf.TensorSpec([None, 4])],
        )
        assert shardings_in(graph.get_concrete_function()) == [ROWS, ROWS]
        np.testing.assert_array_equal(graph(X), X + 1)

    def test_compiled(self, on):
        f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))
        compiled = tf.function(jax2tf.convert(f), autograph=False, jit_compile=True)
        np.testing.assert_allclose(compiled(tf.constant(X)), f(X), rtol=1e-6)


class TestConstraint:
    def test_value(self, on):
        def f(x):
            return lax.with_sharding_constraint(x * 2, on("data", None)) + 1

        graph = graph_of(f, X)
        assert shardings_in(graph) == [ROWS]
        np.testing.assert_array_equal(graph(tf.constant(X)), X * 2 + 1)

    def test_dimensions_left_open(self, on):
        def f(x):
            return lax.with_sharding_constraint(x, on("data", P.UNCONSTRAINED))

        assert shardings_in(graph_of(f, X)) == [f"{ROWS}, open [1]"]

    @pytest.mark.parametrize(("devices", "found"), [(8, [f"{WHOLE}, open [1]"]), (1, [])])
    def test_whole_dimensions_beside_open_ones(self, devices, found):
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]), "data")
        sharding = NamedSharding(mesh, P(None, P.UNCONSTRAINED))
        graph = graph_of(lambda x: lax.with_sharding_constraint(x, sharding) + 1, X)
        assert shardings_in(graph) == found

    def test_whole_on_every_device_where_others_are_in_parts(self, on):
        def f(x):
            rows = lax.with_sharding_constraint(x, on("data", None))
            gathered = lax.with_sharding_constraint(rows + 1, on())
            return jax.jit(lambda y: y + 1, in_shardings=on(None, None))(gathered * 2)

        graph = graph_of(f, X)
        assert shardings_in(graph) == [ROWS, WHOLE, WHOLE]
        np.testing.assert_array_equal(graph(tf.constant(X)), f(X))
        assert shardings_in(graph_of(f, X, enable_xla=False)) == []

    def test_keys(self, on):
        def f(data):
            keys = lax.with_sharding_constraint(jax.random.wrap_key_data(data), on("data"))
            return jax.random.key_data(keys)

        data = np.arange(16, dtype=np.uint32).reshape(8, 2)
        graph = graph_of(f, data)
        assert shardings_in(graph) == [ROWS]
        np.testing.assert_array_equal(graph(tf.constant(data)), data)

    def test_reshard_on_an_explicit_mesh(self):
        mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
        graph = graph_of(lambda x: jax.reshard(x, NamedSharding(mesh, P("data"))) + 1, X)
        assert shardings_in(graph) == ["8,1 of 8"]


def test_gradients_are_sharded_as_their_arguments(on):
    f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))

    @tf.function(autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax2tf.convert(f)(x)
        return tape.gradient(y, x)

    found = shardings_in(gradient.get_concrete_function(tf.constant(X)))
    # The argument and its gradient; the result and its cotangent.
    assert sorted(found) == [ROWS, ROWS, BOTH, BOTH]
    expected = jax.grad(lambda x: _sin(x).sum())(X)
    np.testing.assert_allclose(gradient(tf.constant(X)), expected, rtol=1e-5)


class TestEager:
    @pytest.mark.parametrize("kind", ["jit", "constraint"])
    def test_refused(self, on, kind):
        sharding = on("data", None)
        functions = {
            "jit": jax.jit(_sin, in_shardings=sharding),
            "constraint": lambda x: lax.with_sharding_constraint(x, sharding),
        }
        with pytest.raises(jax2tf.ConversionError) as refusal:
            jax2tf.convert(functions[kind])(X)
        words = ("a value is sharded over the devices of a mesh", "call it inside a tf.function")
        assert all(word in str(refusal.value) for word in words)

    def test_without_xla_ops(self, on):
        f = jax.jit(_sin, in_shardings=on("data", None))
        assert shardings_in(graph_of(f, X, enable_xla=False)) == []
        np.testing.assert_allclose(jax2tf.convert(f, enable_xla=False)(X), f(X), rtol=1e-6)


def test_saved_model(on, tmp_path, without_jax):
    f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))
    module = tf.Module()
    converted = jax2tf.convert(f, with_gradient=False)
    module.f = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([8, 4])])
    tf.saved_model.save(module, tmp_path / "saved")
    code = """
    restored = tf.saved_model.load(sys.argv[1])
    print(restored.f(tf.ones([8, 4])).shape)
    functions = restored.f.concrete_functions[0].graph.as_graph_def().library.function
    print(sum(n.op == "XlaSharding" for f in functions for n in f.node_def))
    """
    assert without_jax(code, tmp_path / "saved") == ["(8, 8)", "2"]


class TestProgramsOfDevices:
    """shard_map and pmap: the leading dimensions, which stand for the mesh, are spread over it."""

    # Of an array of two leading dimensions and two of its own, and of one leading dimension.
    BY_BOTH = "4,2,1,1 of 8"
    BY_DATA = "4,1,1,2 of 8, last replicated"
    BY_MODEL = "2,1,1,4 of 4,2 transposed 1,0, last replicated"

    @staticmethod
    def summed(mesh, **options):
        def each(x):
            return lax.psum(jnp.sin(x), "data")

        return jax.shard_map(
            each,
            mesh=mesh,
            in_specs=P("data", "model"),
            out_specs=P(None, "model"),
            **options,
        )

    def test_operands_and_results(self, mesh):
        graph = graph_of(self.summed(mesh), X)
        assert shardings_in(graph) == [self.BY_BOTH, self.BY_MODEL]
        np.testing.assert_allclose(
            graph(tf.constant(X)), self.summed(mesh)(X), rtol=1e-5, atol=1e-6
        )
        compiled = tf.function(graph, autograph=False, jit_compile=True)
        np.testing.assert_allclose(
            compiled(tf.constant(X)), self.summed(mesh)(X), rtol=1e-5, atol=1e-6
        )

    def test_eager_mode_has_none(self, mesh):
        np.testing.assert_allclose(
            jax2tf.convert(self.summed(mesh))(X), self.summed(mesh)(X), rtol=1e-5, atol=1e-6
        )

    def test_without_xla_ops(self, mesh):
        assert shardings_in(graph_of(self.summed(mesh), X, enable_xla=False)) == []

    def test_pmap(self):
        f = jax.pmap(lambda x, w: x @ w, in_axes=(0, None))
        found = shardings_in(graph_of(f, np.ones((8, 2, 4), np.float32), X.T))
        assert found == ["8,1,1,1 of 8", "8,1,1,1 of 8"]

    @pytest.mark.parametrize("axes", [{"data": 1, "model": 1}, {"data": 8, "model": 1}])
    def test_axes_of_one_device(self, axes):
        mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * 2)
        found = shardings_in(graph_of(self.summed(mesh), X))
        assert found == (["8,1,1 of 8"] if axes["data"] > 1 else [])

    def test_what_is_inside_of_loops_and_gradients(self, mesh):
        summed = self.summed(mesh, check_vma=False)

        def loss(x):
            y, _ = lax.scan(lambda c, _: (c * summed(c).mean(), None), x, None, length=2)
            return y.sum()

        found = shardings_in(graph_of(jax.grad(loss), X))
        assert {self.BY_BOTH, self.BY_MODEL} == set(found)

    def test_other_axes_are_left_to_the_compiler(self, mesh, on):
        def each(x):
            x = lax.with_sharding_constraint(x + 1, P(None, "model"))
            return lax.psum(x, "data")

        f = jax.shard_map(each, mesh=mesh, in_specs=P("data"), out_specs=P(), axis_names={"data"})
        with jax.set_mesh(mesh):
            graph = graph_of(f, X)
            expected = jax.jit(f)(X)
            eager = jax2tf.convert(f)(X)
        assert shardings_in(graph) == [
            f"{self.BY_DATA}, open [1, 2]",
            "1,1,2,4 of 4,2 transposed 1,0, last replicated, open [0]",
        ]
        for result in (graph(tf.constant(X)), eager):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)

    def test_a_program_inside_of_another(self, mesh):
        def inner(x):
            return lax.psum(x, "model")

        def outer(x):
            return jax.shard_map(
                inner, in_specs=P(None, "model"), out_specs=P(), axis_names={"model"}
            )(x)

        f = jax.shard_map(
            outer, mesh=mesh, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}
        )
        graph = graph_of(f, X)
        rows = f"{self.BY_DATA}, open [1, 2]"
        inside = "1,2,1,1,4 of 4,2 transposed 1,0, last replicated, open [0]"
        assert shardings_in(graph) == [rows, inside, rows]
        np.testing.assert_allclose(graph(tf.constant(X)), jax.jit(f)(X), rtol=1e-5, atol=1e-6)


def module_of(function) -> tuple[str, bool]:
    """The text of the one module in a concrete function, and whether its shardings are Shardy's."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    (node,) = (n for n in nodes if n.op == "XlaCallModule")
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, node.attr["module"].s)
        return str(module), node.attr["use_shardy_partitioner"].b


PARTITIONERS = {"shardy": True, "gspmd": False}
TPU = ("tpu",)


@pytest.fixture(params=PARTITIONERS)
def partitioner(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", PARTITIONERS[request.param])
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", before)


# What a module says of an argument by rows and of a result by rows and columns.
SHARDED = {
    "shardy": (
        'sdy.mesh @mesh = <["data"=4, "model"=2]>',
        ' <@mesh, [{"data"}, {}]>',
        ' <@mesh, [{"data"}, {"model"}]>',
    ),
    "gspmd": (
        '{mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}',
        '{mhlo.sharding = "{devices=[4,2]<=[8]}"}',
    ),
}


class TestNative:
    """Modules that carry shardings: TensorFlow partitions by them on TPUs, and runs them on one."""

    @pytest.mark.parametrize("platforms", [None, TPU, ("cpu", "tpu")])
    def test_shardings_are_in_the_module(self, on, partitioner, platforms):
        f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))
        graph = graph_of(f, X, native_serialization=True, native_serialization_platforms=platforms)
        text, is_shardy = module_of(graph)
        assert is_shardy == (partitioner == "shardy")
        assert "mhlo.num_partitions = 8" in text
        assert all(words in text for words in SHARDED[partitioner])
        if platforms == TPU:
            with pytest.raises(tf.errors.NotFoundError, match=r"CPU is not among .*\[TPU\]"):
                graph(tf.constant(X))
        else:
            np.testing.assert_allclose(graph(tf.constant(X)), f(X), rtol=1e-6)

    def test_constraints_and_open_batches(self, on, partitioner):
        def f(x):
            return lax.with_sharding_constraint(jnp.cos(x), on("data", None)) + 1

        options = {"native_serialization": True, "polymorphic_shapes": "4*b, _"}
        converted = tf.function(jax2tf.convert(f, **options), autograph=False)
        graph = converted.get_concrete_function(tf.TensorSpec([None, 4]))
        text, _ = module_of(graph)
        word = {"shardy": "sdy.sharding_constraint", "gspmd": "custom_call @Sharding"}[partitioner]
        assert text.count(word) == 1
        assert "mhlo.num_partitions = 8" in text
        np.testing.assert_allclose(graph(tf.constant(X)), jax.jit(f)(X), rtol=1e-6)

    def test_a_mesh_that_is_nowhere(self, partitioner):
        mesh = AbstractMesh((64,), ("data",), axis_types=(AxisType.Auto,))
        sharding = NamedSharding(mesh, P("data"))
        graph = graph_of(
            lambda x: lax.with_sharding_constraint(x, sharding) + 1,
            np.zeros([64], np.float32),
            native_serialization=True,
        )
        assert "mhlo.num_partitions = 64" in module_of(graph)[0]

    def test_gradients(self, on, partitioner):
        f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))

        @tf.function(autograph=False)
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = jax2tf.convert(f, native_serialization=True)(x)
            return tape.gradient(y, x)

        expected = jax.grad(lambda x: _sin(x).sum())(X)
        np.testing.assert_allclose(gradient(tf.constant(X)), expected, rtol=1e-5)

    def test_a_saved_model(self, on, partitioner, tmp_path, without_jax):
        f = jax.jit(_sin, in_shardings=on("data", None), out_shardings=on("data", "model"))
        module = tf.Module()
        module.f = tf.function(
            jax2tf.convert(f, native_serialization=True),
            autograph=False,
            input_signature=[tf.TensorSpec([8, 4])],
        )
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, tmp_path / "saved", options=options)
        np.save(tmp_path / "x.npy", X)
        code = """
        f = tf.saved_model.load(sys.argv[1] + "/saved").f
        np.save(sys.argv[1] + "/y.npy", f(np.load(sys.argv[1] + "/x.npy")))
        """
        assert without_jax(code, tmp_path) == []
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), f(X), rtol=1e-6)

    @pytest.mark.parametrize("kind", ["arguments", "constraint", "program"])
    def test_eager_calls_are_refused(self, on, mesh, kind):
        sharding = on("data", None)
        functions = {
            "arguments": jax.jit(_sin, in_shardings=sharding),
            "constraint": lambda x: lax.with_sharding_constraint(x, sharding),
            "program": jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("data"), out_specs=P("data")),
        }
        converted = jax2tf.convert(functions[kind], native_serialization_platforms=TPU)
        with pytest.raises(jax2tf.ConversionError) as refusal:
            converted(X)
        words = "eager operations. What to do: call it inside a tf.function"
        assert str(refusal.value).endswith(words)

    def test_a_program_of_each_device_is_one_for_tpus_alone(self, mesh, partitioner):
        def summed(x):
            return lax.psum(x, "data") + lax.axis_index("model")

        f = jax.shard_map(summed, mesh=mesh, in_specs=P("data"), out_specs=P(None, "model"))
        graph = graph_of(f, X, native_serialization_platforms=TPU)
        text, _ = module_of(graph)
        assert "mhlo.num_partitions = 8" in text
        # JAX 0.12 names the axes of groups by itself, which TensorFlow does not read.
        assert "replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>" in text
        word = {"shardy": "sdy.manual_computation", "gspmd": "@SPMDFullToShardShape"}[partitioner]
        assert word in text

    @pytest.mark.parametrize("platforms", [None, ("cpu", "tpu")])
    def test_elsewhere_it_is_one_program_over_whole_arrays(self, mesh, partitioner, platforms):
        def summed(x):
            return lax.scan(lambda c, _: (jnp.sin(c), lax.psum(c, "data")), x, None, length=2)[1]

        mapped = jax.shard_map(summed, mesh=mesh, in_specs=P("data"), out_specs=P())
        for f in (mapped, jax.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")):
            options = {"native_serialization": True, "native_serialization_platforms": platforms}
            graph = graph_of(f, X, **options)
            assert "mhlo.num_partitions = 1 " in module_of(graph)[0]
            np.testing.assert_allclose(graph(tf.constant(X)), f(X), rtol=1e-5, atol=1e-6)
            eager = jax2tf.convert(f, **options)
            np.testing.assert_allclose(eager(X), f(X), rtol=1e-5, atol=1e-6)
