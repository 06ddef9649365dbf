"""Primitives without a rule: lowered as what JAX makes of them, or refused with what to do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import export
from jax.experimental import pallas as pl
from jax.experimental import sparse
from jax.experimental.sparse.linalg import spsolve
from jax.extend import core as jex_core
from jax.interpreters import mlir

import jax2tf

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -2.0]], np.float32)

HERE = "test_foreign_programs.py"


def refused(fun, *args, **options) -> jax2tf.UnsupportedPrimitiveError:
    with pytest.raises(jax2tf.UnsupportedPrimitiveError) as refusal:
        jax2tf.convert(fun, **options)(*args)
    return refusal.value


def assert_says(error, *pieces):
    __tracebackhide__ = True
    missing = [piece for piece in pieces if piece not in str(error)]
    assert not missing, f"{missing} not in {error}"


class TestSparse:
    def test_a_matrix_is_an_argument_like_any_tree(self):
        matrix = sparse.BCOO.fromdense(X)
        actual = jax2tf.convert(lambda m, v: (m @ v, m.T, m.sum(0)))(matrix, X[0])
        product, transposed, total = actual
        np.testing.assert_allclose(product, X @ X[0], rtol=1e-6)
        np.testing.assert_array_equal(jax.tree.map(np.asarray, transposed).todense(), X.T)
        np.testing.assert_allclose(jax.tree.map(np.asarray, total).todense(), X.sum(0), rtol=1e-6)

    def test_gradient_with_respect_to_the_elements_in_an_open_batch(self):
        matrix = sparse.BCOO.fromdense(X)

        def loss(data, rows):
            rows = jnp.asarray(rows)
            return jnp.sum((rows @ sparse.BCOO((data, matrix.indices), shape=X.shape)) ** 2)

        converted = tf.function(
            jax2tf.convert(loss, polymorphic_shapes=[None, "b, _"], enable_xla=False),
            autograph=False,
            input_signature=[tf.TensorSpec([5]), tf.TensorSpec([None, 2])],
        )
        data = tf.constant(np.asarray(matrix.data))
        for n in (1, 4):
            rows = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
            with tf.GradientTape() as tape:
                tape.watch(data)
                value = converted(data, tf.constant(rows))
            expected = jax.value_and_grad(loss)(matrix.data, rows)
            np.testing.assert_allclose(value, expected[0], rtol=1e-5)
            np.testing.assert_allclose(tape.gradient(value, data), expected[1], rtol=1e-5)

    def test_a_direct_solve_is_refused(self):
        m = sparse.BCSR.fromdense(np.eye(3, dtype=np.float32))
        error = refused(lambda b: spsolve(m.data, m.indices, m.indptr, b), X[0])
        assert_says(error, "'spsolve'", "JAX calls SciPy", HERE, "jax.pure_callback")
        spec = jax.ShapeDtypeStruct((3,), np.float32)

        def on_host(b):
            return jax.pure_callback(lambda b: spsolve(m.data, m.indices, m.indptr, b), spec, b)

        np.testing.assert_allclose(jax2tf.convert(on_host)(X[0]), X[0])


def exported(fun, *specs):
    return export.export(jax.jit(fun))(*specs)


class TestExported:
    def test_sizes_and_values_of_dimensions(self, mode):
        (b,) = export.symbolic_shape("b")
        module = exported(
            lambda x: (x - x.mean(0), x.shape[0]), jax.ShapeDtypeStruct((b, 3), np.float32)
        )

        def fun(x):
            doubled = jnp.concatenate([x, x])
            return module.call(doubled)[0][: x.shape[0]], module.call(x)[1]

        converted = jax2tf.convert(fun, polymorphic_shapes="n, _")
        for rows in (X, X[:1]):
            for a, e in zip(mode(converted)(rows), fun(rows), strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-6)

    def test_one_graph_serves_every_batch_and_has_gradients(self, tmp_path):
        (b,) = export.symbolic_shape("b")
        module = exported(jnp.tanh, jax.ShapeDtypeStruct((b, 3), np.float32))
        module = export.deserialize(module.serialize(vjp_order=1))

        def fun(x):
            return jnp.sum(module.call(x * 2) ** 2, axis=1)

        holder = tf.Module()
        holder.f = tf.function(
            jax2tf.convert(fun, polymorphic_shapes="n, _"),
            autograph=False,
            input_signature=[tf.TensorSpec([None, 3])],
        )
        tf.saved_model.save(holder, str(tmp_path))
        restored = tf.saved_model.load(str(tmp_path))
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = restored.f(x)
        np.testing.assert_allclose(y, fun(X), rtol=1e-5)
        expected = jax.grad(lambda x: fun(x).sum())(X)
        np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5)

    def test_without_a_vjp(self):
        module = exported(jnp.sin, jax.ShapeDtypeStruct((2, 3), np.float32))
        without = export.deserialize(module.serialize(vjp_order=0))
        assert jax2tf.convert(without.call)(X).shape == (2, 3)
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax2tf.convert(without.call)(x)
        with pytest.raises(jax2tf.NotDifferentiableError, match="VJP"):
            tape.gradient(y, x)

    def test_of_another_platform(self):
        spec = jax.ShapeDtypeStruct((2, 3), np.float32)
        module = export.export(jax.jit(jnp.sin), platforms=["cpu", "cuda"])(spec)
        np.testing.assert_allclose(jax2tf.convert(module.call)(X), np.sin(X), rtol=1e-6)

    def test_is_refused_without_xla_ops(self):
        module = exported(jnp.sin, jax.ShapeDtypeStruct((2, 3), np.float32))
        error = refused(lambda x: module.call(x), X, enable_xla=False)
        assert_says(
            error,
            "'call_exported'",
            "StableHLO",
            HERE,
            "convert the function that",
        )


class TestPallas:
    @staticmethod
    def doubled(x, interpret=True):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, out_shape=out, interpret=interpret)(x)

    def test_in_interpret_mode(self, mode):
        def fun(x):
            return jax.jvp(self.doubled, (x,), (jnp.cos(x),))

        for actual, expected in zip(mode(jax2tf.convert(fun))(X), fun(X), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_a_kernel_for_a_device_is_refused(self):
        error = refused(lambda x: self.doubled(x, interpret=False), X)
        assert_says(error, "'pallas_call'", "one kind of device", "interpret=True), which is")


class TestForeignCode:
    """jax.ffi calls, by the example of LAPACK's, which jaxlib registers."""

    @staticmethod
    def cholesky(x):
        spec = jax.ShapeDtypeStruct(x.shape, x.dtype)
        info = jax.ShapeDtypeStruct((), np.int32)
        call = jax.ffi.ffi_call("lapack_spotrf_ffi", (spec, info))
        return call(x, uplo=np.uint8(ord("L")))[0]

    def test_is_refused_with_the_remedies(self):
        jnp.linalg.cholesky(jnp.eye(2)).block_until_ready()  # has JAX load LAPACK
        matrix = np.array([[4.0, 2.0], [2.0, 3.0]], np.float32)
        error = refused(self.cholesky, matrix)
        assert_says(
            error,
            "'ffi_call'",
            "'lapack_spotrf_ffi'",
            HERE,
            "inside of jax.pure_callback",
            "DisabledSafetyCheck.custom_call('lapack_spotrf_ffi')",
        )
        spec = jax.ShapeDtypeStruct((2, 2), np.float32)
        on_host = jax2tf.convert(lambda x: jax.pure_callback(self.cholesky, spec, x))
        np.testing.assert_allclose(on_host(matrix), self.cholesky(matrix), rtol=1e-6)

    def test_the_native_lowering_says_so_in_one_line(self):
        error = refused(self.cholesky, np.eye(2, dtype=np.float32), native_serialization=True)
        assert_says(error, "'ffi_call'", "'lapack_spotrf_ffi'", HERE, "pure_callback")
        assert "native_serialization=False" not in str(error)
        assert len(str(error)) < 1000


def primitive_with(name, implementation=None, lowering=None):
    primitive = jex_core.Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    if implementation is not None:
        primitive.def_impl(implementation)
    if lowering is not None:
        mlir.register_lowering(primitive, lowering)
    return primitive


class TestPrimitivesOfOthers:
    def test_compiled_as_a_function(self):
        lowering = mlir.lower_fun(lambda x: jnp.sin(x) * 2, multiple_results=False)
        primitive = primitive_with("with_function", lambda x: np.sin(x) * 2, lowering)
        for enable_xla in (True, False):
            actual = jax2tf.convert(lambda x: primitive.bind(x), enable_xla=enable_xla)(X)
            np.testing.assert_allclose(actual, np.sin(X) * 2, rtol=1e-6)

    def test_compiled_to_stablehlo_alone(self, mode):
        from jax.extend.mlir.dialects import stablehlo

        primitive = primitive_with(
            "with_op", lambda x: np.sin(x), lambda ctx, x: [stablehlo.sine(x)]
        )
        actual = mode(jax2tf.convert(lambda x: primitive.bind(x), polymorphic_shapes="b, _"))(X)
        np.testing.assert_allclose(actual, np.sin(X), rtol=1e-6)
        error = refused(lambda x: primitive.bind(x), X, enable_xla=False)
        assert_says(error, "'with_op'", "enable_xla=True", HERE)

    def test_implemented_in_numpy_alone(self):
        primitive = primitive_with("with_numpy", lambda x: np.sin(np.asarray(x)))
        error = refused(lambda x: primitive.bind(x), X)
        assert_says(error, "'with_numpy'", "no JAX function", HERE, "pure_callback")


class TestWhereItComesFrom:
    """Each refusal names a line of the user's; if none bound the primitive, the function."""

    def test_a_function_of_jax_itself(self):
        module = exported(jnp.sin, jax.ShapeDtypeStruct((2, 3), np.float32))
        error = refused(module.call, X, enable_xla=False)
        assert_says(error, "It comes from the function call. What to do")

    def test_what_a_primitive_of_another_library_is_made_of(self):
        inner = primitive_with("inner_part")
        outer = primitive_with("outer_part", lambda x: jax.jit(lambda x: inner.bind(x))(x))
        wrapped = jex_core.jaxpr_as_fun(jax.make_jaxpr(lambda x: outer.bind(x))(X))
        error = refused(lambda x: wrapped(x)[0], X)
        assert_says(error, "'inner_part'", HERE)

    def test_equations_without_a_source(self):
        primitive = primitive_with("sourceless")
        closed = jax.make_jaxpr(lambda x: primitive.bind(x))(X)
        bare = [eqn.replace(source_info=eqn.source_info.replace()) for eqn in closed.jaxpr.eqns]
        for eqn in bare:
            eqn.source_info.traceback = None
        closed = jex_core.ClosedJaxpr(closed.jaxpr.replace(eqns=bare), closed.consts)

        def evaluated(x):
            return jex_core.jaxpr_as_fun(closed)(x)[0]

        error = refused(evaluated, X)
        assert "comes from ." not in str(error)
        assert_says(error, "It comes from ")

    def test_a_function_of_jax_that_only_the_native_lowering_lacks(self):
        error = refused(jnp.linalg.cholesky, np.eye(2, dtype=np.float32), native_serialization=True)
        assert_says(error, "'cholesky'", "It comes from the function cholesky. What to do")
