"""What each quirk of a target is there for: a program that the engine gets wrong without it.

With the quirk the program gives JAX's numbers, or is refused when the graph is made. Without it the
engine refuses the program, gives other numbers, or ends: a quirk that an engine no longer has fails
here.
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
from jax2tf._src.targets import targets
from jax2tf._src.targets.targets import OF_DTENSOR, QUIRKS, TARGETS, Target
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


def _appended(x: jax.Array) -> Any:
    return lax.scan(lambda c, y: (c + y, c * 2 + y), jnp.zeros(()), x[0], reverse=True)[1]


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


def _pooled(x: jax.Array) -> jax.Array:
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "SAME")
    return jnp.sum(largest**2)


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


def _in_two_loops(x: jax.Array) -> jax.Array:
    """Two bodies, each with constants of its own."""
    first = lax.fori_loop(0, 3, lambda i, c: c * 2.0 + jnp.sum(x), x)
    return first * 2.0 + lax.fori_loop(0, 2, lambda i, c: c * 3.0 + 2.0, x)


OUT_OF_BOUNDS = np.array([0, 5], np.int32)
ADDED_BY_INDEX = Program(lambda x, i: x.at[i].add(1.0), (X, OUT_OF_BOUNDS))
WRITTEN_BY_INDEX = Program(lambda x, i: x.at[i].set(1.0), (X, OUT_OF_BOUNDS))
BITS = Program(lambda x: lax.bitcast_convert_type(x, jnp.int32) >> 3)

PROGRAMS: dict[tuple[str, str], Program] = {
    ("litert", "carries_in_turn"): MOVED_CARRY,
    ("litert", "exchanges_constant_and_transpose"): Program(lambda x: 1 - x.T),
    ("litert", "few_dimensions_in_reductions"): Program(
        lambda x: jnp.max(x.reshape(1, 2, 1, 2, 1, 2, 1), axis=(0, 3, 5))
    ),
    ("litert", "lists_of_known_shape"): Program(
        lambda x: lax.scan(lambda c, y: (c + y, c * 2 + y), x[:, 0], x.T)[1], is_open=True
    ),
    ("litert", "drops_transposes_around_reshape"): Program(
        lambda x: x.reshape(1, 2, 2, 2).swapaxes(1, 2).reshape(2, 2, 2).swapaxes(1, 2)
    ),
    ("litert", "few_dimensions_in_pads"): Program(
        lambda x: jnp.pad(
            x.reshape(2, 1, 2, 1, 2, 1), [(1, 0), (0, 0), (0, 2), (0, 0), (0, 0), (1, 1)]
        )
    ),
    ("litert", "no_lists_in_functions"): LISTS_IN_LAYERS,
    ("litert", "pads_lose_sizes"): _along_rows("VALID"),
    ("litert", "moves_casts"): Program(
        lambda x: (jnp.take(x, np.array([1, 5]), 0), jnp.broadcast_to(x, (3, 2, 4))),
        (X.astype(np.float16),),
    ),
    ("litert", "no_atan2_of_scalar"): Program(lambda x: jnp.arctan2(x, x[0, 0])),
    ("litert", "no_bad_indices"): ADDED_BY_INDEX,
    ("litert", "no_complex_numbers"): COMPLEX,
    ("litert", "no_open_number_of_groups"): OPEN_GROUPS,
    ("litert", "no_row_by_computed_matrix"): Program(
        lambda row, matrix: row @ matrix, (X[0], np.arange(12, dtype=np.float32).reshape(4, 3))
    ),
    ("litert", "relu_takes_gelu_apart"): Program(
        lambda x: (
            jax.nn.relu(jax.nn.gelu(x, approximate=False)),
            jnp.maximum(0.0, jax.nn.gelu(x * 2, approximate=False)),
            jnp.clip(jax.nn.gelu(x * 3, approximate=False), 0.0, 6.0),
        )
    ),
    ("onnx", "no_same_padding_of_dilated"): _along_rows("SAME", dilation=2),
    ("onnx", "no_lists_in_functions"): LISTS_IN_LAYERS,
    ("onnx", "pads_lose_sizes"): _along_rows("VALID", dilation=2, groups=2),
    ("onnx", "appends_in_loops"): Program(_appended),
    ("onnx", "choice_by_product"): Program(
        lambda x: (
            jnp.where(x > 0, x * jnp.log(x), 0.0),
            jnp.where(np.array([True, False, False, True]), x, x / 0),
            jax.grad(_pooled)(x),
            jnp.full(3, -jnp.inf).at[1 + x[0, :1].astype(jnp.int32)].max(x[0, :1]),
        )
    ),
    ("onnx", "compares_integers_as_floats"): Program(lambda x: x[:, 1:] > x[:, :-1], (WIDE,)),
    ("onnx", "constants_by_name"): Program(_in_two_loops, tries=16),
    ("onnx", "few_functions_of_float16"): Program(
        lambda x: x.at[np.array([0, 0])].add(np.float16(0.5)), (X.astype(np.float16),)
    ),
    ("onnx", "integer_reductions_saturate"): Program(lambda x: jnp.prod(x, axis=1), (WIDE,)),
    ("onnx", "no_adjoint_of_integers"): Program(
        lambda x: jnp.einsum("bij,bkj->bik", x, x),
        (np.arange(12, dtype=np.int32).reshape(2, 2, 3),),
    ),
    ("onnx", "no_angle_of_scalars"): Program(lambda x: jnp.arctan(x[0, 0])),
    ("onnx", "no_bad_indices"): WRITTEN_BY_INDEX,
    ("onnx", "no_bitcast"): BITS,
    ("onnx", "no_complex_numbers"): COMPLEX,
    ("onnx", "no_gelu_of_scalar"): Program(lambda x: jnp.cos(jax.nn.gelu(jnp.sin(x[0, 0])))),
    ("onnx", "no_open_number_of_groups"): OPEN_GROUPS,
    ("onnx", "sorts_integers_as_floats"): Program(lambda x: jnp.sort(x, axis=-1), (WIDE,)),
    ("openvino", "adds_integers_as_floats"): Program(lambda x: jnp.sum(x, axis=1), (WIDE,)),
    ("openvino", "carries_in_turn"): MOVED_CARRY,
    ("openvino", "chooses_integers_as_floats"): Program(
        lambda x: jnp.where(x // 3 > 5, x, x[:, ::-1]), (WIDE,)
    ),
    ("openvino", "divides_integers_as_floats"): Program(lambda x: lax.div(x, np.int32(3)), (WIDE,)),
    ("openvino", "drops_constant_results"): Program(lambda x: (x, jnp.arange(3))),
    ("openvino", "drops_unread_carries"): Program(
        lambda x: lax.while_loop(
            lambda c: c[0] < x[0, 0] - 2, lambda c: (c[0] + 1, x.T @ x), (0.0, jnp.ones((4, 4)))
        )
    ),
    ("openvino", "equates_large_integers"): Program(lambda x: x[:, 1:] == x[:, :-1], (WIDE,)),
    ("openvino", "extreme_keeps_a_nan_of_the_second"): Program(
        lambda x: (jnp.maximum(x, 1.0), jnp.minimum(2.0, x)), (NAN,)
    ),
    ("openvino", "extremes_from_a_finite_number"): Program(
        lambda x: (jnp.max(x, 1), jnp.min(-x, 1)), (MASKED,)
    ),
    ("openvino", "few_functions_of_float16"): Program(jnp.expm1, (NAN.astype(np.float16),)),
    ("openvino", "infinite_exp_of_nan"): Program(lambda x: (jnp.exp(x), jnp.cosh(x)), (NAN,)),
    ("openvino", "infinite_subnormals"): Program(
        lambda x: jnp.isfinite(x), (np.array([1e-40, -1e-40, 1, np.inf, np.nan], np.float32),)
    ),
    ("openvino", "keeps_what_16_bits_lose"): Program(
        lambda x: (x.astype(np.uint16) >> 1, (x.astype(np.int16) + np.int16(1)) // 3), (WIDE,)
    ),
    ("openvino", "nan_in_parts_of_softmax"): Program(jax.nn.softmax, (NAN,)),
    ("openvino", "no_bad_indices"): WRITTEN_BY_INDEX,
    ("openvino", "no_bitcast"): BITS,
    ("openvino", "no_complex_numbers"): COMPLEX,
    ("openvino", "no_folding"): Program(
        lambda x: x * jax.ops.segment_max(jnp.asarray(X), np.array([1, 0]), 2)
    ),
    ("openvino", "no_gather_in_batches"): Program(
        lambda x, i: jax.vmap(lambda matrix, i: matrix.T[i])(x, i),
        (np.arange(12, dtype=np.float32).reshape(2, 2, 3), np.array([[2, 0], [1, 1]], np.int32)),
    ),
    ("openvino", "no_integers_of_three_dimensions"): Program(
        lambda x: jnp.prod(x, 1) * 2, (np.arange(24, dtype=np.int32).reshape(2, 3, 4),)
    ),
    ("openvino", "no_open_number_of_groups"): OPEN_GROUPS,
    ("openvino", "no_paddings_in_numbers"): Program(
        lambda x: _in_two_groups(x, (1, 2), [(1, 0), (2, 1)])
    ),
    ("openvino", "one_reverse_at_a_time"): Program(lambda x: lax.rev(x, (0, 1))),
    ("openvino", "orders_integers_as_floats"): Program(lambda x: jnp.max(x, axis=1), (WIDE,)),
    ("openvino", "pads_integers_as_floats"): Program(
        lambda x: lax.pad(x, np.int32(2**31 - 1), [(1, 0, 0), (0, 2, 0)]), (WIDE,)
    ),
    ("openvino", "pads_with_constants_alone"): Program(
        lambda x: lax.pad(x, x[0, 0], [(1, 0, 0), (0, 2, 0)])
    ),
    ("tfjs", "no_bitcast"): BITS,
    ("tfjs", "no_complex_numbers"): COMPLEX,
    ("tfjs", "no_convolution_in_groups"): Program(lambda x: _in_two_groups(x, (2, 4), "VALID")),
    ("tfjs", "no_uint32"): Program(
        lambda x: lax.fori_loop(
            0, 3, lambda i, c: c * np.uint32(2654435769) + jnp.uint32(i), x.astype(jnp.uint32)
        ).astype(jnp.float32)
    ),
    ("openvino", "overwrites_vectors"): Program(
        lambda x: [
            (y, jnp.abs(y), jnp.isfinite(y)) for y in (jnp.append(x[0], x[1]), jnp.stack(x[0]))
        ]
    ),
    ("tfjs", "no_strides_of_dilated"): Program(
        lambda x: lax.conv_general_dilated(
            jnp.tile(x.reshape(1, 2, 4, 1), (1, 3, 2, 1)),
            np.arange(4, dtype=np.float32).reshape(2, 2, 1, 1),
            (1, 2),
            "SAME",
            rhs_dilation=(2, 3),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
    ),
    ("onnx", "truncates_quotients"): Program(
        lambda x: (jnp.resize(x.reshape(-1), (3,)), x * (-x.shape[0] // 5), x * (-x.shape[0] % 5)),
        is_open=True,
    ),
    ("tfjs", "magnitudes_as_floats"): Program(jnp.abs, (WIDE,)),
    ("tfjs", "takes_constant_branches"): Program(
        lambda x: [
            lax.cond(x[0, 0] > limit, lambda x: jnp.full_like(x, 7.0), lambda x: x * 2, x)
            for limit in (-100.0, 100.0)
        ]
    ),
    ("tfjs", "updates_in_place"): Program(
        lambda x: [(y, y.at[0].set(y[1])) for y in (x / 2, x > 0, jnp.floor(x).astype(jnp.int32))]
    ),
}

# What a target refuses for a quirk: the engine would give other numbers.
REFUSED: dict[tuple[str, str], Program] = {
    ("openvino", "computes_64_bits_in_32"): Program(
        lambda x: lax.bitcast_convert_type(x, jnp.int32), (WIDE.astype(np.int64) * 2**31,)
    ),
    ("openvino", "no_bits_of_open_shape"): Program(
        lambda x: lax.bitcast_convert_type(x / 3, jnp.int32) + 1, is_open=True
    ),
}

# Without the quirk the engine ends the process.
ENDS: dict[tuple[str, str], Program] = {
    ("openvino", "no_product_of_vectors"): Program(lambda x: x[0] @ x[1]),
    ("openvino", "no_gather_of_one_batch"): Program(
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
        result.shape == wanted.shape and np.allclose(result, wanted, rtol=1e-5, equal_nan=True)
        if wanted.dtype.kind == "f"
        else np.array_equal(result, wanted)
        for result, wanted in zip(results, map(np.asarray, expected), strict=True)
    )


def is_right_without(engine: str, quirk: str, program: Program) -> bool:
    """As `is_right`, for the engine's target without a quirk."""
    target = TARGETS[engine]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "OF_ENGINES", targets.OF_ENGINES - {quirk})
        target = lacking(target, quirk)
        return all(is_right(engine, program, target) for _ in range(program.tries))


def lacking(target: Target, quirk: str) -> Target:
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
    assert not needs_none, f"{engine} has no quirk {quirk} any more: {QUIRKS[quirk]}"


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
    call = (
        f"from {__name__} import ENDS, is_right_without; "
        f"is_right_without({engine!r}, {quirk!r}, ENDS[{engine!r}, {quirk!r}])"
    )
    process = subprocess.run([sys.executable, "-c", call], check=False, capture_output=True)
    assert process.returncode < 0, f"{engine} has no quirk {quirk} any more: {process.stderr}"


def test_litert_leaves_squares_and_signs_in_floats_without_its_quirk(tmp_path, monkeypatch):
    assert _floats_of_integer_model(tmp_path / "with.tflite") == {"QUANTIZE", "DEQUANTIZE"}
    without = lacking(TARGETS["litert"], "no_integer_square")
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
OF_INTEGER_MODELS = frozenset({"no_integer_square"})


def test_every_quirk_is_shown():
    """Those of DTensor are shown in tests/impl/test_dtensor.py."""
    shown = {quirk for _, quirk in (*PROGRAMS, *REFUSED, *ENDS)} | OF_INTEGER_MODELS
    assert shown == QUIRKS.keys() - OF_DTENSOR
