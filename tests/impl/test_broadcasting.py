"""Which ops repeat their operands: the table of jax2tf._src.ops, held against TensorFlow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import compat
from jax2tf._src.ops.broadcasting import OF_BATCHES, OF_ONE_SHAPE, REPEATED
from tests.running import assert_near

# Our own graph has the names of ops that no rule uses.
SOURCES = sorted(p for p in Path(jax2tf.__file__).parent.rglob("*.py") if "graph" not in p.parts)
# `raw.Add` of rules; in _src/ops/functions.py the tables `_unary(tf.cos, "Cos")`.
USE = re.compile(r"\braw\.([A-Z]\w+)|_(?:unary|binary|reduction)\([\w.]+, \"(\w+)\"")
USED = sorted({a or b for path in SOURCES for a, b in USE.findall(path.read_text())})

# Ops of several arrays of one dtype that they read in different ways.
OF_OTHER_SHAPES = frozenset(
    {
        *("BlockLSTMV2", "ConcatV2", "Conv2D", "Conv2DBackpropInput", "DepthwiseConv2dNative"),
        *("MatMul", "PadV2", "ScatterNd", "Slice", "StatelessRandomUniformFullIntV2"),
        "StridedSlice",
    }
)
MODES = ["eager", "graph", "compiled"]
DTYPES = [
    *(tf.bool, tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
]


def _arrays(op: str) -> list[str]:
    """The operands of an op that are one array each and have a dtype in common with another."""
    operands = [x for x in compat.graphs.op_definition(op).input_arg if x.type_attr or x.type]
    kinds = [x.type_attr or x.type for x in operands]
    same = (x.name for x, kind in zip(operands, kinds, strict=True) if kinds.count(kind) > 1)
    return [*same, *(x.name for x in operands if x.number_attr)]


def _run(op: str, operands: Mapping[str, tf.Tensor], mode: str) -> tf.Tensor:
    def call() -> tf.Tensor:
        return getattr(tf.raw_ops, op)(**operands)

    if mode == "eager":
        return call()
    return tf.function(call, autograph=False, jit_compile=mode == "compiled")()


def _array(op: str, name: str, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    numbers = np.random.default_rng(len(shape) + len(name)).uniform(0.1, 0.9, shape)
    is_condition = op == "SelectV2" and name == "condition"
    if is_condition or dtype == tf.bool:
        return tf.constant(numbers > 0.5)
    return tf.cast(numbers if not dtype.is_integer else numbers * 4 + 1, dtype)


def test_every_op_of_several_arrays_is_in_one_table():
    assert len(USED) > 100
    tables = [REPEATED.keys(), OF_ONE_SHAPE.keys(), OF_BATCHES.keys(), OF_OTHER_SHAPES]
    found = {op for op in USED if sum(op in t for t in tables) != bool(_arrays(op))}
    assert not found
    assert set().union(*tables) <= set(USED)


def _dtypes(op: str) -> list[tf.DType]:
    """Those of which TensorFlow has the op in eager mode, for operands of one shape."""
    found = []
    for dtype in DTYPES:
        try:
            _run(op, {n: _array(op, n, (3, 4), dtype) for n in _operands(op)}, "eager")
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, TypeError):
            continue
        found.append(dtype)
    return found


def _operands(op: str) -> tuple[str, ...]:
    return (REPEATED | OF_ONE_SHAPE | OF_BATCHES)[op]


SHAPES = ((3, 1), (1, 4), (4,), (), (2, 1, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", sorted(REPEATED))
def test_ops_repeat_operands(op, mode):
    dtypes = _dtypes(op)
    assert dtypes
    names = _operands(op)
    # A graph takes long to make; what it repeats is the same for all dtypes.
    every = list(itertools.permutations(SHAPES, len(names)))[:: len(names) ** 2]
    for dtype in dtypes if mode == "eager" else dtypes[:1]:
        for shapes in every if mode == "eager" else every[:2]:
            operands = {n: _array(op, n, s, dtype) for n, s in zip(names, shapes, strict=True)}
            shape = np.broadcast_shapes(*shapes)
            whole = {n: tf.broadcast_to(x, shape) for n, x in operands.items()}
            got, want = _run(op, operands, mode), _run(op, whole, mode)
            assert got.shape == shape, (op, dtype, shapes)
            np.testing.assert_array_equal(got.numpy(), want.numpy(), str((op, dtype, shapes)))


REFUSALS = (ValueError, tf.errors.InvalidArgumentError)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", sorted(OF_ONE_SHAPE))
def test_ops_of_one_shape_refuse_others(op, mode):
    names = _operands(op)
    for dtype in _dtypes(op):
        for shapes in itertools.permutations([(3, 1), (1, 4), (3, 4)], len(names)):
            operands = {n: _array(op, n, s, dtype) for n, s in zip(names, shapes, strict=True)}
            with pytest.raises(REFUSALS):
                _run(op, operands, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", sorted(OF_BATCHES))
def test_ops_of_batches_repeat_all_dimensions_but_two(op, mode):
    x = _array(op, "x", (2, 1, 3, 4), tf.float32)
    y = _array(op, "y", (5, 4, 2), tf.float32)
    got = _run(op, {"x": x, "y": y}, mode)
    np.testing.assert_allclose(got, np.matmul(x, y), rtol=1e-6)
    with pytest.raises(REFUSALS):
        _run(op, {"x": x, "y": y[:, :1]}, mode)


A, B, X = (np.linspace(0.3, 2.5, n, dtype=np.float32) for n in (3, 4, 12))
COLUMN, ROW, POINTS = A[:, None], B[None], (X / 3).reshape(3, 4)
FUNCTIONS = {
    "columns and rows": (jax.scipy.special.betainc, (COLUMN, ROW, POINTS)),
    "one of two": (jax.scipy.special.betainc, (POINTS + 1, COLUMN, POINTS)),
    "numbers": (lambda x: jax.scipy.special.betainc(2.0, 0.5, x), (POINTS,)),
    "a row": (jax.scipy.special.betainc, (COLUMN, np.float32(2), POINTS[0])),
    "beta": (lambda x, a, b: jax.scipy.stats.beta.cdf(x, a, b), (POINTS, COLUMN, ROW)),
    "student": (lambda x, a: jax.scipy.special.betainc(a / 2, 0.5, a / (a + x**2)), (ROW, COLUMN)),
    "binomial": (lambda x, a: jax.scipy.special.betainc(a, a[::-1] + 1, x), (POINTS[:1], COLUMN)),
    "nothing": (jax.scipy.special.betainc, (COLUMN, ROW[:, :0], POINTS[:, :1])),
    "in a loop": (
        lambda a, b, x: jax.lax.fori_loop(
            0, 2, lambda i, x: jax.scipy.special.betainc(a + i, b, x), x
        ),
        (COLUMN, ROW, POINTS),
    ),
    "under vmap": (
        jax.vmap(jax.scipy.special.betainc, (0, None, 0)),
        (COLUMN, ROW, POINTS[:, :, None]),
    ),
    "gradient": (
        jax.grad(lambda x, a, b: jax.scipy.special.betainc(a, b, x).sum()),
        (POINTS[:, :1], COLUMN, ROW),
    ),
}


@pytest.mark.parametrize("mode", [*MODES, "open", "tensorflow"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in FUNCTIONS),
        *itertools.product(["columns and rows", "gradient"], ["bfloat16", "float64"]),
    ],
)
def test_operands_of_betainc_are_repeated(name, dtype, mode):
    fun, args = FUNCTIONS[name]
    with jax.enable_x64(dtype == "float64"):
        args = [np.asarray(x, jnp.dtype(dtype)) for x in args]
        specs = ["b, ..." if x.shape[:1] == (3,) else None for x in args]
        options = {"polymorphic_shapes": specs} if mode == "open" and any(specs) else {}
        target = "tensorflow" if mode == "tensorflow" else "xla"
        converted = jax2tf.convert(fun, target=target, **options)
        if mode != "eager":
            converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
        for _ in range(2):
            result = converted(*map(tf.constant, args))
        assert_near(result, jax.jit(fun)(*args), ulps=4 if dtype == "bfloat16" else 512)
