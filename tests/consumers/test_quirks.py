"""What each quirk of a target is there for: a program that the engine gets wrong without it.

With the quirk the program gives JAX's numbers, or is refused when the graph is made. Without it the
engine refuses the program, gives other numbers, or ends: a quirk that an engine no longer has fails
here. So does a lack that is no lack any more.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from jax2tf._src.targets import quirks
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from tests.consumers.engines import litert_ops

X = np.array([[0.5, -1.25, 3.0, 2.0], [1.5, 0.25, -2.0, 4.0]], np.float32)
# Neighbours that float32 cannot tell apart, and the ends.
WIDE = np.array([[2**24, 2**24 + 1, -(2**24) - 1, 7], [2**30 + 1, 2**30, 2**31 - 1, -3]], np.int32)


@dataclasses.dataclass(frozen=True)
class Program:
    """A function and its arguments.

    Attributes:
      is_open: whether the first dimension of each argument is any.
      tries: how often it is tried without the quirk. More than once where what the engine makes of
        it depends on the order of a graph's functions, which changes from graph to graph.
    """

    function: Callable[..., Any]
    args: tuple[np.ndarray, ...] = (X,)
    is_open: bool = False
    tries: int = 1

    def specs(self) -> list[tf.TensorSpec]:
        return [
            tf.TensorSpec([None, *x.shape[1:]] if self.is_open else x.shape, x.dtype)
            for x in self.args
        ]


def _in_two_groups(x: jax.Array, features: tuple[int, int], padding: Any) -> jax.Array:
    """A convolution of images of two groups of channels; `features` are those of the kernel."""
    images = jnp.tile(x.reshape(1, 2, 4, 1), (1, 2, 1, 2 * features[0]))
    kernel = jnp.arange(4.0 * math.prod(features), dtype=jnp.float32).reshape(2, 2, *features)
    return lax.conv_general_dilated(
        images,
        kernel,
        (1, 1),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=2,
    )


def _convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x[None, None], kernel[None, None], (1, 1), "VALID")


def _along_rows(padding: str, dilation: int = 1, groups: int = 1) -> Program:
    """A window of two rows of any number of them: one row may be too few."""
    kernel = np.arange(12.0 * groups, dtype=np.float32).reshape(2, 2, 1, 3 * groups)

    def convolved(x: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            jnp.stack([x] * groups, -1)[None],
            kernel,
            (1, 1),
            padding,
            rhs_dilation=(1, dilation),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    return Program(convolved, is_open=True)


@jax.jit
def _summed_up(x: jax.Array) -> jax.Array:
    """A layer with a loop that gives something at each step."""
    sums = lax.scan(lambda c, row: (c * 0.5 + row, c * row), x[0], x)[1]
    return jnp.tanh(sums * 0.5 + x)


LISTS_IN_LAYERS = Program(lambda x: _summed_up(_summed_up(_summed_up(x))))


# A NaN beside numbers.
NAN = np.array([[0.5, np.nan, 3.0, -2.0], [np.nan, 0.25, -2.0, 4.0]], np.float32)
# A row of nothing but what a mask leaves.
MASKED = np.array([[-np.inf, -np.inf], [-np.inf, np.finfo(np.float32).min]], np.float32)

MOVED_CARRY = Program(lambda x: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], c[0]), (x, x * 2)))
COMPLEX = Program(lambda x: jnp.real(jnp.exp(1j * x) * (x + 2j)))
OPEN_GROUPS = Program(
    jax.vmap(_convolved),
    (np.ones((2, 5, 5), np.float32), np.arange(8, dtype=np.float32).reshape(2, 2, 2)),
    is_open=True,
)


OUT_OF_BOUNDS = np.array([0, 5], np.int32)
ADDED_BY_INDEX = Program(lambda x, i: x.at[i].add(1.0), (X, OUT_OF_BOUNDS))
WRITTEN_BY_INDEX = Program(lambda x, i: x.at[i].set(1.0), (X, OUT_OF_BOUNDS))
BITS = Program(lambda x: lax.bitcast_convert_type(x, jnp.int32) >> 3)

PROGRAMS: dict[tuple[str, Quirk], Program] = {
    ("litert", Quirk.NO_CONSTANT_BY_OPEN_MATRIX): Program(
        lambda x: jnp.einsum("bhc,hk->bkc", x.reshape(-1, 2, 2), X), is_open=True
    ),
    ("litert", Quirk.CARRIES_IN_TURN): MOVED_CARRY,
    ("litert", Quirk.FACTORS_REPEAT_IN_PRODUCTS): Program(
        lambda x: (x.sum(1, keepdims=True) * np.float32([2, 3, 5])) @ np.ones((3, 2), np.float32)
    ),
    ("litert", Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE): Program(lambda x: 1 - x.T),
    ("litert", Quirk.LISTS_OF_KNOWN_SHAPE): Program(
        lambda x: lax.scan(lambda c, y: (c + y, c * 2 + y), x[:, 0], x.T)[1], is_open=True
    ),
    ("litert", Quirk.DROPS_TRANSPOSES_AROUND_RESHAPE): Program(
        lambda x: x.reshape(1, 2, 2, 2).swapaxes(1, 2).reshape(2, 2, 2).swapaxes(1, 2)
    ),
    ("litert", Quirk.NO_LISTS_IN_FUNCTIONS): LISTS_IN_LAYERS,
    ("litert", Quirk.PADS_LOSE_SIZES): _along_rows("VALID"),
    ("litert", Quirk.MOVES_CASTS): Program(
        lambda x: (jnp.take(x, np.array([1, 5]), 0), jnp.broadcast_to(x, (3, 2, 4))),
        (X.astype(np.float16),),
    ),
    ("litert", Quirk.NO_ATAN2_OF_SCALAR): Program(lambda x: jnp.arctan2(x, x[0, 0])),
    ("litert", Quirk.NO_BAD_INDICES): ADDED_BY_INDEX,
    ("litert", Quirk.NO_OPEN_NUMBER_OF_GROUPS): OPEN_GROUPS,
    ("litert", Quirk.NO_ROW_BY_COMPUTED_MATRIX): Program(
        lambda row, matrix: row @ matrix, (X[0], np.arange(12, dtype=np.float32).reshape(4, 3))
    ),
    ("litert", Quirk.RELU_TAKES_GELU_APART): Program(
        lambda x: (
            jax.nn.relu(jax.nn.gelu(x, approximate=False)),
            jnp.maximum(0.0, jax.nn.gelu(x * 2, approximate=False)),
            jnp.clip(jax.nn.gelu(x * 3, approximate=False), 0.0, 6.0),
        )
    ),
    ("onnx", Quirk.FEW_FUNCTIONS_OF_FLOAT16): Program(
        lambda x: x.at[np.array([0, 0])].add(np.float16(0.5)), (X.astype(np.float16),)
    ),
    ("onnx", Quirk.NO_BAD_INDICES): WRITTEN_BY_INDEX,
    ("onnx", Quirk.NO_OPEN_NUMBER_OF_GROUPS): OPEN_GROUPS,
    ("openvino", Quirk.ADDS_INTEGERS_AS_FLOATS): Program(lambda x: jnp.sum(x, axis=1), (WIDE,)),
    ("openvino", Quirk.CARRIES_IN_TURN): MOVED_CARRY,
    ("openvino", Quirk.CHOOSES_INTEGERS_AS_FLOATS): Program(
        lambda x: jnp.where(x // 3 > 5, x, x[:, ::-1]), (WIDE,)
    ),
    ("openvino", Quirk.DIVIDES_INTEGERS_AS_FLOATS): Program(
        lambda x: lax.div(x, np.int32(3)), (WIDE,)
    ),
    ("openvino", Quirk.DROPS_CONSTANT_RESULTS): Program(lambda x: (x, jnp.arange(3))),
    ("openvino", Quirk.DROPS_UNREAD_CARRIES): Program(
        lambda x: lax.while_loop(
            lambda c: c[0] < x[0, 0] - 2, lambda c: (c[0] + 1, x.T @ x), (0.0, jnp.ones((4, 4)))
        )
    ),
    ("openvino", Quirk.EQUATES_LARGE_INTEGERS): Program(lambda x: x[:, 1:] == x[:, :-1], (WIDE,)),
    ("openvino", Quirk.EXTREME_KEEPS_A_NAN_OF_THE_SECOND): Program(
        lambda x: (jnp.maximum(x, 1.0), jnp.minimum(2.0, x)), (NAN,)
    ),
    ("openvino", Quirk.EXTREMES_FROM_A_FINITE_NUMBER): Program(
        lambda x: (jnp.max(x, 1), jnp.min(-x, 1)), (MASKED,)
    ),
    ("openvino", Quirk.FEW_FUNCTIONS_OF_FLOAT16): Program(jnp.expm1, (NAN.astype(np.float16),)),
    ("openvino", Quirk.INFINITE_EXP_OF_NAN): Program(lambda x: (jnp.exp(x), jnp.cosh(x)), (NAN,)),
    ("openvino", Quirk.INFINITE_SUBNORMALS): Program(
        lambda x: jnp.isfinite(x), (np.array([1e-40, -1e-40, 1, np.inf, np.nan], np.float32),)
    ),
    ("openvino", Quirk.KEEPS_WHAT_16_BITS_LOSE): Program(
        lambda x: (x.astype(np.uint16) >> 1, (x.astype(np.int16) + np.int16(1)) // 3), (WIDE,)
    ),
    ("openvino", Quirk.NAN_IN_PARTS_OF_SOFTMAX): Program(jax.nn.softmax, (NAN,)),
    ("openvino", Quirk.NO_BAD_INDICES): WRITTEN_BY_INDEX,
    ("openvino", Quirk.NO_FOLDING): Program(
        lambda x: x * jax.ops.segment_max(jnp.asarray(X), np.array([1, 0]), 2)
    ),
    ("openvino", Quirk.NO_GATHER_IN_BATCHES): Program(
        lambda x, i: jax.vmap(lambda matrix, i: matrix.T[i])(x, i),
        (np.arange(12, dtype=np.float32).reshape(2, 2, 3), np.array([[2, 0], [1, 1]], np.int32)),
    ),
    ("openvino", Quirk.NO_INTEGERS_OF_THREE_DIMENSIONS): Program(
        lambda x: jnp.prod(x, 1) * 2, (np.arange(24, dtype=np.int32).reshape(2, 3, 4),)
    ),
    ("openvino", Quirk.NO_OPEN_NUMBER_OF_GROUPS): OPEN_GROUPS,
    ("openvino", Quirk.NO_PADDINGS_IN_NUMBERS): Program(
        lambda x: _in_two_groups(x, (1, 2), [(1, 0), (2, 1)])
    ),
    ("openvino", Quirk.ONE_REVERSE_AT_A_TIME): Program(lambda x: lax.rev(x, (0, 1))),
    ("openvino", Quirk.ORDERS_INTEGERS_AS_FLOATS): Program(lambda x: jnp.max(x, axis=1), (WIDE,)),
    ("openvino", Quirk.PADS_INTEGERS_AS_FLOATS): Program(
        lambda x: lax.pad(x, np.int32(2**31 - 1), [(1, 0, 0), (0, 2, 0)]), (WIDE,)
    ),
    ("openvino", Quirk.PADS_WITH_CONSTANTS_ALONE): Program(
        lambda x: lax.pad(x, x[0, 0], [(1, 0, 0), (0, 2, 0)])
    ),
    ("tfjs", Quirk.NO_CONVOLUTION_IN_GROUPS): Program(lambda x: _in_two_groups(x, (2, 4), "VALID")),
    ("openvino", Quirk.OVERWRITES_VECTORS): Program(
        lambda x: [
            (y, jnp.abs(y), jnp.isfinite(y)) for y in (jnp.append(x[0], x[1]), jnp.stack(x[0]))
        ]
    ),
    ("tfjs", Quirk.NO_STRIDES_OF_DILATED): Program(
        lambda x: lax.conv_general_dilated(
            jnp.tile(x.reshape(1, 2, 4, 1), (1, 3, 2, 1)),
            np.arange(4, dtype=np.float32).reshape(2, 2, 1, 1),
            (1, 2),
            "SAME",
            rhs_dilation=(2, 3),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
    ),
    ("tfjs", Quirk.MAGNITUDES_AS_FLOATS): Program(jnp.abs, (WIDE,)),
    ("tfjs", Quirk.TAKES_CONSTANT_BRANCHES): Program(
        lambda x: [
            lax.cond(x[0, 0] > limit, lambda x: jnp.full_like(x, 7.0), lambda x: x * 2, x)
            for limit in (-100.0, 100.0)
        ]
    ),
    ("tfjs", Quirk.UPDATES_IN_PLACE): Program(
        lambda x: [(y, y.at[0].set(y[1])) for y in (x / 2, x > 0, jnp.floor(x).astype(jnp.int32))]
    ),
}

# What an engine lacks: an op, dtypes, or an op of arrays of many dimensions.
LACKED: dict[tuple[str, str], Program] = {
    ("litert", "Max"): Program(lambda x: jnp.max(x.reshape(1, 2, 1, 2, 1, 2, 1), axis=(0, 3, 5))),
    ("litert", "PadV2"): Program(
        lambda x: jnp.pad(
            x.reshape(2, 1, 2, 1, 2, 1), [(1, 0), (0, 0), (0, 2), (0, 0), (0, 0), (1, 1)]
        )
    ),
    ("litert", "complex"): COMPLEX,
    ("onnx", "Bitcast"): BITS,
    ("onnx", "complex"): COMPLEX,
    ("openvino", "Bitcast"): BITS,
    ("openvino", "complex"): COMPLEX,
    ("tfjs", "Bitcast"): BITS,
    ("tfjs", "complex"): COMPLEX,
    ("tfjs", "uint32"): Program(
        lambda x: lax.fori_loop(
            0, 3, lambda i, c: c * np.uint32(2654435769) + jnp.uint32(i), x.astype(jnp.uint32)
        ).astype(jnp.float32)
    ),
}
# The target as if its engine had it.
GIVEN: dict[str, Callable[[Target], Target]] = {
    "Bitcast": lambda target: dataclasses.replace(
        target, lacks={op: dtypes for op, dtypes in target.lacks.items() if op != "Bitcast"}
    ),
    "Max": lambda target: dataclasses.replace(target, most_dimensions_of={"Max": 8}),
    "PadV2": lambda target: dataclasses.replace(target, most_dimensions_of={"PadV2": 8}),
    "complex": lambda target: dataclasses.replace(target, computes_in={}),
    "uint32": lambda target: dataclasses.replace(
        target, lacks_dtypes=target.lacks_dtypes - {"uint32"}
    ),
}

# What a target refuses for a quirk: the engine would give other numbers.
REFUSED: dict[tuple[str, Quirk], Program] = {
    ("openvino", Quirk.COMPUTES_64_BITS_IN_32): Program(
        lambda x: lax.bitcast_convert_type(x, jnp.int32), (WIDE.astype(np.int64) * 2**31,)
    ),
    ("openvino", Quirk.NO_BITS_OF_OPEN_SHAPE): Program(
        lambda x: lax.bitcast_convert_type(x / 3, jnp.int32) + 1, is_open=True
    ),
}

# Without the quirk the engine ends the process.
ENDS: dict[tuple[str, Quirk], Program] = {
    ("openvino", Quirk.NO_PRODUCT_OF_VECTORS): Program(lambda x: x[0] @ x[1]),
    ("openvino", Quirk.NO_GATHER_OF_ONE_BATCH): Program(
        lambda x: (
            jnp.sort(x[:1]),
            jnp.argsort(x[:1, ::-1]),
            lax.top_k(x.T[None, :, :1], 2, axis=1),
        ),
        tries=9,
    ),
}


def is_right(engine: str, program: Program, target: Target) -> bool:
    """Whether the engine runs the program and gives JAX's numbers."""
    dims = ", ".join(["b", *["_"] * (program.args[0].ndim - 1)])
    function = jax.jit(program.function)
    converted = jax2tf.convert(
        function,
        target=target,
        with_gradient=False,
        polymorphic_shapes=[dims if program.is_open else None] * len(program.args),
    )
    graph = graph_of(converted, program.specs())
    expected = jax.tree.leaves(function(*program.args))
    run = consumers.engine(engine).convert(graph)
    results = run(list(program.args))
    return all(
        result.shape == wanted.shape and _is_near(result, wanted)
        for result, wanted in zip(results, map(np.asarray, expected), strict=True)
    )


def _is_near(result: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether numbers are JAX's; of floats, to 1e-5 or to the last bit that their dtype has."""
    if wanted.dtype.kind != "f":
        return np.array_equal(result, wanted)
    # JAX 0.10 rounds expm1 of float16 the other way than JAX 0.12.
    rtol = max(1e-5, np.finfo(wanted.dtype).eps)
    return np.allclose(result, wanted, rtol=rtol, equal_nan=True)


def is_right_without(engine: str, quirk: Quirk, program: Program) -> bool:
    """As `is_right`, for the engine's target without a quirk."""
    target = TARGETS[engine]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quirks, "AVOIDED_WITHOUT_XLA", quirks.AVOIDED_WITHOUT_XLA - {quirk})
        target = lacking(target, quirk)
        return all(is_right(engine, program, target) for _ in range(program.tries))


def lacking(target: Target, quirk: Quirk) -> Target:
    assert quirk in target.quirks
    return dataclasses.replace(target, quirks=target.quirks - {quirk})


@pytest.mark.parametrize(("engine", "quirk"), PROGRAMS)
def test_an_engine_needs_its_quirk(engine, quirk):
    program = PROGRAMS[engine, quirk]
    assert is_right(engine, program, TARGETS[engine])
    try:
        needs_none = is_right_without(engine, quirk, program)
    except Exception as error:
        print(f"refused: {type(error).__name__}: {str(error)[:200]}")
        needs_none = False
    assert not needs_none, f"{engine} has no quirk {quirk} any more: {quirk.meaning}"


@pytest.mark.parametrize(("engine", "lacked"), LACKED)
def test_an_engine_lacks_what_its_target_says(engine, lacked):
    program = LACKED[engine, lacked]
    assert is_right(engine, program, TARGETS[engine])
    try:
        has_it = is_right(engine, program, GIVEN[lacked](TARGETS[engine]))
    except Exception as error:
        print(f"refused: {type(error).__name__}: {str(error)[:200]}")
        has_it = False
    assert not has_it, f"{engine} no longer lacks {lacked}"


@pytest.mark.parametrize(("engine", "quirk"), REFUSED)
def test_what_an_engine_gets_wrong_is_refused(engine, quirk):
    with jax.enable_x64(True):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError):
            is_right(engine, REFUSED[engine, quirk], TARGETS[engine])
        assert not is_right_without(engine, quirk, REFUSED[engine, quirk])


@pytest.mark.parametrize(("engine", "quirk"), ENDS)
def test_an_engine_ends_without_its_quirk(engine, quirk):
    program = ENDS[engine, quirk]
    assert is_right(engine, program, TARGETS[engine])
    key = f"{engine!r}, Quirk({quirk.value!r})"
    call = (
        f"from {__name__} import ENDS, Quirk, is_right_without; "
        f"is_right_without({key}, ENDS[{key}])"
    )
    process = subprocess.run([sys.executable, "-c", call], check=False, capture_output=True)
    assert process.returncode < 0, f"{engine} has no quirk {quirk} any more: {process.stderr}"


def test_litert_leaves_squares_and_signs_in_floats_without_its_quirk(tmp_path, monkeypatch):
    assert _floats_of_integer_model(tmp_path / "with.tflite") == {"QUANTIZE", "DEQUANTIZE"}
    without = lacking(TARGETS["litert"], Quirk.NO_INTEGER_SQUARE)
    monkeypatch.setitem(TARGETS, "litert", without)
    assert _floats_of_integer_model(tmp_path / "without.tflite") > {"SQUARE", "NEG"}


def _floats_of_integer_model(path: pathlib.Path) -> set[str]:
    """The ops with numbers of float32 in a model that is quantised to integers."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4, 4)).astype(np.float32)
    jax2tf.export(
        *(lambda x: jnp.square(-jnp.tanh(x @ w)) @ w, None, "2, 4", path),
        quantize="int8",
        representative_data=[rng.normal(size=(2, 4)).astype(np.float32) for _ in range(8)],
        tolerance=0.1,
    )
    return {op for op, dtypes in litert_ops(path) if "FLOAT32" in dtypes}


# Shown by more than a program: above.
OF_INTEGER_MODELS = frozenset({Quirk.NO_INTEGER_SQUARE})


def test_every_quirk_is_shown():
    """Those of DTensor and TensorFlow are shown in tests/impl."""
    shown = {quirk for _, quirk in (*PROGRAMS, *REFUSED, *ENDS)} | OF_INTEGER_MODELS
    elsewhere = set().union(*map(quirks.quirks_of, ("dtensor", "tensorflow", "xla")))
    assert shown == set(Quirk) - elsewhere


def test_a_program_is_for_an_engine_at_fault():
    for engine, quirk in (*PROGRAMS, *REFUSED, *ENDS):
        assert quirk in quirks.quirks_of(engine)
        assert quirk in TARGETS[engine].quirks
