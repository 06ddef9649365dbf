"""Files of older versions of JAX: LAPACK as 0.4.30 called it, special functions of JAX 0.10."""

from __future__ import annotations

import tarfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jax2tf
from jax2tf._src.tracing.jaxprs import equations
from tests.impl.stablehlo.old_files import write, write_special


@pytest.mark.parametrize("name", write.FUNCTIONS)
def test_lapack_as_jax_0_4_called_it(name: str):
    with tarfile.open(write.PATH) as archive:
        file = archive.extractfile(name)
        assert file is not None
        loaded = jax2tf.load(file.read())
    random = np.random.RandomState(0)
    arguments = []
    for spec in write.specs(name):
        x = random.normal(size=(*spec.shape, 2)) @ [1, 1j]
        arguments.append(np.asarray(x if spec.dtype.kind == "c" else x.real, spec.dtype))
    got, want = loaded(*arguments), jax.jit(write.FUNCTIONS[name][0])(*arguments)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def _special(name: str):
    with tarfile.open(write_special.PATH) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return jax2tf.load(file.read())


def _assert_same(x, y):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(np.asarray(x, np.float32), np.asarray(y, np.float32))


X = np.array([0.25, -0.6, 0.0, 0.9, 3.5])


@pytest.mark.parametrize("kind", ["static", "open"])
@pytest.mark.parametrize("dtype", write_special.DTYPES)
@pytest.mark.parametrize("name", ["bessel_i1e", "erf_inv", "erfc"])
def test_a_special_function_is_its_primitive_again(name: str, dtype: str, kind: str):
    loaded, source = _special(f"{name}_{dtype}_{kind}"), write_special.FUNCTIONS[name]
    x = jnp.asarray(X, dtype)
    found = [eqn.primitive.name for eqn in equations(jax.make_jaxpr(loaded)(x).jaxpr)]
    assert [primitive for primitive in found if primitive != "jit"] == [name]
    _assert_same(loaded(x), jax.jit(source)(x))
    _assert_same(*(jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(x) for f in (loaded, source)))


@pytest.mark.parametrize("kind", ["static", "open"])
def test_one_that_another_version_computes_otherwise_has_the_derivative(kind: str):
    loaded = _special(f"digamma_float32_{kind}")
    x = jnp.asarray(X, np.float32)
    got, want = loaded(x), lax.digamma(x)
    is_pole = X == 0
    np.testing.assert_array_equal(got[~is_pole], want[~is_pole])
    # JAX 0.10 gives NaN there, and JAX 0.12 has an infinity.
    assert np.isnan(got[is_pole]).all()
    of_jax = lax.digamma
    _assert_same(*(jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(x) for f in (loaded, of_jax)))


@pytest.mark.parametrize("dtype", write_special.DTYPES)
@pytest.mark.parametrize("kind", ["static", "open"])
@pytest.mark.parametrize("name", ["in_a_loop", "twice"])
def test_several_calls(name: str, dtype: str, kind: str):
    loaded = _special(f"{name}_{dtype}_{kind}")
    x = jnp.asarray(X, dtype)
    _assert_same(loaded(x), jax.jit(write_special.FUNCTIONS[name])(x))
    if name == "in_a_loop":
        found = [eqn.primitive.name for eqn in equations(jax.make_jaxpr(loaded)(x).jaxpr)]
        assert "erfc" in found
        assert "exp" not in found
    _assert_same(jax.vmap(loaded)(np.stack([x, x * 2]))[0], loaded(x))
