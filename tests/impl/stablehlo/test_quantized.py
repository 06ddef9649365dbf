"""Quantized tensors: held against the specification's formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

import jax2tf

X = np.array([[0.3, -1.25, 70.0], [-90.0, 2.2, 0.75]], np.float32)
_A = "!quant.uniform<i8:f32, 0.5:10>"
_B = "!quant.uniform<i8:f32, 0.25:-3>"
_C = "!quant.uniform<i8<-2:3>:f32, 0.25>"
_AXIS = "!quant.uniform<i8:f32:1, {0.5:1,0.25,2.0:-3}>"
_AXIS_0 = "!quant.uniform<i8:f32:0, {0.5:1,0.25,2.0:-3}>"
_W = "!quant.uniform<i8:f32:1, {0.5,0.25}>"
_SUM = "!quant.uniform<i32:f32, 0.125>"


def _q(x: Any, scale: Any, zero: Any = 0, low: int = -128, high: int = 127) -> np.ndarray:
    scaled = np.clip(np.float32(x) / np.float32(scale) + np.float32(zero), low, high)
    return np.asarray(np.rint(scaled))


def _a(x: Any) -> Any:
    return (_q(x, 0.5, 10) - 10) * 0.5


def _axis(x: Any, shape: Any = (1, 3)) -> Any:
    scales, zeros = (np.reshape(n, shape) for n in ([0.5, 0.25, 2.0], [1, 0, -3]))
    return (_q(x, scales, zeros) - zeros) * scales


def _t(element: str, *shape: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def _loaded(body: str, result: str, argument: str = _t("f32", 2, 3)) -> Any:
    return jax2tf.load(f"func.func @main(%x: {argument}) -> {result} {{\n{body}\n}}".encode())


_QUANTIZED = f"%q = stablehlo.uniform_quantize %x : ({_t('f32', 2, 3)}) -> {_t(_A, 2, 3)}\n"
_BY_AXIS = f"%q = stablehlo.uniform_quantize %x : ({_t('f32', 2, 3)}) -> {_t(_AXIS, 2, 3)}\n"
CASES = {
    "add": (_QUANTIZED, f"stablehlo.add %q, %q : {_t(_A, 2, 3)}", _t(_A, 2, 3), _a(_a(X) * 2)),
    "tanh": (
        _QUANTIZED,
        f"stablehlo.tanh %q : ({_t(_A, 2, 3)}) -> {_t(_B, 2, 3)}",
        _t(_B, 2, 3),
        (_q(np.tanh(_a(X)), 0.25, -3) + 3) * 0.25,
    ),
    "limits": (
        "",
        f"stablehlo.uniform_quantize %x : ({_t('f32', 2, 3)}) -> {_t(_C, 2, 3)}",
        _t(_C, 2, 3),
        _q(X, 0.25, 0, -2, 3) * 0.25,
    ),
    "quantized again": (
        _QUANTIZED,
        f"stablehlo.uniform_quantize %q : ({_t(_A, 2, 3)}) -> {_t(_AXIS, 2, 3)}",
        _t(_AXIS, 2, 3),
        _axis(_a(X)),
    ),
    "transposed by axis": (
        _BY_AXIS,
        f"stablehlo.transpose %q, dims = [1, 0] : ({_t(_AXIS, 2, 3)}) -> {_t(_AXIS_0, 3, 2)}",
        _t(_AXIS_0, 3, 2),
        _axis(X).T,
    ),
    "cube": (
        _QUANTIZED + f"%s = stablehlo.multiply %q, %q : {_t(_A, 2, 3)}\n",
        f"stablehlo.multiply %q, %s : {_t(_A, 2, 3)}",
        _t(_A, 2, 3),
        _a(_a(X) * _a(_a(X) ** 2)),
    ),
    "product": (
        f"""%q = stablehlo.uniform_quantize %x : ({_t("f32", 2, 3)}) -> {_t(_A, 2, 3)}
        %w = "stablehlo.constant"()
            {{value = dense<[[1, -2], [3, 4], [5, 100]]> : tensor<3x2xi8>}} : () -> {_t(_W, 3, 2)}
        """,
        f"""stablehlo.dot_general %q, %w, contracting_dims = [1] x [0] :
            ({_t(_A, 2, 3)}, {_t(_W, 3, 2)}) -> {_t(_SUM, 2, 2)}""",
        _t(_SUM, 2, 2),
        _a(X) @ (np.array([[1, -2], [3, 4], [5, 100]]) * [0.5, 0.25]),
    ),
    "sum": (
        _QUANTIZED + f'%c = "stablehlo.constant"() {{value = dense<10> : tensor<i8>}} : '
        f"() -> {_t(_A)}\n",
        f"""stablehlo.reduce(%q init: %c) applies stablehlo.add across dimensions = [1] :
            ({_t(_A, 2, 3)}, {_t(_A)}) -> {_t(_A, 2)}""",
        _t(_A, 2),
        _a(_a(_a(X[:, 0]) + _a(X[:, 1])) + _a(X[:, 2])),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_ops_of_quantized_tensors(case: str):
    before, op, kind, expected = CASES[case]
    plain = _t("f32", *expected.shape)
    after = f"%f = stablehlo.uniform_dequantize %r : ({kind}) -> {plain}\nreturn %f : {plain}"
    loaded = _loaded(f"{before}%r = {op}\n{after}", plain)
    np.testing.assert_array_equal(loaded(X), expected.astype(np.float32))


def test_arguments_and_results_are_integers_and_bytecode_holds_them():
    kind = _t(_A, 2)
    text = f"func.func @main(%x: {kind}) -> {kind} {{\n%0 = stablehlo.negate %x : {kind}\n"
    text += f"return %0 : {kind}\n}}"
    x = np.array([10, -128], np.int8)
    loaded = jax2tf.load(text.encode())
    np.testing.assert_array_equal(loaded(x), np.array([10, 127], np.int8))
    with mlir.make_ir_context():
        stablehlo.register_stablehlo_passes()
        passes = passmanager.PassManager.parse("builtin.module(vhlo-legalize-to-stablehlo)")
        passes.run(ir.Module.parse("module {}").operation)  # it registers the quantized types
        module = ir.Module.parse(text)
        artifact = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
    np.testing.assert_array_equal(jax2tf.load(artifact)(x), loaded(x))
    graph = jax2tf.convert(loaded)
    np.testing.assert_array_equal(graph(x), loaded(x))


def test_scales_of_blocks_are_refused():
    kind = _t("!quant.uniform<i8:f32:{0:1}, {{0.5}, {0.25}}>", 2, 3)
    text = f"func.func @main(%x: {kind}) -> {kind} {{\nreturn %x : {kind}\n}}"
    with pytest.raises(jax2tf.LoadError, match="no rule reads the quantized type"):
        jax2tf.load(text.encode())
