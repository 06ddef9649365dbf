"""Modules as text: ops that jax.export does not write, forms of other writers, bad input."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.extend.mlir import passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

import jax2tf

X = np.array([[3.0, 1.0, 2.0], [-0.0, np.nan, 0.0]], np.float32)


def _of(body: str, arguments: str, result: str) -> Any:
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\n}}"
    return jax2tf.load(text.encode())


def _unary(op: str, element: str = "f32") -> Any:
    kind = f"tensor<2x3x{element}>"
    return _of(f"%0 = {op} %x : {kind}\nreturn %0 : {kind}", f"%x: {kind}", kind)


def _sorted(comparison: str, x: Any) -> Any:
    kind = f"tensor<{'x'.join(map(str, x.shape))}xf32>"
    return _of(
        f"""%0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          {comparison}
          stablehlo.return %r : tensor<i1>
        }}) : ({kind}) -> {kind}
        return %0 : {kind}""",
        f"%x: {kind}",
        kind,
    )(x)


_PAIR = "(tensor<f32>, tensor<f32>) -> tensor<i1>"


def test_orders_of_sort():
    x = np.array([[2.0, -1.0, 5.0, 0.0]], np.float32)
    assert _sorted(f"%r = stablehlo.compare LT, %a, %b, FLOAT : {_PAIR}", x)[0].tolist() == [
        -1,
        0,
        2,
        5,
    ]
    assert _sorted(f"%r = stablehlo.compare GT, %a, %b : {_PAIR}", x)[0].tolist() == [5, 2, 0, -1]
    assert _sorted(f"%r = stablehlo.compare LT, %b, %a : {_PAIR}", x)[0].tolist() == [5, 2, 0, -1]


def test_total_order_of_sort_tells_zeros_apart():
    x = np.array([[0.0, -0.0, 1.0, -0.0]], np.float32)
    found = np.asarray(_sorted(f"%r = stablehlo.compare LT, %a, %b, TOTALORDER : {_PAIR}", x))
    assert np.signbit(found).tolist() == [[True, True, False, False]]


def test_an_order_that_lax_sort_does_not_have():
    x = np.array([[2.0, -1.0, 5.0, 0.0, -3.0]], np.float32)
    by_magnitude = f"""%c = stablehlo.abs %a : tensor<f32>
      %d = stablehlo.abs %b : tensor<f32>
      %r = stablehlo.compare LT, %c, %d, FLOAT : {_PAIR}"""
    assert _sorted(by_magnitude, x)[0].tolist() == [0, -1, 2, -3, 5]


def test_a_magnitude_with_a_factor_for_each_element_is_no_magnitude():
    scalar = jax.ShapeDtypeStruct((3,), np.float32)
    magnitude = jax.jit(lambda x, y: jnp.abs(lax.complex(x, y)))
    text = export.export(magnitude)(scalar, scalar).mlir_module()
    one = re.search(r"stablehlo.constant dense<1\.0+e\+00> : tensor<f32>", text)
    if one is None:
        pytest.skip("JAX 0.10 writes a magnitude as one op")
    (name,) = re.findall(rf"(%\w+) = {re.escape(one[0])}", text)
    factors = "stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>"
    changed = re.sub(rf"stablehlo.broadcast_in_dim {name},.*?-> tensor<3xf32>", factors, text)
    x, y = np.float32([3, 6, 5]), np.float32([4, 8, 12])
    np.testing.assert_array_equal(jax2tf.load(changed.encode())(x, y), [5, 20, 39])


@pytest.mark.parametrize("shape", [(2, 3), (2, 1)])
def test_ops_that_broadcast(shape: tuple[int, int]):
    kind = f"tensor<{shape[0]}x{shape[1]}xf32>"
    loaded = _of(
        f"""%0 = chlo.broadcast_add %x, %y {{broadcast_dimensions = array<i64: 1>}} :
            ({kind}, tensor<{shape[1]}xf32>) -> {kind}
        %1 = chlo.broadcast_multiply %0, %x : ({kind}, {kind}) -> {kind}
        return %1 : {kind}""",
        f"%x: {kind}, %y: tensor<{shape[1]}xf32>",
        kind,
    )
    x, y = X[:, : shape[1]], X[0, : shape[1]]
    np.testing.assert_array_equal(loaded(x, y), (x + y) * x)


def test_batch_norms():
    kind, vector = "tensor<4x3xf32>", "tensor<3xf32>"
    attributes = "<{epsilon = 0.001 : f32, feature_index = 1 : i64}>"
    loaded = _of(
        f"""%0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {attributes} :
            ({kind}, {vector}, {vector}) -> ({kind}, {vector}, {vector})
        %1:3 = "stablehlo.batch_norm_grad"(%x, %s, %0#1, %0#2, %x) {attributes} :
            ({kind}, {vector}, {vector}, {vector}, {kind}) -> ({kind}, {vector}, {vector})
        return %0#0, %1#0, %1#1, %1#2 : {kind}, {kind}, {vector}, {vector}""",
        f"%x: {kind}, %s: {vector}, %o: {vector}",
        f"({kind}, {kind}, {vector}, {vector})",
    )
    x = np.random.RandomState(0).normal(size=(4, 3)).astype(np.float32)
    s, o = np.array([1.0, 2.0, 0.5], np.float32), np.array([0.0, 1.0, -1.0], np.float32)

    def norm(x: Any, s: Any, o: Any) -> Any:
        return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 0.001) * s + o

    want, transpose = jax.vjp(norm, x, s, o)
    for got, expected in zip(loaded(x, s, o), (want, *transpose(x)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_bools_add_and_multiply():
    for op, combine in (("add", np.logical_or), ("multiply", np.logical_and)):
        kind = "tensor<4xi1>"
        loaded = _of(
            f"%0 = stablehlo.{op} %x, %y : {kind}\nreturn %0 : {kind}",
            f"%x: {kind}, %y: {kind}",
            kind,
        )
        x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
        np.testing.assert_array_equal(loaded(x, y), combine(x, y))


def test_an_index_out_of_range_takes_the_last_branch():
    number = "tensor<i32>"
    branches = ", ".join(
        f"{{ %c{i} = stablehlo.constant dense<{i}> : {number}\nstablehlo.return %c{i} : {number} }}"
        for i in range(3)
    )
    loaded = _of(
        f'%0 = "stablehlo.case"(%x) ({branches}) : ({number}) -> {number}\nreturn %0 : {number}',
        "%x: tensor<i32>",
        "tensor<i32>",
    )
    assert [int(loaded(np.int32(i))) for i in (-5, 0, 1, 2, 9)] == [2, 0, 1, 2, 2]


def test_text_of_vhlo():
    exported = export.export(jax.jit(lambda x: jnp.sort(x, 1) @ x.T))(X)
    stablehlo.register_stablehlo_passes()
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
        passes = "builtin.module(stablehlo-legalize-to-vhlo)"
        passmanager.PassManager.parse(passes).run(module.operation)
        text = str(module)
    assert "vhlo.func_v1" in text
    np.testing.assert_array_equal(jax2tf.load(text.encode())(X), np.sort(X, 1) @ X.T)


CONSTANTS = {
    "bf16": ("[0x7FC0, 1.5, -0.0]", np.array([np.nan, 1.5, -0.0])),
    "f8E4M3FN": ("[1.0, 2.0, -3.0]", np.array([1.0, 2.0, -3.0])),
    "i4": ("[7, -8, 0]", np.array([7, -8, 0])),
    "complex<f32>": ("[(1.0, 2.0), (0.0, -1.0), (3.0, 0.0)]", np.array([1 + 2j, -1j, 3])),
    "ui16": ("7", np.array([7, 7, 7])),
}


@pytest.mark.parametrize("element", CONSTANTS)
def test_constants(element: str):
    text, expected = CONSTANTS[element]
    kind = f"tensor<3x{element}>"
    loaded = _of(f"%0 = stablehlo.constant dense<{text}> : {kind}\nreturn %0 : {kind}", "", kind)
    np.testing.assert_array_equal(np.asarray(loaded()).astype(expected.dtype), expected)


REFUSED = {
    "a custom call of nobody": (
        "%0 = stablehlo.custom_call @nobody(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "@nobody: JAX has no function for this target",
    ),
    "a library of other platforms": (
        "%0 = stablehlo.custom_call @hipsolver_geqrf_ffi(%x) : (tensor<2x3xf32>) -> "
        "tensor<2x3xf32>",
        r"only GPUs of AMD have.*platforms=\['cpu'\]",
    ),
    "several devices": (
        '%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, '
        "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : "
        "(tensor<2x3xf32>) -> tensor<2x3xf32>",
        "joins 2 devices",
    ),
    "random numbers without a key": (
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n"
        "%0 = stablehlo.rng %c, %c, %s, distribution = NORMAL : "
        "(tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>",
        "draw them from a key",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str):
    body, message = REFUSED[case]
    kind = "tensor<2x3xf32>"
    loaded = _of(f"{body}\nreturn %0 : {kind}", f"%x: {kind}", kind)
    with pytest.raises(jax2tf.LoadError, match=message) as raised:
        loaded(X)
    assert "What to do:" in str(raised.value)


BAD = [b"", b"abc", b"ML\xefR", b"\x00" * 100, b"module {", b"hello func.func", bytes(range(256))]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_bytes_that_are_no_module(data: bytes):
    with pytest.raises(jax2tf.LoadError, match="What to do:"):
        jax2tf.load(data)


def test_files_that_are_cut_or_missing(tmp_path: Any):
    blob = bytes(export.export(jax.jit(jnp.sin))(X).serialize())
    for n in (8, 50, len(blob) // 2):
        with pytest.raises(jax2tf.LoadError, match="What to do:"):
            jax2tf.load(blob[:n])
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        jax2tf.load(tmp_path / "nothing.mlir")
    with pytest.raises(jax2tf.LoadError, match="is no SavedModel"):
        jax2tf.load(tmp_path)
    with pytest.raises(TypeError, match="source must be a path"):
        jax2tf.load(3)  # type: ignore[arg-type]


def test_unary_ops_by_element():
    np.testing.assert_array_equal(_unary("stablehlo.abs")(X), np.abs(X))
    np.testing.assert_array_equal(
        _unary("stablehlo.popcnt", "i8")(X[:1].repeat(2, 0).astype(np.int8)), [[2, 1, 1]] * 2
    )
