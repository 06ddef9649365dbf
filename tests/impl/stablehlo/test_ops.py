"""Ops that JAX does not write for the CPU: each by a small module, against NumPy."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import numpy as np
import pytest
from jax.extend.mlir.dialects import chlo, stablehlo

import jax2tf
from jax2tf._src.stablehlo import registry, rules

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONES = np.ones((2, 3), np.int32)
MATRIX = np.array([[2, 1, 0.5], [3, 4, 1], [1, 2, 5]], np.float32)
HERMITIAN = (MATRIX @ MATRIX.T + np.eye(3) + 0.1j * (MATRIX - MATRIX.T)).astype(np.complex64)
IMAGE, KERNEL = (np.arange(n * n, dtype=np.float32).reshape(n, n) for n in (4, 2))
_F, _I = "tensor<f32>", "tensor<i32>"
_XF, _XI = "tensor<2x3xf32>", "tensor<2x3xi32>"
_GROUP = "replica_groups = dense<[[0]]> : tensor<1x1xi64>"


def _function(body: str, *types: str) -> str:
    """A region or function body: its arguments are %w, %x, %y and %z"""
    names = (f"%{letter}: {kind}" for letter, kind in zip("wxyz", types, strict=False))
    return f"({{\n^bb0({', '.join(names)}):\n{body}\n}})"


def _binary(op: str) -> str:
    return _function(f"%p = stablehlo.{op} : {_F}\nstablehlo.return %p : {_F}", _F, _F)


_ADD, _MULTIPLY, _SUBTRACT = map(_binary, ("add %w, %x", "multiply %w, %x", "subtract %x, %w"))
_BOTH = _function(
    f"%p = stablehlo.add %w, %y : {_F}\n%q = stablehlo.multiply %x, %z : {_I}\n"
    f"stablehlo.return %p, %q : {_F}, {_I}",
    *(_F, _I, _F, _I),
)
_BOTH_INITIAL = f"""%i = stablehlo.constant dense<0.0> : {_F}
  %j = stablehlo.constant dense<1> : {_I}"""
_SCATTER = """<{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1],
  scatter_dims_to_operand_dims = [1], update_window_dims = [0], index_vector_dim = 1>}>"""
INDICES = np.array([[1], [1], [9], [0]], np.int32)
UPDATES = np.arange(1, 9, dtype=np.float32).reshape(2, 4)


def _scattered(combine: Any, before: np.ndarray = X) -> np.ndarray:
    result = before.copy()
    for (index,), update in zip(INDICES, UPDATES.T, strict=True):
        if index < 3:
            result[:, index] = combine(result[:, index], update)
    return result


# By name: the ops after which %r (and %s) are returned, the arguments, the results.
CASES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "map": (
        f"""%r = "stablehlo.map"(%a, %a) {_MULTIPLY} {{dimensions = array<i64: 0, 1>}} :
          ({_XF}, {_XF}) -> {_XF}""",
        (X,),
        (X * X,),
    ),
    "reduce of two": (
        f"""{_BOTH_INITIAL}
        %r, %s = "stablehlo.reduce"(%a, %b, %i, %j) {_BOTH} {{dimensions = array<i64: 1>}} :
          ({_XF}, {_XI}, {_F}, {_I}) -> (tensor<2xf32>, tensor<2xi32>)""",
        (X, ONES * 2),
        (X.sum(1), np.full(2, 8, np.int32)),
    ),
    "windows of two": (
        f"""{_BOTH_INITIAL}
        %r, %s = "stablehlo.reduce_window"(%a, %b, %i, %j) {_BOTH}
          {{window_dimensions = array<i64: 1, 2>}} :
          ({_XF}, {_XI}, {_F}, {_I}) -> (tensor<2x2xf32>, tensor<2x2xi32>)""",
        (X, ONES * 2),
        (X[:, 1:] + X[:, :-1], np.full((2, 2), 4, np.int32)),
    ),
    "scatter into two": (
        f"""%r, %s = "stablehlo.scatter"(%a, %b, %c, %d, %e) {_SCATTER} {_BOTH} : ({_XF}, {_XI},
          tensor<4x1xi32>, tensor<2x4xf32>, tensor<2x4xi32>) -> ({_XF}, {_XI})""",
        (X, ONES, INDICES, UPDATES, UPDATES.astype(np.int32)),
        (_scattered(np.add), _scattered(np.multiply, ONES)),
    ),
    "scatter by another function": (
        f"""%r = "stablehlo.scatter"(%a, %b, %c) {_SCATTER} {_SUBTRACT} :
          ({_XF}, tensor<4x1xi32>, tensor<2x4xf32>) -> {_XF}""",
        (X, INDICES, UPDATES),
        (_scattered(lambda x, u: u - x),),
    ),
    "select_and_scatter": (
        f"""%z = stablehlo.constant dense<1.0> : {_F}
        %r = "stablehlo.select_and_scatter"(%a, %b, %z)
          <{{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}}> ({{
          ^bb0(%p: {_F}, %q: {_F}):
            %c = stablehlo.compare LT, %p, %q : ({_F}, {_F}) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          }}, {{
          ^bb0(%p: {_F}, %q: {_F}):
            %m = stablehlo.multiply %p, %q : {_F}
            stablehlo.return %m : {_F}
          }}) : (tensor<1x4xf32>, tensor<1x2xf32>, {_F}) -> tensor<1x4xf32>""",
        (np.array([[1, 2, 4, 3]], np.float32), np.array([[2, 3]], np.float32)),
        (np.array([[2, 1, 1, 3]], np.float32),),
    ),
    "einsum": (
        f"""%r = "stablehlo.einsum"(%a, %a) <{{einsum_config = "ab,cb->ac"}}> :
          ({_XF}, {_XF}) -> tensor<2x2xf32>
        %s = "stablehlo.unary_einsum"(%a) <{{einsum_config = "ab->b"}}> : ({_XF}) -> tensor<3xf32>
        """,
        (X,),
        (X @ X.T, X.sum(0)),
    ),
    "torch_index_select": (
        f"""%r = "stablehlo.torch_index_select"(%a, %b)
          <{{dim = 1 : i64, batch_dims = 1 : i64}}> : ({_XF}, tensor<2x2xi32>) -> tensor<2x2xf32>
        """,
        (X, np.array([[2, 0], [1, 1]], np.int32)),
        (np.array([[2, 0], [4, 4]], np.float32),),
    ),
    "dynamic_pad": (
        f"""%v = stablehlo.constant dense<9.0> : {_F}
        %l = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
        %h = stablehlo.constant dense<[0, -1]> : tensor<2xi32>
        %n = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
        %r = stablehlo.dynamic_pad %a, %v, %l, %h, %n : ({_XF}, {_F}, tensor<2xi32>,
          tensor<2xi32>, tensor<2xi32>) -> tensor<3x4xf32>""",
        (X,),
        (np.array([[9, 9, 9, 9], [0, 9, 1, 9], [3, 9, 4, 9]], np.float32),),
    ),
    "dynamic_conv of a reversed window": (
        """%p = stablehlo.constant dense<[[1, 0], [0, 1]]> : tensor<2x2xi32>
        %r = "stablehlo.dynamic_conv"(%a, %b, %p) <{window_reversal = array<i1: false, true>,
          dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
          batch_group_count = 1 : i64, feature_group_count = 1 : i64}> : (tensor<1x4x4x1xf32>,
          tensor<2x2x1x1xf32>, tensor<2x2xi32>) -> tensor<1x4x4x1xf32>""",
        (IMAGE[None, :, :, None], KERNEL[:, :, None, None]),
        (
            sum(
                np.pad(IMAGE, ((1, 0), (0, 1)))[i : i + 4, j : j + 4] * KERNEL[i, 1 - j]
                for i in (0, 1)
                for j in (0, 1)
            )[None, :, :, None],
        ),
    ),
    "solve": (
        """%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = false,
          transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> :
          (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>""",
        (MATRIX, np.eye(3, dtype=np.float32)),
        (np.linalg.inv(np.triu(MATRIX, 1) + np.eye(3, dtype=np.float32)).T,),
    ),
    "cholesky of the upper triangle": (
        "%r = stablehlo.cholesky %a, lower = false : tensor<3x3xcomplex<f32>>",
        (np.triu(HERMITIAN),),
        (np.linalg.cholesky(HERMITIAN).conj().T,),
    ),
    "integer power": (
        "%r = stablehlo.power %a, %b : tensor<7xi32>",
        tuple(
            np.array(n, np.int32) for n in ([-7, 7, 1, 0, -1, -1, 3], [2, -2, -5, 0, -3, -4, 40])
        ),
        (np.array([49, 0, 1, 1, -1, 1, 3**40 % 2**32]).astype(np.uint32).view(np.int32),),
    ),
    "collectives of one device": (
        f"""%0 = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {_GROUP}}}> :
          ({_XF}) -> {_XF}
        %1 = "stablehlo.all_reduce"(%0) <{{{_GROUP}}}> {_ADD} : ({_XF}) -> {_XF}
        %2 = "stablehlo.reduce_scatter"(%1) <{{scatter_dimension = 0 : i64, {_GROUP}}}> {_ADD} :
          ({_XF}) -> {_XF}
        %r = "stablehlo.collective_permute"(%2)
          <{{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}}> : ({_XF}) -> {_XF}
        %s = stablehlo.partition_id : tensor<ui32>""",
        (X,),
        (X, np.uint32(0)),
    ),
    "tokens and tuples": (
        f"""%0 = stablehlo.create_token : !stablehlo.token
        %1 = stablehlo.after_all %0, %0 : !stablehlo.token
        %2 = stablehlo.tuple %a, %b : tuple<{_XF}, {_XI}>
        %s = stablehlo.get_tuple_element %2[1] : (tuple<{_XF}, {_XI}>) -> {_XI}
        %r = stablehlo.optimization_barrier %a : {_XF}""",
        (X, ONES),
        (X, ONES),
    ),
    "ragged_dot": (
        f"""%r = "chlo.ragged_dot"(%a, %b, %c) <{{ragged_dot_dimension_numbers =
          #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [],
          lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
          lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}}> :
          ({_XF}, tensor<2x3x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>""",
        (X, np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([1, 1], np.int32)),
        (np.stack([X[i] @ np.arange(12).reshape(2, 3, 2)[i] for i in (0, 1)]).astype(np.float32),),
    ),
}
if "chlo.scan" in registry.OPS and hasattr(chlo, "ScanOp"):
    CASES["scan"] = (
        """%z = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
        %r, %s = "chlo.scan"(%a, %z) <{dimension = 1 : i64, is_reverse = true,
          operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%x: tensor<2xf32>, %y: tensor<2xi32>):
          %0 = stablehlo.convert %y : (tensor<2xi32>) -> tensor<2xf32>
          %1 = stablehlo.multiply %0, %x : tensor<2xf32>
          %2 = stablehlo.add %y, %y : tensor<2xi32>
          stablehlo.return %1, %2 : tensor<2xf32>, tensor<2xi32>
        }) : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<2x3xf32>, tensor<2xi32>)""",
        (X,),
        (X * np.array([[4, 2, 1], [8, 4, 2]], np.float32), np.array([8, 16], np.int32)),
    )


def _kind(x: Any) -> str:
    x = np.asarray(x)
    names = {"float32": "f32", "int32": "i32", "uint32": "ui32", "complex64": "complex<f32>"}
    return f"tensor<{''.join(f'{n}x' for n in x.shape)}{names[x.dtype.name]}>"


@pytest.mark.parametrize("name", CASES)
def test_ops(name: str):
    body, arguments, expected = CASES[name]
    expected = tuple(np.asarray(x, np.int32) if x.dtype == int else x for x in expected)
    takes = ", ".join(f"%{n}: {_kind(x)}" for n, x in zip("abcde", arguments, strict=False))
    gives = ", ".join(map(_kind, expected))
    text = f"func.func @main({takes}) -> ({gives}) {{\n{body}\n"
    text += f"return {', '.join(['%r', '%s'][: len(expected)])} : {gives}\n}}"
    results = jax.tree.leaves(jax2tf.load(text.encode())(*arguments))
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


REFUSED = {
    "infeed": '%r, %t = "stablehlo.infeed"(%k) : (!stablehlo.token) -> (tensor<2x3xf32>, '
    "!stablehlo.token)",
    "outfeed": '%t = "stablehlo.outfeed"(%a, %k) : (tensor<2x3xf32>, !stablehlo.token) -> '
    "!stablehlo.token\n%r = stablehlo.negate %a : tensor<2x3xf32>",
}


@pytest.mark.parametrize("name", REFUSED)
def test_ops_of_the_host_are_refused_by_name(name: str):
    kind = "tensor<2x3xf32>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{\n%k = stablehlo.create_token : "
    text += f"!stablehlo.token\n{REFUSED[name]}\nreturn %r : {kind}\n}}"
    with pytest.raises(jax2tf.LoadError, match=f"stablehlo.{name}: it exchanges data .* host"):
        jax2tf.load(text.encode())(X)


def test_every_op_of_the_dialects_has_a_rule():
    assert rules
    classes = (*vars(stablehlo).values(), *vars(chlo).values())
    names = {
        c.OPERATION_NAME for c in classes if inspect.isclass(c) and hasattr(c, "OPERATION_NAME")
    }
    assert len(names) > 160
    assert names - registry.OPS.keys() == {"stablehlo.return", "chlo._asin_acos_kernel"}
