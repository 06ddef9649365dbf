"""LiteRT files by our writer: what the interpreter makes of them is what JAX gives."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.export.tflite import own_graphs

RANDOM = np.random.default_rng(0)
TARGET = {"target": "litert"}


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def interpreter_of(function, specs):
    programs = own_graphs.programs_of(signatures_of(function, None, specs), None, TARGET)
    content, _ = own_graphs.content_of(programs)
    module = importlib.import_module("ai_edge_litert.interpreter")
    return module.Interpreter(model_content=content)


def check(function, *arrays, specs=None):
    """The file of a function of named arrays gives what JAX gives."""
    given = specs or tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays)
    interpreter = interpreter_of(function, given)
    run = interpreter.get_signature_runner("serving_default")
    found = run(**dict(zip(run.get_input_details(), arrays, strict=True)))
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    assert len(found) == len(expected)
    for name, want in zip(sorted(found), expected, strict=True):
        np.testing.assert_allclose(found[name], want, 1e-5, 1e-5)
        assert found[name].dtype == want.dtype


X, Y = normal(3, 4), normal(4, 5)
N = np.arange(12, dtype=np.int32).reshape(3, 4)
IMAGE, KERNEL = normal(2, 8, 8, 3), normal(3, 3, 3, 4)
NHWC = ("NHWC", "HWIO", "NHWC")


def convolution(x, **options):
    return lax.conv_general_dilated(x, KERNEL, dimension_numbers=NHWC, **options)


FUNCTIONS = {
    "arithmetic": (lambda x: jnp.tanh(x * 2 + 1) / jnp.maximum(x, 0.5) - x**2, X),
    "integers": (lambda n: (n // 3, n % 5, -n, n >> 1, jnp.minimum(n, 4)), N),
    "comparisons": (lambda x: ((x < 0) & (x > -1), jnp.isfinite(x), jnp.where(x > 0, x, 1)), X),
    "casts": (lambda x: (x.astype(jnp.int32), (x > 0).astype(jnp.float32)), X),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.int32), X),
    "shapes": (lambda x: (x.reshape(2, 6), x.T, x[None], jnp.squeeze(x[:1])), X),
    "joined": (lambda x: jnp.concatenate([x, jnp.stack([x[0], x[1]])]), X),
    "parts": (lambda x: (x[1:, ::2], x[::-1], jnp.split(x, 2, 1), x[:, -1]), X),
    "reversed": (lambda x: (lax.rev(x[None], (0, 1, 2)), lax.rev(x[:, None], (0, 2))), X),
    "left as they are": (lambda x: ((x * 1 + x > 0) | np.zeros((3, 4), bool), x / 1), X),
    "padded": (lambda x: (jnp.pad(x, 1), jnp.pad(x, 1, constant_values=2)), X),
    "gathered": (lambda x: (x[jnp.array([2, 0])], jnp.take_along_axis(x, x.argsort(1), 1)), X),
    "written": (lambda x: (x.at[1].set(7), x.at[:, jnp.array([1, 1])].add(1)), X),
    "batches gathered": (lambda x: jax.vmap(lambda r, i: r[i])(x, jnp.array([0, 3, 1])), X),
    "reduced": (lambda x: (x.sum(), x.max(0), x.mean(1), x.prod(1), (x > 0).any(), x.argmax(1)), X),
    "running sums": (lambda x: (jnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), X),
    "sorted": (lambda x: (jnp.sort(x, 1), lax.top_k(x, 2)), X),
    "products": (lambda x: (x @ Y, x @ x.T, jnp.einsum("ab,cb->ac", x, x)), X),
    "networks": (lambda x: (jax.nn.softmax(x), jax.nn.gelu(x), jax.nn.gelu(x, False)), X),
    "activations": (lambda x: (jax.nn.relu(x), jax.nn.hard_swish(x), jax.nn.sigmoid(x)), X),
    "convolutions": (
        lambda x: (
            convolution(x, window_strides=(1, 1), padding="SAME"),
            convolution(x, window_strides=(2, 1), padding=((1, 0), (2, 1))),
        ),
        IMAGE,
    ),
    "channel by channel": (
        lambda x: lax.conv_general_dilated(
            x, KERNEL[:, :, :1, :3], (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=3
        ),
        IMAGE,
    ),
    "transposed": (lambda x: lax.conv_transpose(x, KERNEL, (2, 2), "SAME"), IMAGE),
    "convolutions of volumes": (
        lambda x: lax.conv_general_dilated(
            x[..., None, :],
            KERNEL[:, :, None],
            (2, 1, 1),
            "SAME",
            dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
        ),
        IMAGE,
    ),
    "resized": (lambda x: jax.image.resize(x, (2, 4, 16, 3), "nearest"), IMAGE),
    "leaky": (lambda x: (jax.nn.leaky_relu(x, 0.1), jax.nn.one_hot(x.argmax(1), 4)), X),
    "pools": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        IMAGE,
    ),
    "spectra": (lambda x: jnp.abs(jnp.fft.rfft(x)), X),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1), X),
    "a scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x), X),
    "a loop in a loop": (
        lambda x: lax.fori_loop(
            0, 3, lambda i, c: lax.fori_loop(0, i, lambda j, d: d * x + j, c), x
        ),
        X,
    ),
    "a loop until": (lambda x: lax.while_loop(lambda c: (c < 9).any(), lambda c: c + x * x, x), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_interpreter_gives_what_jax_gives(name):
    function, *arrays = FUNCTIONS[name]
    check(function, *arrays)


MOVES = {
    "as it is": lambda a: a,
    "integer_pow": lambda a: lax.integer_pow(a, 1),
    "pad": lambda a: lax.pad(a, np.float32(0), [(0, 0, 0)] * a.ndim),
    "times ones": lambda a: a * jnp.ones_like(a),
    "plus zeros": lambda a: a + jnp.zeros_like(a),
    "select_n": lambda a: lax.select_n(jnp.zeros(a.shape, jnp.int32), a),
    "a sum over no axes": lambda a: a.sum(()),
    "rev": lambda a: lax.rev(a, ()),
    "dynamic_slice": lambda a: lax.dynamic_slice(a, [0] * a.ndim, a.shape),
    "concatenate": lambda a: lax.concatenate([a], 0),
    "maximum": lambda a: jnp.maximum(a, -jnp.inf),
    "power": lambda a: a**1.0,
    "where": lambda a: jnp.where(True, a, 0),
    "tile": lambda a: jnp.tile(a, 1),
    "reshape": lambda a: a.reshape(2, -1).reshape(a.shape),
    "transpose": lambda a: a[None].swapaxes(0, 1)[:, 0],
    "slice": lambda a: a[: a.shape[0]],
    "convert": lambda a: a.astype(jnp.float32),
    "copy": jnp.copy,
}


@pytest.mark.parametrize("name", MOVES)
def test_what_a_step_of_a_loop_moves_to_another_place_is_right(name):
    move = MOVES[name]
    check(
        lambda a, b: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], move(c[0])), (a, b)),
        normal(4),
        normal(4),
    )


def test_what_a_step_moves_into_another_shape_is_right():
    def step(i, c):
        a, b = c
        return a + b.reshape(4), a.reshape(2, 2)

    check(lambda a, b: lax.fori_loop(0, 4, step, (a, b)), normal(4), normal(2, 2))


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_what_a_loop_exchanges_is_right(dtype):
    a, b = (normal(4) > 0).astype(dtype), (normal(4) > 1).astype(dtype)
    check(lambda a, b: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0], c[0]), (a, b, b)), a, b)


def test_an_array_of_numpy_may_stand_before_a_tensor_of_open_size():
    check(lambda n: ~n, N, specs=("b, 4:int32",))


def test_open_sizes_are_open_in_the_file():
    def function(x, y):
        rows = x.reshape(x.shape[0], -1) @ jnp.ones((6, 2))
        return {"rows": rows, "all": jnp.concatenate([x[:, 0].sum(1), y]) * x.shape[0]}

    specs = ("b, l, 3", "n")
    check(function, normal(5, 2, 3), normal(2), specs=("b, 2, 3", "n"))
    interpreter = interpreter_of(lambda x, y: (x.sum((1, 2)), y), specs)
    signatures = [d["shape_signature"].tolist() for d in interpreter.get_input_details()]
    assert signatures == [[-1, -1, 3], [-1]]


def test_signatures_have_the_names_of_the_user_and_share_weights():
    weights = normal(64, 64)
    functions = {
        "encode": (lambda params, pixels: {"code": pixels @ params}, {"pixels": "1, 64"}),
        "decode": (lambda params, code: {"pixels": code @ params}, {"code": "1, 64"}),
    }
    programs = own_graphs.programs_of(signatures_of(functions, weights, None), weights, TARGET)
    content, ops = own_graphs.content_of(programs)
    module = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = module.Interpreter(model_content=content)
    assert interpreter.get_signature_list() == {
        "encode": {"inputs": ["pixels"], "outputs": ["code"]},
        "decode": {"inputs": ["code"], "outputs": ["pixels"]},
    }
    assert ops == 2
    assert len(content) < 2 * weights.nbytes
    x = normal(1, 64)
    result = interpreter.get_signature_runner("encode")(pixels=x)["code"]
    np.testing.assert_allclose(result, x @ weights, 1e-5, 1e-5)


FUSED = {
    "a batch norm and a relu": (lambda y: jax.nn.relu6((y - 1) * KERNEL[0, 0, 0] + 3), ["CONV_2D"]),
    "a product of two results": (lambda y: jax.nn.relu(y * y), ["CONV_2D", "MUL"]),
}


@pytest.mark.parametrize("name", FUSED)
def test_biases_factors_activations_and_paddings_are_fused(name):
    function, codes = FUSED[name]

    def whole(x):
        return function(convolution(x, window_strides=(1, 1), padding=((1, 1), (1, 1))))

    check(whole, IMAGE)
    interpreter = interpreter_of(whole, (jax.ShapeDtypeStruct(IMAGE.shape, jnp.float32),))
    assert [op["op_name"] for op in interpreter._get_ops_details()][: len(codes)] == codes


def codes_of(function, *specs):
    return [op["op_name"] for op in interpreter_of(function, specs)._get_ops_details()]


def test_factors_of_rows_are_fused_but_where_a_table_would_be_stored_twice():
    table, factors = normal(40, 8), normal(8)
    assert codes_of(lambda x: (x * factors) @ table.T, "b, 8") == ["FULLY_CONNECTED"]
    check(lambda x: (x * factors) @ table.T, normal(3, 8))
    for function in (lambda x: (x / 3 * factors) @ table.T, lambda x: (x @ table.T) * 2):
        tied = lambda n, f=function: f(jnp.tanh(jnp.asarray(table)[n]))  # noqa: E731
        assert "MUL" in codes_of(tied, "b:int32")
        check(tied, np.int32([3, 0, 39]))
    both = lambda x: ((x * factors) @ table.T, x * factors)  # noqa: E731
    assert codes_of(both, "b, 8").count("MUL") == 1
    check(both, normal(3, 8))
