"""`jax2tf.load` gives back the functions that jax.export wrote: values, shapes, gradients."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import jax2tf
from harnesses.harness import all_harnesses
from jax2tf._src.stablehlo import registry, rules

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
STEP, OPEN_STEP = 179, 211


def _loaded(function: Any, *specs: Any) -> Any:
    return jax2tf.load(bytes(export.export(jax.jit(function))(*specs).serialize()))


def _leaves(results: Any) -> list[np.ndarray[Any, Any]]:
    leaves = jax.tree.leaves(results)
    return [np.asarray(jax.random.key_data(x) if _is_key(x) else x) for x in leaves]


def _is_key(x: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(x, "dtype", np.int32), jax.dtypes.prng_key)


def _assert_same(got: Any, want: Any) -> None:
    got, want = _leaves(got), _leaves(want)
    assert [x.dtype for x in got] == [x.dtype for x in want]
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(_plain(x), _plain(y))


def _plain(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy does not know the NaNs of the small dtypes."""
    is_plain = np.issubdtype(x.dtype, np.number) or x.dtype == np.bool_
    return x if is_plain else x.astype(np.float64)


def _harnesses(step: int) -> list[Any]:
    return [h for h in all_harnesses() if h.runs_on(jax.__version__)][::step]


def _name(harness: Any) -> str:
    return str(harness.name)


@pytest.mark.parametrize("harness", _harnesses(STEP), ids=_name)
def test_an_exported_function_comes_back(harness: Any):
    with jax.enable_x64(harness.x64):
        args = harness.make_args()
        function = jax.jit(harness.fun)
        try:
            exported = export.export(function)(*args)
        except (NotImplementedError, ValueError, TypeError, jax.errors.JaxRuntimeError):
            pytest.skip("jax.export does not take it")
        if exported.nr_devices != 1:
            with pytest.raises(jax2tf.LoadError, match=f"for {exported.nr_devices} devices"):
                jax2tf.load(exported)
            return
        _assert_same(jax2tf.load(exported)(*args), function(*args))


def _opened(args: Any) -> tuple[Any, int]:
    """Shapes of arguments in which the first size of the first array is open, where it occurs."""
    leaves, tree = jax.tree.flatten(args)
    sizes = [np.shape(x)[0] for x in leaves if np.ndim(x)]
    (b,) = export.symbolic_shape("b")
    size = sizes[0] if sizes else 0
    opened = [
        jax.ShapeDtypeStruct(
            (b, *np.shape(x)[1:]) if np.ndim(x) and np.shape(x)[0] == size else np.shape(x),
            np.asarray(x).dtype,
        )
        for x in leaves
    ]
    return jax.tree.unflatten(tree, opened), size


@pytest.mark.parametrize("harness", _harnesses(OPEN_STEP), ids=_name)
def test_an_exported_function_of_an_open_size_comes_back(harness: Any):
    with jax.enable_x64(harness.x64):
        args = harness.make_args()
        if any(
            jax.dtypes.issubdtype(getattr(x, "dtype", None), jax.dtypes.extended)
            for x in jax.tree.leaves(args)
        ):
            pytest.skip("keys have no shape of a file")
        specs, size = _opened(args)
        if size < 2:
            pytest.skip("no array with a size that can be open")
        function = jax.jit(harness.fun)
        try:
            exported = export.export(function)(*specs)
        except Exception:
            pytest.skip("jax.export does not take it")
        loaded = jax2tf.load(exported)
        _assert_same(loaded(*jax.tree.map(np.asarray, args)), function(*args))
        jax.eval_shape(loaded, *specs)


CONVERTED = {
    "dense": lambda x: jnp.tanh(x @ x.T),
    "norm": lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5),
    "softmax": jax.nn.softmax,
    "sorted": lambda x: jnp.sort(x, 1)[:, ::-1],
    "cumulative": lambda x: jnp.cumsum(x, 1) + lax.cummax(x, 0, reverse=True),
    "largest": lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), *lax.top_k(x, 2)),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * i + x, x),
    "scan": lambda x: lax.scan(lambda c, r: (c * r + 1, c.sum()), x[0], x),
    "branch": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "switch": lambda x: lax.switch(x.shape[0] % 3, [jnp.sin, jnp.cos, jnp.tan], x),
    "indexed": lambda x: x.at[jnp.array([0, 9, 0])].add(2.0)[jnp.array([3, -1])],
    "pool": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"),
    "special": lambda x: lax.erf(x) + lax.erfc(x / 4) + lax.lgamma(jnp.abs(x) + 0.1),
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_graphs_of_loaded_functions(name: str):
    function = CONVERTED[name]
    loaded = _loaded(function, X)
    got = jax.tree.leaves(jax.tree.map(np.asarray, jax2tf.convert(loaded)(X)))
    want = jax.tree.leaves(jax.tree.map(np.asarray, jax2tf.convert(function)(X)))
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-6, atol=3e-6)


def _pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME")


KEY = jax.random.key(3, impl="threefry2x32")
# JAX writes these as ops that have no derivative, or another one.
DERIVED = {
    **CONVERTED,
    "qr": lambda x: tuple(jnp.linalg.qr(x @ x.T + jnp.eye(4))),
    "full qr": lambda x: tuple(jnp.linalg.qr(jnp.sin(x * x)[:, :3], mode="complete")),
    "wide qr": lambda x: jnp.linalg.qr(jnp.sin(x * x)[None])[1],
    "tangent of a pool": lambda x: jax.jvp(_pool, (x,), (jnp.sin(x),)),
    "gamma": lambda x: jax.random.gamma(KEY, jnp.abs(x) + 0.5),
    "loggamma": lambda x: jax.vmap(jax.random.loggamma)(jax.random.split(KEY, 4), jnp.abs(x) + 0.5),
}


@pytest.mark.parametrize("name", DERIVED)
def test_gradients(name: str):
    function = DERIVED[name]
    loaded = _loaded(function, X)

    def loss(f: Any, x: Any) -> Any:
        floats = [y for y in jax.tree.leaves(f(x)) if jnp.issubdtype(y.dtype, jnp.floating)]
        return sum(jnp.sum(jnp.sin(y)) for y in floats)

    got, want = (jax.grad(functools.partial(loss, f))(X) for f in (loaded, function))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_gradients_of_complex_functions_at_their_edges():
    names = ("atan", "cos", "exp", "exp2", "log", "log1p", "logistic", "sin", "sqrt", "tanh")
    functions = [getattr(lax, name) for name in names]
    numbers = [0.25 + 0.5j, 0.0, 3.5j, -1 + 0j, np.inf, complex(-0.0, 1), -1j, 2 - 3j]
    z = jnp.asarray(numbers, np.complex64)
    source = lambda z: jnp.stack([f(z) for f in functions])  # noqa: E731
    loaded = _loaded(source, z)
    np.testing.assert_array_equal(loaded(z), jax.jit(source)(z))
    for part in (jnp.real, jnp.imag):
        jacobians = [
            jax.jit(jax.jacrev(lambda z, f=f, part=part: part(f(z)).sum(1)))(z)
            for f in (loaded, source)
        ]
        np.testing.assert_allclose(*jacobians, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_upper_halves_of_products_of_32_bits(dtype: str):
    x = np.array([2**31 - 1, 3, 2**30 + 7], dtype)
    np.testing.assert_array_equal(_loaded(lax.mulhi, x, x)(x, x), lax.mulhi(x, x))


def test_open_sizes_stay_open_in_graphs():
    import tensorflow as tf

    (b,) = export.symbolic_shape("b")
    function = lambda x: (x.reshape(-1)[: x.shape[0] // 2 + 1], jnp.cumsum(x, 0))  # noqa: E731
    loaded = _loaded(function, jax.ShapeDtypeStruct((b, 6), np.float32))
    converted = tf.function(
        jax2tf.convert(loaded, polymorphic_shapes=["b, 6"]),
        input_signature=[tf.TensorSpec([None, 6])],
        autograph=False,
    )
    for n in (1, 4, 7):
        x = np.arange(6.0 * n, dtype=np.float32).reshape(n, 6)
        _assert_same([y.numpy() for y in converted(x)], function(x))


def test_constraints_of_sizes_are_checked():
    b = export.symbolic_shape("b", constraints=["b >= 3"])[0]
    loaded = _loaded(jnp.sin, jax.ShapeDtypeStruct((b,), np.float32))
    assert loaded(np.zeros(3, np.float32)).shape == (3,)
    with pytest.raises(ValueError, match="Input shapes do not match"):
        loaded(np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("shapes", "constraint", "names", "remedy"),
    [
        (["s"], "s <= 64", ["n"], "- n + 64 >= 0"),
        (["s", "t"], "s >= t + 1", ["n", "m"], "n - m - 1 >= 0"),
        (["2*s"], None, ["n"], "mod(n, 2) == 0"),
        (["s", "s"], None, ["n", "m"], "m == n"),
    ],
)
def test_a_condition_of_sizes_is_a_constraint_of_the_remedy(
    shapes: list[str], constraint: str | None, names: list[str], remedy: str
):
    given = [constraint] if constraint else []
    loaded = _loaded(lambda *xs: sum(x.sum() for x in xs), *_specs(shapes, given))
    again = export.export(jax.jit(loaded))
    expected = re.escape(f'polymorphic_constraints=["{remedy}"]')
    with pytest.raises((jax2tf.LoadError, ValueError), match=expected):
        again(*_specs(names, []))
    assert again(*_specs(names, [remedy])).mlir_module()


def _specs(shapes: list[str], constraints: list[str]) -> list[jax.ShapeDtypeStruct]:
    scope = export.SymbolicScope(constraints)
    sizes = (export.symbolic_shape(shape, scope=scope) for shape in shapes)
    return [jax.ShapeDtypeStruct(size, np.float32) for size in sizes]


def test_repeated_calls_are_one_function():
    layer = jax.jit(lambda x: jnp.tanh(x) * 2)

    def function(x: Any) -> Any:
        for _ in range(5):
            x = layer(x)
        return x

    jaxpr = str(jax.make_jaxpr(_loaded(function, X))(X))
    assert jaxpr.count("= tanh") == 1


def test_structure_names_and_dtypes():
    function = lambda p, *, y: {"s": p["w"] + y, "n": [p["n"]]}  # noqa: E731
    exported = export.export(jax.jit(function))({"w": X, "n": np.int32(3)}, y=X)
    (loaded,) = jax2tf.load(exported).values()
    _assert_same(loaded({"w": X, "n": np.int32(3)}, y=X), function({"w": X, "n": np.int32(3)}, y=X))
    assert "args[0]['w']: float32[4,6]" in loaded.__doc__
    with pytest.raises(TypeError, match=r"args\[0\]\['n'\] must have the dtype int32, got float32"):
        loaded({"w": X, "n": np.float32(3)}, y=X)
    with pytest.raises(ValueError, match=r"kwargs\['y'\] must have the shape \[4,6\], got \[4\]"):
        loaded({"w": X, "n": np.int32(3)}, y=X[:, 0])
    with pytest.raises(
        TypeError, match=r"another structure.*What to do: call it with \(\.\.\., y=\.\.\.\)"
    ):
        loaded(X, y=X)


def test_modules_for_several_platforms():
    exported = export.export(jax.jit(jnp.sin), platforms=("tpu", "cpu"))(X)
    _assert_same(jax2tf.load(exported)(X), jax.jit(jnp.sin)(X))


def test_derivatives_that_a_file_does_not_have_are_errors():
    loaded = _loaded(lambda x: lax.nextafter(x, x + 1), X)
    with pytest.raises(jax2tf.NotDifferentiableError, match="no derivative of 'nextafter'"):
        jax.grad(lambda x: loaded(x).sum())(X)


def test_a_decomposition_of_an_open_batch_has_its_derivative():
    function = lambda x: tuple(jnp.linalg.qr(x))  # noqa: E731
    (b,) = export.symbolic_shape("b")
    loaded = _loaded(function, jax.ShapeDtypeStruct((b, 3, 2), np.float32))
    x = np.sin(np.arange(12, dtype=np.float32) ** 2).reshape(2, 3, 2)
    tangents = [jax.jvp(f, (x,), (jnp.cos(x),))[1] for f in (loaded, function)]
    _assert_same(*tangents)


def test_factors_that_are_read_themselves_have_no_derivative():
    function = lambda x: jnp.linalg.qr(x, mode="raw")[0]  # noqa: E731
    for f in (_loaded(function, X), function):
        with pytest.raises(NotImplementedError, match="geqrf"):
            jax.jvp(f, (X,), (X,))


def test_another_function_with_the_name_of_a_draw_is_itself():
    def _gamma(key: Any, x: Any) -> Any:
        return x**2 + key[0].astype(np.float32)

    function = functools.partial(jax.jit(_gamma), np.array([1, 2], np.uint32))
    _assert_same(*(jax.jvp(f, (X,), (X,)) for f in (_loaded(function, X), function)))


def test_64_bits_need_them():
    with jax.enable_x64(True):
        exported = export.export(jax.jit(jnp.sin))(np.zeros(3))
        inner = export.export(jax.jit(lambda x: x.astype(np.float64).sum().astype(np.float32)))(X)
    with jax.enable_x64(False):
        with pytest.raises(TypeError, match="jax_enable_x64"):
            jax2tf.load(exported)(np.zeros(3))
        with pytest.raises(jax2tf.LoadError, match="jax_enable_x64"):
            jax2tf.load(inner)(X)


def test_every_rule_has_a_name_of_its_dialect():
    assert rules
    assert {name.partition(".")[0] for name in registry.OPS} == {"stablehlo", "chlo", "func", "sdy"}


def test_a_vjp_of_the_file_is_the_gradient():
    """A rounding whose gradient passes straight through has the gradient zero by its ops."""

    @jax.custom_vjp
    def rounded(x: Any) -> Any:
        return jnp.round(x)

    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, cotangent: (cotangent * 3,))
    function = jax.jit(lambda x, n: {"n": n + 1, "y": rounded(x) * n})
    exported = export.export(function)(X, np.int32(2))
    for order, want in ((0, 0.0), (1, 6.0)):
        loaded = jax2tf.load(bytes(exported.serialize(vjp_order=order)))
        got = jax.grad(lambda x, loaded=loaded: loaded(x, np.int32(2))["y"].sum())(X)
        np.testing.assert_array_equal(got, np.full_like(X, want))
    of_integers = np.zeros((), jax.dtypes.float0)
    got, _ = jax2tf.load(exported.vjp())(X, np.int32(2), of_integers, X)
    np.testing.assert_array_equal(got, X * 6)


def test_a_file_with_one_function_is_exported_as_it_is(tmp_path: pathlib.Path):
    loaded = jax2tf.load(bytes(_TANH.serialize()))
    ((spec,), _) = loaded.specs
    assert spec.shape == (4, 6)
    assert loaded.params == {}
    np.testing.assert_array_equal(loaded.apply({}, X), loaded(X))
    result = jax2tf.export(loaded, None, "4, 6", tmp_path / "tanh.onnx", progress=False)
    assert result.ops == 1


_TANH = export.export(jax.jit(jnp.tanh))(X)
_MAIN = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {} return %0 : tensor<4xf32> }}"
_CALLED = "%0 = {} : (tensor<4xf32>) -> tensor<4xf32>\n"
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no file of jax.export, no StableHLO bytecode and no text"),
    "cut": (
        bytes(_TANH.serialize())[:-20],
        r"ends after \d+ bytes, before its parts do.*What to do: copy the file again, as a whole",
    ),
    "cut module": (
        _TANH.mlir_module_serialized[:200],
        r"was written by StableHLO_v1.* reads versions up to 1",
    ),
    "cut text": (_TANH.mlir_module().encode()[:300], "Unable to parse module"),
    "newer": (b"vhlo.func_v9 @main() -> () {}", "'vhlo.func_v9' is unknown.*newer jaxlib"),
    "dialect": (
        _MAIN.format(_CALLED.format('"tosa.tanh"(%a)')).encode(),
        "the op tosa.tanh: its dialect is none of .* stands at line 1, column .* What to do",
    ),
    "op": (
        _MAIN.format("%0 = math.tanh %a : tensor<4xf32>").encode(),
        r"the op math.tanh: it has no counterpart.*It stands at line 1\. What to do",
    ),
    "custom call": (
        _MAIN.format(_CALLED.format("stablehlo.custom_call @mine(%a)")).encode(),
        "stablehlo.custom_call @mine: JAX has no function for this target. It stands at line 1",
    ),
    "no body": (
        (
            _MAIN.format(_CALLED.format("call @f(%a)"))
            + "\nfunc.func private @f(tensor<4xf32>) -> tensor<4xf32>"
        ).encode(),
        "the function f: it has no body",
    ),
    "unranked": (
        b"func.func @main(%a: tensor<*xf32>) -> tensor<*xf32> { return %a : tensor<*xf32> }",
        "the function main: the type .* is no tensor of a known rank. What to do",
    ),
    "another platform": (
        bytes(
            export.export(jax.jit(jnp.linalg.cholesky), platforms=["cuda"])(X[:, :4]).serialize()
        ),
        r"@cusolver_potrf_ffi: it calls a library that only GPUs.*platforms=\['cpu'\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_error(name: str):
    data, words = BAD[name]
    x = X[:, :4] if name == "another platform" else np.ones(4, np.float32)
    with pytest.raises(jax2tf.LoadError, match=words):
        jax2tf.load(data)(x)


def test_random_keys_come_back_as_keys():
    key = jax.random.key(3)
    exported = export.export(jax.jit(lambda k, x: (jax.random.split(k)[1], x + 1)))(key, X)
    loaded = jax2tf.load(bytes(exported.serialize()))
    got, _ = loaded(key, X)
    assert got.dtype == key.dtype
    assert (jax.random.key_data(got) == jax.random.key_data(jax.random.split(key)[1])).all()
    with pytest.raises(TypeError, match=r"must have the dtype key<fry>, got uint32"):
        loaded(jax.random.key_data(key), X)


def test_random_bits_of_an_open_size():
    """JAX writes a custom call for those that the algorithm of the device draws."""

    def function(key: Any, x: Any) -> Any:
        return lax.rng_bit_generator(key, x.shape, np.uint32)

    key = np.arange(4, dtype=np.uint32)
    (b,) = export.symbolic_shape("b")
    loaded = _loaded(function, key, jax.ShapeDtypeStruct((b, 6), np.float32))
    for x in (X, X[:3]):
        _assert_same(loaded(key, x), jax.jit(function)(key, x))
