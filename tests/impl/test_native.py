"""The native lowering: StableHLO in one XlaCallModule op that the running TensorFlow executes."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import export
from jax.extend.mlir import ir
from jax.interpreters import mlir

import jax2tf
from jax2tf._src import compat
from jax2tf._src.native import extremes
from tests.running import MODES, assert_near, first_and_second, ops_in_order, ops_of

X = np.array([[0.5, -1.0, 2.0], [1.5, np.nan, -2.0]], np.float32)
FINITE = np.nan_to_num(X, nan=0.25)


def native(fun, **kwargs):
    return jax2tf.convert(fun, native_serialization=True, **kwargs)


def traced(fun, *specs):
    return tf.function(fun, autograph=False).get_concrete_function(*specs)


def assert_same(actual, expected, ulps=8):
    __tracebackhide__ = True
    assert_near(jax.tree.leaves(actual), jax.tree.leaves(expected), ulps, least=1, each=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", [None, "b, _"])
@pytest.mark.parametrize(
    "fun",
    [
        jax.lax.erf,  # an op of the CHLO dialect, as are the next three
        jax.lax.asinh,
        jax.lax.lgamma,
        lambda x: jax.lax.top_k(x, 2),
        jax.nn.gelu,
        lambda x: (jnp.sum(x) / x.shape[0], x @ x.T),
        lambda x: jnp.concatenate([x, jnp.zeros((x.shape[0], 1))], axis=1).reshape(-1),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x),
        lambda x: {"y": jnp.argsort(x), "z": [x > 0, x.astype(jnp.int8)]},
        # Over open dimensions JAX writes a custom call for these, which TensorFlow refines.
        lambda x: (jax.lax.cumsum(x), jax.lax.cumprod(x, reverse=True), jax.lax.cummax(x)),
        lambda x: jax.lax.top_k(x.T, x.shape[0]),
        lambda x: jax.random.bits(jax.random.key(3, impl="rbg"), x.shape),
    ],
)
def test_values(fun, shapes, mode):
    assert_same(MODES[mode](native(fun, polymorphic_shapes=shapes))(FINITE), jax.jit(fun)(FINITE))


def test_a_rule_of_jax_that_compares_open_dimensions_is_refused_by_name():
    converted = native(lambda x: jax.lax.cumprod(x).sum(), polymorphic_shapes="b, _")
    x = tf.Variable(FINITE)
    refused = pytest.raises(jax2tf.ConversionError, match=r"b - 1.*native_serialization=False")
    with tf.GradientTape() as tape, refused:
        tape.gradient(converted(x), x)


def test_the_function_is_one_op():
    concrete = traced(native(jax.nn.gelu), tf.TensorSpec([2, 3]))
    around = {"Placeholder", "Identity", "NoOp"}
    assert ops_in_order(concrete, around) == ["XlaCallModule", "IdentityN"]


@pytest.mark.parametrize("mode", MODES)
def test_extremes_keep_nan_and_the_sign_of_zero(mode):
    def fun(x, y):
        clamped = jax.lax.clamp(y, x, y), jax.lax.clamp(-0.5, x, 0.5), jnp.clip(x, 0)
        return jnp.maximum(x, y), jnp.minimum(x, y), x.max(), *clamped

    x = np.array([0.0, -0.0, np.nan, 1.0, np.inf], np.float32)
    y = np.array([-0.0, 0.0, 1.0, np.nan, -np.nan], np.float32)
    for shapes in (None, "b"):
        actual = MODES[mode](native(fun, polymorphic_shapes=shapes))(x, y)
        for a, e in zip(actual, jax.jit(fun)(x, y), strict=True):
            np.testing.assert_array_equal(np.signbit(a) & (a == 0), np.signbit(e) & (e == 0))
            np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("shape", ["2x3xf32", "?x3xf32"])
def test_a_clamp_to_scalars_is_spelt_out(shape):
    # StableHLO has it, and who serializes a function without JAX's rules may write it.
    x = f"tensor<{shape}>"
    text = f"""
    func.func @main(%low: tensor<f32>, %x: {x}, %high: tensor<f32>) -> {x} {{
      %0 = stablehlo.clamp %low, %x, %high : (tensor<f32>, {x}, tensor<f32>) -> {x}
      return %0 : {x}
    }}"""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        extremes.spell_out(module)
        assert module.operation.verify()
        assert "stablehlo.clamp" not in str(module)


def test_one_graph_serves_every_batch():
    graph = tf.function(
        native(lambda x: x - x.mean(0), polymorphic_shapes="b, ..."),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3])],
    )
    for n in (1, 4):
        x = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
        assert_same(graph(x), x - x.mean(0))
    assert graph.get_concrete_function().output_shapes == tf.TensorShape([None, 3])


class TestDimensions:
    """Broken assumptions are found by TensorFlow ops, not by the module."""

    def test_in_a_graph(self):
        graph = tf.function(
            native(lambda x: x * 2, polymorphic_shapes="b, b"),
            autograph=False,
            input_signature=[tf.TensorSpec([None, None])],
        )
        assert graph(tf.ones([2, 2])).shape == (2, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape\[1\] should be b"):
            graph(tf.ones([2, 3]))

    def test_constraints(self):
        converted = native(
            lambda x: x[:4], polymorphic_shapes="b, _", polymorphic_constraints=["b >= 4"]
        )
        assert converted(np.ones((8, 3), np.float32)).shape == (4, 3)
        with pytest.raises(ValueError, match="constraint b >= 4 does not hold"):
            converted(np.ones((3, 3), np.float32))

    def test_a_dimension_of_an_argument_that_is_not_used(self):
        converted = native(lambda unused, y: y * 2, polymorphic_shapes=["b, a", "b, 2*a"])
        assert converted(np.ones((2, 3)), np.ones((2, 6), np.float32)).shape == (2, 6)


def test_x64():
    with jax.enable_x64(True):
        assert_same(native(jnp.sin)(np.float64(2)), jnp.sin(np.float64(2)))
    assert native(jnp.sin)(np.float64(2)).dtype == tf.float32


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_integers_of_four_bits(dtype, mode):
    x = np.arange(16).astype(dtype)

    def fun(x):
        return x[::-1], x + x

    for a, e in zip(MODES[mode](native(fun))(x), jax.jit(fun)(x), strict=True):
        np.testing.assert_array_equal(a, e)


def test_nothing():
    assert native(lambda x: ())(FINITE) == ()


def test_keys():
    def fun(key):
        return jax.random.split(key), jax.random.normal(key, (3,))

    key = jax.random.key(3)
    keys, normal = native(fun)(key)
    np.testing.assert_array_equal(keys, jax.random.key_data(fun(key)[0]))
    assert_same(normal, fun(key)[1], ulps=8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", [None, "b, _"])
def test_gradients(mode, shapes):
    def fun(x):
        return jnp.sum(jnp.tanh(x @ x.T)) + jax.nn.relu(x).sum()

    converted = native(fun, polymorphic_shapes=shapes)

    def derivatives(x):
        return first_and_second(converted, x)

    def norm(x):
        return jnp.sum(jax.grad(fun)(x) ** 2)

    x = np.array([[0.5, 0.0, 0.25]], np.float32)
    expected = jax.grad(fun)(x), jax.grad(norm)(x)
    assert_same(MODES[mode](derivatives)(tf.constant(x)), expected, ulps=8)


def test_without_a_gradient():
    converted = native(jnp.sin, with_gradient=False)
    x = tf.constant(FINITE)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x)
    with pytest.raises(LookupError, match="with_gradient=False"):
        tape.gradient(y, x)


def test_a_saved_module_runs_without_jax(tmp_path, without_jax):
    module = tf.Module()
    module.w = tf.Variable(np.ones((3, 2), np.float32))
    converted = native(lambda w, x: jax.nn.gelu(x @ w), polymorphic_shapes=[None, "b, _"])
    module.f = tf.function(
        lambda x: converted(module.w, x),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3])],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    lines = without_jax(
        """
        import json
        module = tf.saved_model.load(sys.argv[1])
        for n in (1, 3):
            x = tf.fill([n, 3], 0.5)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = module.f(x)
            print(json.dumps([y.numpy().tolist(), tape.gradient(y, x).numpy().tolist()]))
        """,
        tmp_path,
    )
    for n, line in zip((1, 3), lines, strict=True):
        x = jnp.full((n, 3), 0.5)
        y, pullback = jax.vjp(lambda x: jax.nn.gelu(x @ jnp.ones((3, 2))), x)
        assert_same([np.float32(v) for v in json.loads(line)], [y, *pullback(y * 0 + 1)])


class TestPlatforms:
    def test_one_module_for_several(self):
        def fun(x):
            return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x + 2)

        converted = native(fun, native_serialization_platforms=["cuda", "cpu"])
        assert_same(converted(FINITE), FINITE + 1)

    def test_a_module_for_another_one_does_not_run_here(self):
        converted = native(jnp.sin, native_serialization_platforms=["tpu"])
        with pytest.raises(tf.errors.OpError, match="platform CPU is not among the platforms"):
            converted(FINITE)

    @pytest.mark.parametrize("platforms", ["cpu", ["CPU"], ["cpu", "gpu"]])
    def test_names_of_platforms(self, platforms):
        with pytest.raises(
            ValueError, match=r"should be a sequence of names among cpu, cuda, rocm"
        ):
            native(jnp.sin, native_serialization_platforms=platforms)

    def test_checks_that_are_none(self):
        with pytest.raises(TypeError, match=r"DisabledSafetyCheck\.platform\(\).* got 'platform'"):
            native(jnp.sin, native_serialization_disabled_checks=["platform"])

    def test_a_mesh_of_one_device_has_no_parts(self):
        """Eager mode runs it, where a partitioned module would need a graph."""
        auto = (jax.sharding.AxisType.Auto,)
        mesh = jax.sharding.AbstractMesh((1,), ("a",), axis_types=auto)
        spec = jax.sharding.PartitionSpec("a")
        fun = jax.shard_map(jnp.sin, mesh=mesh, in_specs=spec, out_specs=spec)
        converted = native(
            fun,
            native_serialization_platforms=["tpu"],
            native_serialization_disabled_checks=[export.DisabledSafetyCheck.platform()],
        )
        assert_same(converted(FINITE), np.sin(FINITE))

    def test_unless_that_check_is_disabled(self):
        converted = native(
            jnp.sin,
            native_serialization_platforms=["tpu"],
            native_serialization_disabled_checks=[export.DisabledSafetyCheck.platform()],
        )
        assert_same(converted(FINITE), np.sin(FINITE))


class TestRefusals:
    @pytest.mark.parametrize(
        ("fun", "primitive"),
        [(jnp.linalg.cholesky, "cholesky"), (jnp.linalg.eigh, "eigh"), (jnp.linalg.qr, "geqrf")],
    )
    @pytest.mark.parametrize("mode", MODES)
    def test_custom_calls_that_tensorflow_lacks(self, fun, primitive, mode):
        converted = MODES[mode](native(fun))
        with pytest.raises(jax2tf.UnsupportedPrimitiveError) as error:
            converted(np.eye(3, dtype=np.float32))
        for part in (f"'{primitive}'", "custom call of 'lapack_", "native_serialization=False"):
            assert part in str(error.value)

    def test_a_custom_call_may_be_allowed(self):
        check = export.DisabledSafetyCheck.custom_call("lapack_spotrf_ffi")
        converted = native(jnp.linalg.cholesky, native_serialization_disabled_checks=[check])
        assert "XlaCallModule" in ops_of(traced(converted, tf.TensorSpec([3, 3])))

    def test_callbacks(self):
        converted = native(lambda x: jax.pure_callback(np.sin, x, x))
        with pytest.raises(jax2tf.ConversionError, match="native_serialization=False"):
            converted(FINITE)

    @pytest.mark.parametrize(
        "option",
        [
            {"native_serialization_platforms": ["cpu"]},
            {"native_serialization_disabled_checks": [jax2tf.DisabledSafetyCheck.platform()]},
        ],
    )
    def test_an_option_of_it_means_it(self, option):
        converted = jax2tf.convert(jnp.sin, **option)
        assert "XlaCallModule" in ops_of(traced(converted, tf.TensorSpec([3])))
        assert_same(converted(FINITE), np.sin(FINITE))
        with pytest.raises(ValueError, match="options of native serialization, and native_seri"):
            jax2tf.convert(jnp.sin, native_serialization=False, **option)
        with pytest.raises(ValueError, match=r"an option of it\) needs XLA, and enable_xla=False"):
            jax2tf.convert(jnp.sin, enable_xla=False, **option)

    def test_without_xla(self):
        with pytest.raises(ValueError, match="enable_xla=False forbids it"):
            native(jnp.sin, enable_xla=False)


def test_large_constants_are_outside_of_the_module():
    table = np.arange(40_000, dtype=np.float32)
    converted = native(lambda i: jnp.asarray(table)[i])
    graph = traced(converted, tf.TensorSpec([], "int32"))
    assert_same(graph(tf.constant(7)), np.float32(7))
    (call,) = (op for op in graph.graph.get_operations() if op.type == "XlaCallModule")
    assert len(call.get_attr("module")) < 10_000


def test_the_version_is_one_that_tensorflow_reads():
    written = tuple(int(n) for n in compat.xla.stablehlo_version().split("."))
    assert written >= (1, 0, 0)


def test_what_jax_cannot_export_is_named_by_its_op():
    x = tf.constant(np.ones(3, jnp.float8_e5m2))
    with pytest.raises(jax2tf.ConversionError) as refused:
        native(jax.lax.erf)(x)
    words = str(refused.value)
    assert "cannot export the function: failed to legalize operation 'chlo.erf'" in words
    assert words.endswith("What to do: convert with native_serialization=False")
