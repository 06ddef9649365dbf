"""Programs of complex numbers as programs of real ones, for targets that have no others."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import assert_near

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)
W = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)
X = RNG.normal(size=(3, 4)).astype(np.float32)
# LiteRT with complex results, which it has not, so that what comes of the pairs can be seen.
LITERT = jax2tf.TARGETS["litert"]
IN_PAIRS = dataclasses.replace(
    LITERT, lacks={op: dtypes for op, dtypes in LITERT.lacks.items() if op != "Complex"}
)
SPECIAL = np.array([0, -0.0, 1, -2, np.inf, -np.inf, np.nan], np.float32)
ALL = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL], np.complex64)


def scanned(z):
    return jax.lax.scan(lambda c, x: (c * x, {"c": c, "size": jnp.abs(c)}), z[0], z)


def looped(z):
    def going(state):
        i, c = state
        return (i < 5) & (jnp.abs(c).sum() < 100)

    return jax.lax.while_loop(going, lambda s: (s[0] + 1, s[1] * s[1] + 0.5j), (0, z))


def reflected(z):
    reflectors, taus = jnp.linalg.qr(z.T, mode="raw")
    applied = [
        jax.lax.linalg.ormqr(reflectors.T, taus, c, left=left, transpose=transpose)
        for left, c in ((True, W.T), (False, W))
        for transpose in (False, True)
    ]
    return jax.lax.linalg.householder_product(reflectors.T, taus), applied


FUNCTIONS = {
    "arithmetic": lambda z: (z + W) * z - z / W + (-z) * 2j,
    "parts": lambda z: (z.real, z.imag, jnp.conj(z), jnp.conj(z.real)),
    "products of reals": lambda z: lax.dot_general(
        z.real, z.imag, (((1,), (1,)), ((), ())), preferred_element_type=jnp.complex64
    ),
    "abs": jnp.abs,
    "sign": jnp.sign,
    "angle": jnp.angle,
    "powers": lambda z: (z**3, z**-2, z**0, z**W, z**2.5, jnp.square(z)),
    "exp": lambda z: (jnp.exp(z), jnp.log(z), jax.nn.sigmoid(z)),
    "roots": lambda z: (jnp.sqrt(z), jax.lax.rsqrt(z)),
    "circular": lambda z: (jnp.sin(z), jnp.cos(z), jnp.sinh(z), jnp.cosh(z), jnp.tanh(z)),
    "comparisons": lambda z: (z == W, z != z.at[0, 0].set(1)),
    "dtypes": lambda z: (z.astype(bool), z.real.astype(jnp.complex64), z.astype(jnp.complex64)),
    "moved": lambda z: (z.T, z[::-1], z[1:, ::2], jnp.pad(z, 1), jnp.concatenate([z, W], 1)),
    "chosen": lambda z: (jnp.where(X > 0, z, W), z[jnp.array([2, 7])], jnp.take(z, 9, axis=1)),
    "updated": lambda z: (z.at[1].add(W[0]), z.at[:, 2].set(1j), z.at[9, 0].add(1)),
    "subtracted": lambda z: z.at[1].subtract(W[0]),
    "extremes": lambda z: (jnp.maximum(z, W), jnp.minimum(z, W), jax.lax.clamp(-W, z, W)),
    "cumulative logarithms": lambda z: (
        jax.lax.cumlogsumexp(z * 9),
        jax.lax.cumlogsumexp(z * 9, 1, reverse=True),
    ),
    "cumulative extremes": lambda z: (jax.lax.cummax(z), jax.lax.cummin(z, 1, reverse=True)),
    "reductions": lambda z: (
        jax.lax.reduce(z, np.complex64(1j), lambda x, y: x + y + x * y, (1,)),
        jax.lax.reduce_window(z, np.complex64(1), jax.lax.mul, (2, 3), (1, 2), "SAME"),
        jax.lax.reduce_window(z, -np.inf, jax.lax.max, (2, 2), (1, 1), "SAME"),
    ),
    "product": lambda z: (z.prod(1), z.prod(), z[:, :1].prod(1), z[:, :0].prod(1)),
    "sorted": lambda z: (jnp.sort(z, 0), jax.lax.sort((jnp.round(z), z), num_keys=1)),
    "repeated": lambda z: jnp.tile(z, (2, 3)),
    "logarithms": lambda z: (jnp.log1p(z), jnp.log1p(z * 1e-4), jnp.log2(z)),
    "inverse circular": lambda z: (jnp.arccos(z), jnp.arcsin(z), jnp.arctan(z)),
    "inverse hyperbolic": lambda z: (jnp.arccosh(z), jnp.arcsinh(z), jnp.arctanh(z)),
    "angle of two": lambda z: jax.lax.atan2(z, W),
    "other powers": lambda z: (jnp.exp2(z), jnp.tan(z)),
    "lu": lambda z: jax.lax.linalg.lu(z.T @ W),
    "qr": lambda z: (jnp.linalg.qr(z), jnp.linalg.qr(z.T, mode="complete")),
    "cholesky": lambda z: jnp.linalg.cholesky(z.T @ z.conj() + np.eye(4)),
    "triangular": lambda z: [
        jax.lax.linalg.triangular_solve(
            z[:, :3] + 3 * np.eye(3),
            W,
            left_side=True,
            lower=lower,
            conjugate_a=conjugate,
            transpose_a=conjugate,
        )
        for lower in (False, True)
        for conjugate in (False, True)
    ],
    "reflections": reflected,
    "eigenvalues": lambda z: (
        jnp.linalg.eigvalsh(z[:, :3], symmetrize_input=False),
        jnp.linalg.eigvalsh(z[:, :3], UPLO="U", symmetrize_input=False),
    ),
    "singular values": lambda z: (
        jnp.linalg.svd(z, compute_uv=False),
        jnp.linalg.svd(z.T, compute_uv=False),
    ),
    "tridiagonal": lambda z: jax.lax.linalg.tridiagonal_solve(*z, W.T),
    "solve": lambda z: jnp.linalg.solve(z[:, :3] + 3 * np.eye(3), W),
    "sums": lambda z: (z.sum(1), z.mean(), jnp.cumsum(z, 1), jnp.cumprod(z, 1)),
    "products": lambda z: (z @ W.T, jnp.einsum("ij,kj->ik", z, W), jnp.vdot(z, W)),
    "convolution": lambda z: jax.vmap(lambda a, b: jnp.convolve(a, b))(z, jnp.asarray(W)),
    "powers less one": lambda z: (jnp.expm1(z), jnp.expm1(z * 1e-4)),
    "along an axis": lambda z: (z.max(1), z.min(0), z.max(), z[:, :0].max(1, initial=-1)),
    "scattered": lambda z: (
        z.at[jnp.array([1, 1, 0])].multiply(W),
        z.at[:, jnp.array([1, 1, 9])].min(W[:, :3]),
        z.at[1, 2].max(W[0, 0]),
        z.at[jnp.array([0, 2]), jnp.array([3, 1])].multiply(W[0, :2], unique_indices=True),
        z.at[jnp.array([0, 9, -1])].multiply(W, mode="clip"),
    ),
    "applied": lambda z: (z.at[1].apply(jnp.exp), z.at[jnp.array([2, 2])].apply(lambda z: 2j * z)),
    "segments": lambda z: (
        jax.ops.segment_prod(z, jnp.array([0, 2, 0]), 4),
        jax.ops.segment_sum(z, jnp.array([0, 2, 0]), 4),
    ),
    "filled": lambda z: z.at[jnp.array([1, 7])].get(mode="fill", fill_value=3 - 2j),
    "products with real numbers": lambda z: (
        lax.dot_general(z, X, (((1,), (1,)), ((), ()))),
        lax.dot_general(X, z, (((1,), (1,)), ((), ())), preferred_element_type=np.complex64),
    ),
    "groups of rows": lambda z: lax.ragged_dot(z, jnp.stack([W.T, 2j * W.T]), jnp.array([1, 2])),
    "without a rule": lambda z: jax.pure_callback(lambda z: np.asarray(z) * 2, z, z) * 2,
    "scan": scanned,
    "while": looped,
    "mapped while": jax.vmap(looped),
    "cond": lambda z: jax.lax.cond(z.real.sum() > 0, lambda z: z * 2, jnp.conj, z),
    "switch": lambda z: jax.lax.switch(1, [jnp.conj, lambda z: z + 1j, jnp.exp], z),
    "calls": lambda z: jax.jit(jax.checkpoint(lambda z: z * jnp.exp(1j * z)))(z),
    "unused": lambda z: jnp.linalg.slogdet(z.real[:, :3])[1] + z.imag.sum(),
    "recurrence": lambda z: jax.lax.associative_scan(jnp.multiply, z, axis=1),
}


def complex_ops(graph):
    return {op.type for op in graph.get_operations() for x in op.outputs if x.dtype.is_complex}


def graph_of(fun, *args, **options):
    leaves = jax.tree.leaves(args)
    function = tf.function(jax2tf.convert(fun, target=IN_PAIRS, **options), autograph=False)
    return function.get_concrete_function(*[tf.TensorSpec(x.shape, x.dtype) for x in leaves])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_complex_numbers(name):
    fun = FUNCTIONS[name]
    assert_near(
        jax.tree.map(np.asarray, jax2tf.convert(fun, target=IN_PAIRS)(Z)), jax.jit(fun)(Z), ulps=64
    )


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"without a rule"}))
def test_arguments_and_results_alone_are_complex(name):
    def of_parts(x, y):
        leaves = jax.tree.leaves(FUNCTIONS[name](jax.lax.complex(x, y)))
        return [part for leaf in leaves for part in (leaf.real, jnp.imag(leaf))]

    assert complex_ops(graph_of(of_parts, X, X).graph) == set()


SPECIAL_FUNCTIONS = {
    "abs": jnp.abs,
    "acos": jnp.arccos,
    "acosh": jnp.arccosh,
    "asin": jnp.arcsin,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "atanh": jnp.arctanh,
    "cos": jnp.cos,
    "cosh": jnp.cosh,
    "cumlogsumexp": jax.lax.cumlogsumexp,
    "cumprod": functools.partial(jax.lax.cumprod, reverse=True),
    "divide": lambda z: z / z[::-1],
    "exp": jnp.exp,
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "logistic": jax.nn.sigmoid,
    "max": lambda z: jnp.stack([z, z[::-1], jnp.roll(z, 3)]).max(0),
    "min": lambda z: jnp.stack([z, z[::-1], jnp.roll(z, 3)]).min(0),
    "log": jnp.log,
    "log1p": jnp.log1p,
    "maximum": lambda z: jnp.maximum(z, z[::-1]),
    "minimum": lambda z: jnp.minimum(z, z[::-1]),
    "multiply": lambda z: z * z[::-1],
    "rsqrt": jax.lax.rsqrt,
    "sign": jnp.sign,
    "sin": jnp.sin,
    "sinh": jnp.sinh,
    "sqrt": jnp.sqrt,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
}


@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_infinities_and_nans(name):
    fun = SPECIAL_FUNCTIONS[name]
    # JAX 0.10 says that the size of an infinity with a NaN is a NaN, and 0.12 that it is infinite.
    z = ALL[~(np.isinf(ALL) & (np.isnan(ALL.real) | np.isnan(ALL.imag)))] if name == "abs" else ALL
    expected = np.asarray(jax.jit(fun)(z))
    actual = np.asarray(jax2tf.convert(fun, target=IN_PAIRS)(z))
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(actual), part(expected), rtol=1e-6, atol=1e-6)


LARGE_AND_SMALL = {
    name: SPECIAL_FUNCTIONS[name]
    for name in (
        *("abs", "acos", "acosh", "asin", "asinh", "cos", "cosh", "exp", "exp2", "log", "logistic"),
        *("rsqrt", "sign", "sin", "sqrt", "tan", "tanh"),
    )
} | {
    # What is nearer to a pole than JAX itself can tell is left out.
    "atan": lambda z: jnp.arctan(jnp.where(jnp.abs(z.imag) == 1, 2, z)),
    "atanh": lambda z: jnp.arctanh(jnp.where(jnp.abs(z.real) == 1, 2, z)),
    "log1p": lambda z: jnp.log1p(jnp.where(z.real == -1, 2, z)),
    "square": jax.lax.square,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LARGE_AND_SMALL)
def test_large_and_small_numbers(name, dtype):
    limits = np.finfo(dtype)
    sizes = [1e-5, 0.5, 1, 20, 100, 1e9, np.sqrt(limits.max), limits.max, 4 * limits.tiny]
    parts = np.array([0, *sizes, *np.negative(sizes)], dtype)
    z = np.array([complex(a, b) for a in parts for b in parts])
    fun = LARGE_AND_SMALL[name]
    with jax.enable_x64(dtype == np.float64):
        z = z.astype(np.result_type(dtype, np.complex64))
        expected = np.asarray(jax.jit(fun)(z))
        target = dataclasses.replace(
            jax2tf.TARGETS["tensorflow"],
            computes_in={"complex64": "float32", "complex128": "float64"},
        )
        actual = np.asarray(jax2tf.convert(fun, target=target)(z))
    sizes = [np.abs(np.nan_to_num(f(expected), posinf=0, neginf=0)) for f in (np.real, np.imag)]
    near = 32 * limits.eps * np.maximum(*sizes) + 8 * limits.tiny
    for part in (np.real, np.imag):
        one, other = part(actual), part(expected)
        with np.errstate(all="ignore"):
            is_same = (one == other) | (np.isnan(one) & np.isnan(other))
            is_same |= np.isfinite(other) & (np.abs(one - other) <= near)
        where = np.flatnonzero(~is_same)
        assert not where.size, (z[where], one[where], other[where])


def test_bools_are_of_the_real_part():
    z = np.array([1j, 1, 0, complex(np.nan, 0), complex(0, np.inf)], np.complex64)
    convert = functools.partial(lax.convert_element_type_p.bind, new_dtype=np.dtype(bool))
    fun = functools.partial(convert, weak_type=False, sharding=None)
    actual = np.asarray(jax2tf.convert(fun, target=IN_PAIRS)(z))
    np.testing.assert_array_equal(actual, jax.jit(fun)(z))


@pytest.mark.parametrize("n", [1, 2, 7, 16, 31, 360, 512])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_a_transform(kind, n):
    fun = functools.partial(getattr(jnp.fft, kind), n=n)
    z = (RNG.normal(size=(2, n)) + 1j * RNG.normal(size=(2, n))).astype(np.complex64)
    z = z.real if kind in ("rfft", "ihfft") else z
    converted = jax2tf.convert(fun, target=IN_PAIRS)
    assert_near(np.asarray(converted(z)), jax.jit(fun)(z), ulps=32)


@pytest.mark.parametrize("kind", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "rfftn"])
def test_a_transform_of_several_axes(kind):
    fun = getattr(jnp.fft, kind)
    z = Z.real if kind.startswith("r") else Z
    assert_near(np.asarray(jax2tf.convert(fun, target=IN_PAIRS)(z)), jax.jit(fun)(z), ulps=32)


# JAX has no derivative of these (or none that is not rounding), or they have no complex results.
NOT_DIFFERENTIABLE = {
    "abs",
    "along an axis",
    "angle",
    "applied",
    "comparisons",
    "cumulative extremes",
    "cumulative logarithms",
    "eigenvalues",
    "extremes",
    "mapped while",
    "reductions",
    "reflections",
    "scattered",
    "segments",
    "singular values",
    "sorted",
    "unused",
    "while",
    "without a rule",
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - NOT_DIFFERENTIABLE))
def test_the_gradient_of_a_function_of_complex_numbers(name):
    def real(z):
        leaves = [y for y in jax.tree.leaves(FUNCTIONS[name](z)) if jnp.iscomplexobj(y)]
        return sum((leaf.real * 0.5 + leaf.imag * leaf.imag).sum() for leaf in leaves)

    z = tf.constant(Z)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = jax2tf.convert(real, target=IN_PAIRS)(z)
    expected = np.conj(jax.jit(jax.grad(real))(Z))
    gradient = tape.gradient(y, z, unconnected_gradients="zero")
    assert_near(np.asarray(gradient), np.asarray(expected), ulps=256)


@pytest.mark.parametrize("part", [jnp.real, jnp.imag, jnp.abs, jnp.angle])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("batch", ["known", "open"])
def test_the_gradient_of_a_part(part, shape, batch):
    z = (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)
    spec = ", ".join("abc"[: len(shape)]) if batch == "open" and 0 not in shape else None
    converted = jax2tf.convert(part, target=IN_PAIRS, polymorphic_shapes=spec)

    @functools.partial(tf.function, autograph=False)
    def gradient(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = converted(z)
        return tape.gradient(y, z)

    expected = np.conj(jax.grad(lambda z: part(z).sum())(z))
    np.testing.assert_allclose(gradient(tf.constant(z)), expected, rtol=1e-5)


def test_scatters_of_an_open_size():
    def fun(z, i, w):
        return z.at[i].multiply(w), z.at[i].max(w), z.at[i].apply(jnp.conj)

    i = np.array([1, 1, 5], np.int32)
    converted = jax2tf.convert(fun, target=IN_PAIRS, polymorphic_shapes=["b, 4", "n", "n, 4"])
    graph = tf.function(converted, autograph=False).get_concrete_function(
        tf.TensorSpec([None, 4], tf.complex64),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None, 4], tf.complex64),
    )
    results = graph(tf.constant(Z), tf.constant(i), tf.constant(W))
    assert_near([np.asarray(y) for y in results], list(jax.jit(fun)(Z, i, W)), ulps=16)


def test_any_batch():
    def fun(x):
        return jnp.abs(jnp.fft.rfft(x)).sum(1), jnp.fft.irfft(jnp.fft.rfft(x))

    converted = jax2tf.convert(fun, target=IN_PAIRS, polymorphic_shapes="b, 4")
    assert_near([np.asarray(y) for y in converted(X)], list(jax.jit(fun)(X)), ulps=32)


def test_the_gradient():
    def fun(x):
        return (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax2tf.convert(fun, target=IN_PAIRS)(x)
    assert_near(np.asarray(tape.gradient(y, x)), jax.grad(fun)(X), ulps=32)


def test_the_source_of_what_is_refused():
    target = jax2tf.Target(
        "mine",
        ops={"AddV2": ("float32",)},
        computes_in={"complex64": "float32", "complex128": "float64"},
    )
    with pytest.raises(jax2tf.ConversionError, match=r"test_pairs\.py:\d+"):
        tf.function(
            jax2tf.convert(lambda x: jnp.abs(jax.lax.complex(x, x)), target=target),
            autograph=False,
        ).get_concrete_function(tf.TensorSpec([3], tf.float32))


def test_what_gather_finds_out_of_bounds_has_no_imaginary_part():
    def taken(z):
        return z.at[jnp.array([1, 7])].get(mode="fill")

    converted = jax2tf.convert(taken, with_gradient=False, target=IN_PAIRS)
    actual = np.asarray(tf.function(converted, autograph=False)(tf.constant(Z)))
    expected = np.asarray(taken(jnp.asarray(Z)))
    np.testing.assert_array_equal(actual.real, expected.real)
    np.testing.assert_array_equal(actual.imag, expected.imag)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (1, 1)])
def test_singular_vectors(shape, full_matrices):
    a = (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)
    a[..., -1] = a[..., 0]
    converted = jax2tf.convert(lambda a: jnp.linalg.svd(a, full_matrices), target=IN_PAIRS)
    u, s, vh = map(np.asarray, converted(a))
    size = s.shape[-1]
    assert_near(u[..., :size] * s[..., None, :] @ vh[..., :size, :], a, ulps=64)
    for q in (u, np.conj(np.swapaxes(vh, -1, -2))):
        identity = np.eye(q.shape[-1], dtype=q.dtype)
        product = np.conj(np.swapaxes(q, -1, -2)) @ q
        assert_near(product, np.broadcast_to(identity, product.shape), ulps=64)


MATRICES = {
    "complex": RNG.normal(size=(2, 5, 5)) + 1j * RNG.normal(size=(2, 5, 5)),
    "real": RNG.normal(size=(3, 6, 6)),
    "symmetric": np.add(*(lambda a: (a, a.T))(RNG.normal(size=(4, 4)))),
    "of one": RNG.normal(size=(2, 1, 1)),
    "of two": np.array([[[0.0, 1], [-1, 0]], [[1, 2], [3, 4]]]),
    "defective": np.eye(4) + np.eye(4, k=1),
    "zeros": np.zeros((3, 3)),
    "a permutation": np.roll(np.eye(5), 1, 0),
    "infinite": np.stack([np.full((3, 3), np.inf), np.diag([1.0, 2, 3])]),
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "litert") for name in MATRICES),
        *(("real", target) for target in ("onnx", "openvino", "tfjs", "coreml")),
    ],
)
def test_eigenvalues_of_any_matrix(name, target):
    """A v = v w, left vectors too; LAPACK's order of eigenvalues is not held to."""
    a = MATRICES[name].astype(np.complex64 if np.iscomplexobj(MATRICES[name]) else np.float32)

    def parts(*parts):
        results = jax.lax.linalg.eig(jax.lax.complex(*parts) if len(parts) == 2 else parts[0])
        return [part for x in results for part in (x.real, x.imag)]

    operands = [a.real, a.imag] if np.iscomplexobj(a) else [a]
    open_batch = [", ".join(["b" if a.ndim == 3 else "_", "_", "_"][-a.ndim :])] * len(operands)
    converted = jax2tf.convert(
        parts, target=target, with_gradient=False, polymorphic_shapes=open_batch
    )
    specs = [tf.TensorSpec([*[None] * (a.ndim - 2), *a.shape[-2:]], x.dtype) for x in operands]
    function = tf.function(converted, autograph=False, input_signature=specs)
    made = [np.asarray(x) for x in function(*operands)]
    values, left, right = (x + 1j * y for x, y in zip(made[::2], made[1::2], strict=True))
    is_finite = np.isfinite(a).all((-1, -2))
    assert np.isnan(values[~is_finite]).all()
    assert np.isnan(right[~is_finite]).all()
    a, values, left, right = (x[is_finite] for x in (a, values, left, right))
    near = {"atol": 1e-3 if name == "defective" else 2e-5}
    np.testing.assert_allclose(a @ right, right * values[..., None, :], **near)
    adjoint = np.conj(np.swapaxes(left, -1, -2))
    np.testing.assert_allclose(adjoint @ a, values[..., :, None] * adjoint, **near)
    if not np.iscomplexobj(a):
        expected = np.linalg.eigvals(a)
        assert (np.imag(values) == 0).sum() == (np.imag(expected) == 0).sum()
    np.testing.assert_allclose(np.linalg.norm(right, axis=-2), 1, rtol=1e-5)


@pytest.mark.parametrize("lower", [False, True])
def test_eigenvectors(lower):
    a = (RNG.normal(size=(2, 5, 5)) + 1j * RNG.normal(size=(2, 5, 5))).astype(np.complex64)
    a[1] = np.diag(np.arange(5) // 2)
    half = (np.tril if lower else np.triu)(a, -1 if lower else 1)
    hermitian = half + np.conj(np.swapaxes(half, -1, -2)) + np.eye(5) * a.real
    converted = jax2tf.convert(
        lambda a: jax.lax.linalg.eigh(a, lower=lower, symmetrize_input=False), target=IN_PAIRS
    )
    vectors, values = map(np.asarray, converted(a))
    adjoint = np.conj(np.swapaxes(vectors, -1, -2))
    assert_near(vectors * values[..., None, :] @ adjoint, hermitian.astype(a.dtype), ulps=64)
    identity = np.broadcast_to(np.eye(5, dtype=a.dtype), a.shape)
    assert_near(adjoint @ vectors, identity, ulps=64)
