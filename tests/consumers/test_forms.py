"""Why graphs are written in the forms that jax2tf._src.targets.forms.FORMS names.

An engine runs what is written so. Written the other way it gives other numbers, fails, or has not
the one op that it has for the form.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
import tensorflow as tf
from jax import lax

from harnesses.engine import consumers
from harnesses.engine.consumers import onnx as onnx_runtime
from harnesses.engine.consumers.graph import Graph, graph_of, saved
from jax2tf._src.lowering.emit import combining
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.forms import FORMS
from tests.consumers.test_quirks import Program, is_right
from tests.judge.test_op_tables import SHOWN

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)).astype(np.float32)
INTEGERS = np.arange(-12, 12, dtype=np.int32).reshape(4, 6)
PLACES = np.array([[0, 2, 1], [3, 1, 2]], np.int32)


@dataclasses.dataclass(frozen=True)
class Form:
    """A form and the other way to write it, as TensorFlow functions of the arguments."""

    engine: str
    written: Callable[..., tf.Tensor]
    other: Callable[..., tf.Tensor]
    args: tuple[np.ndarray, ...]


def _largest(x: tf.Tensor) -> tf.Tensor:
    return tf.math.top_k(tf.cast(x, tf.int32), 3).values


NEEDED = {
    "as_it_is_fused": Form(
        "litert",
        lambda x: tf.nn.gelu(x, approximate=False),
        lambda x: x * (0.5 * (1.0 + tf.math.erf(x * np.float32(0.5**0.5)))),
        (X,),
    ),
    "bools_by_comparison": Form(
        "openvino",
        lambda x: tf.not_equal(_largest(x), 0),
        lambda x: tf.cast(_largest(x), tf.bool),
        (X > 0,),
    ),
    "indices_as_the_result": Form(
        "openvino",
        lambda x, i: tf.gather(x, tf.transpose(i)),
        lambda x, i: tf.transpose(tf.gather(x, i)),
        (X[0], PLACES),
    ),
    "logic_for_choice": Form(
        "openvino",
        tf.logical_or,
        lambda b, c: tf.raw_ops.SelectV2(condition=b, t=b, e=c),
        (X > 0, X > 1),
    ),
    "minimum_of_maximum": Form(
        "litert",
        lambda i: tf.minimum(tf.maximum(i, 0), 6),
        lambda i: tf.maximum(tf.minimum(i, 6), 0),
        (INTEGERS,),
    ),
}


def graph_for(form: Form, function: Callable[..., tf.Tensor]) -> Graph:
    return graph_of(function, [tf.TensorSpec(x.shape, x.dtype) for x in form.args])


def _gives_its_numbers(form: Form, function: Callable[..., tf.Tensor]) -> bool:
    model = consumers.engine(form.engine).convert(graph_for(form, function))
    (result,) = model(list(form.args))
    return np.allclose(result, function(*map(tf.constant, form.args)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NEEDED)
def test_an_engine_gets_the_other_way_wrong(name):
    form = NEEDED[name]
    assert _gives_its_numbers(form, form.written)
    try:
        is_needed = not _gives_its_numbers(form, form.other)
    except Exception as error:
        print(f"refused: {type(error).__name__}: {str(error)[:200]}")
        is_needed = True
    assert is_needed, f"{form.engine} takes both ways: {FORMS[name]}"


def test_strides_by_gather(monkeypatch):
    """What meets in a reduction by a function of the user's is every other element."""
    program = Program(
        lambda x: lax.reduce(x, np.int32(0), lax.bitwise_xor, (0,)),
        (np.arange(105, dtype=np.int32).reshape(3, 5, 7),),
    )
    assert is_right("openvino", program, TARGETS["openvino"])

    def by_strides(x: tf.Tensor, axis: int, start: int, stop: int) -> tf.Tensor:
        return x[(*[slice(None)] * axis, slice(start, stop, 2))]

    monkeypatch.setattr(combining, "_every_other", by_strides)
    # A rule keeps what it made of a jaxpr: a function of another shape is lowered anew.
    again = dataclasses.replace(program, function=lambda x: program.function(x))
    assert not is_right("openvino", again, TARGETS["openvino"])


# What an engine has one op for.


def _layer_norm(
    quotient: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    square: Callable[[tf.Tensor], tf.Tensor],
) -> Callable[[tf.Tensor], tf.Tensor]:
    scale, bias = X[1], X[2]

    def function(x: tf.Tensor) -> tf.Tensor:
        centered = x - tf.raw_ops.Mean(input=x, axis=[1], keep_dims=True)
        variance = tf.raw_ops.Mean(input=square(centered), axis=[1], keep_dims=True)
        return quotient(centered, variance + 1e-5) * scale + bias

    return function


def _by_root(x: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    return x / tf.sqrt(variance)


def _by_factor(x: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    return x * tf.math.rsqrt(variance)


def _power(x: tf.Tensor) -> tf.Tensor:
    return tf.pow(x, 2.0)


LAYER_NORM = _layer_norm(_by_root, _power)
FUSED = {
    "onnx, layer_norm by a power": (
        "LayerNormalization",
        Form("onnx", LAYER_NORM, _layer_norm(_by_root, tf.square), (X,)),
    ),
    "onnx, layer_norm by a root": (
        "LayerNormalization",
        Form("onnx", LAYER_NORM, _layer_norm(_by_factor, _power), (X,)),
    ),
    "openvino, layer_norm": (
        "MVN",
        Form("openvino", LAYER_NORM, _layer_norm(_by_factor, _power), (X,)),
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_an_engine_has_one_op_for_the_form(name, tmp_path):
    op, form = FUSED[name]
    ops = OPS[form.engine]
    assert op in ops(graph_for(form, form.written), tmp_path / "written")
    assert op not in ops(graph_for(form, form.other), tmp_path / "other")


def _ops_of_onnx(graph: Graph, path: pathlib.Path) -> set[str]:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(onnx_runtime.model_of(graph).SerializeToString(), options)
    return {node.op_type for node in onnx.load(path).graph.node}


def _ops_of_openvino(graph: Graph, path: pathlib.Path) -> set[str]:
    del path
    with saved(graph) as folder:
        compiled = openvino.compile_model(openvino.convert_model(folder), "CPU")
    nodes = compiled.get_runtime_model().get_ops()
    return {str(node.get_rt_info()["layerType"].astype(str)) for node in nodes}


OPS: dict[str, Any] = {
    "onnx": _ops_of_onnx,
    "openvino": _ops_of_openvino,
}


def test_openvino_would_reverse_kernels_in_each_call():
    kernel = RNG.normal(size=(3, 3, 2, 1)).astype(np.float32)

    def transposed(kernel: Callable[[], tf.Tensor]) -> Callable[[tf.Tensor], tf.Tensor]:
        return lambda x: tf.raw_ops.Conv2DBackpropInput(
            input_sizes=[2, 10, 10, 2],
            filter=kernel(),
            out_backprop=x,
            strides=[1, 2, 2, 1],
            padding="SAME",
        )

    form = Form(
        "openvino",
        transposed(lambda: tf.constant(np.flip(kernel, (0, 1)))),
        transposed(lambda: tf.reverse(tf.reverse(tf.constant(kernel), [0]), [1])),
        (RNG.normal(size=(2, 5, 5, 1)).astype(np.float32),),
    )
    count = consumers.engine("openvino").count_ops
    written, other = count(graph_for(form, form.written)), count(graph_for(form, form.other))
    assert written < other


def test_every_form_is_shown():
    here = NEEDED.keys() | {"constants_reversed", "strides_by_gather"}
    in_tables = SHOWN.keys() & FORMS.keys()
    assert here | in_tables == FORMS.keys()
    assert here.isdisjoint(in_tables)
