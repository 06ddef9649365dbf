"""Primitives without a rule of their own, which are lowered as what JAX makes of them.

Those of jax.experimental.sparse, kernels of pallas in interpret mode, functions from jax.export,
and functions with rules for transposition and batching of their own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import linear_call
from jax.experimental import pallas as pl

from harnesses.harness import ALL, COMPLEX, FLOATS, INTS, Family, Normal, Values, define

family = Family("foreign")

_NUMBERS = (*FLOATS, *INTS, *COMPLEX)

# A matrix of 3 rows and 4 columns: an element that is given twice, and one outside of the matrix,
# which stands for none.
_INDICES = np.array([[0, 1], [2, 0], [2, 3], [2, 0], [3, 4]], np.int32)
_SHAPE = (3, 4)
_IN_ORDER = np.array([[0, 1], [1, 0], [2, 0], [2, 3]], np.int32)


def _sparse() -> Any:
    # It imports SciPy's sparse solvers: a third of a second, of which other cells have no use.
    from jax.experimental import sparse

    return sparse


def _bcoo(data: Any, indices: Any = _INDICES, shape: tuple = _SHAPE) -> Any:
    return _sparse().BCOO((data, jnp.asarray(indices)), shape=shape)


def _bcsr(data: Any) -> Any:
    indices = jnp.asarray(_IN_ORDER[:, 1])
    return _sparse().BCSR((data, indices, jnp.array([0, 1, 2, 4], jnp.int32)), shape=_SHAPE)


def _coo(data: Any) -> Any:
    return _sparse().COO((data, *jnp.asarray(_IN_ORDER).T), shape=_SHAPE)


def _csr(data: Any) -> Any:
    indices = jnp.asarray(_IN_ORDER[:, 1])
    return _sparse().CSR((data, indices, jnp.array([0, 1, 2, 4], jnp.int32)), shape=_SHAPE)


# On sparse matrices of 5 elements, and dense arrays.
_BCOO: dict[tuple[str, str], tuple[Callable[..., Any], list[tuple]]] = {
    ("bcoo_todense", ""): (lambda d: _bcoo(d).todense(), [(5,)]),
    ("bcoo_todense", "batch"): (
        lambda d: _bcoo(d, np.stack([_INDICES, _INDICES[::-1]]), (2, *_SHAPE)).todense(),
        [(2, 5)],
    ),
    ("bcoo_todense", "dense_dimension"): (lambda d: _bcoo(d, shape=(3, 4, 2)).todense(), [(5, 2)]),
    ("bcoo_fromdense", ""): (
        lambda x: (lambda m: (m.data, m.indices))(_sparse().BCOO.fromdense(x, nse=3)),
        [_SHAPE],
    ),
    ("bcoo_extract", ""): (lambda x: _sparse().bcoo_extract(_bcoo(jnp.ones(5)), x).data, [_SHAPE]),
    ("bcoo_transpose", ""): (lambda d: _bcoo(d).T.todense(), [(5,)]),
    ("bcoo_dot_general", "vector"): (lambda d, v: _bcoo(d) @ v, [(5,), (4,)]),
    ("bcoo_dot_general", "matrix"): (lambda d, m: _bcoo(d) @ m, [(5,), (4, 2)]),
    ("bcoo_dot_general", "from_the_left"): (lambda d, m: m @ _bcoo(d), [(5,), (2, 3)]),
    ("bcoo_dot_general", "batch"): (
        lambda d, m: _sparse().bcoo_dot_general(
            _bcoo(d, np.stack([_INDICES, _INDICES[::-1]]), (2, *_SHAPE)),
            m,
            dimension_numbers=(([2], [1]), ([0], [0])),
        ),
        [(2, 5), (2, 4, 3)],
    ),
    ("bcoo_dot_general_sampled", ""): (
        lambda a, b: _sparse().bcoo_dot_general_sampled(
            a, b, jnp.asarray(_INDICES), dimension_numbers=(([1], [0]), ([], []))
        ),
        [(3, 2), (2, 4)],
    ),
    ("bcoo_spdot_general", ""): (
        lambda d, e: (_bcoo(d) @ _bcoo(e, _INDICES[:, ::-1], _SHAPE[::-1])).todense(),
        [(5,), (5,)],
    ),
    ("bcoo_sort_indices", ""): (lambda d: _bcoo(d).sort_indices().data, [(5,)]),
    ("bcoo_sum_duplicates", ""): (lambda d: _bcoo(d).sum_duplicates(nse=4).data, [(5,)]),
    ("bcsr_todense", ""): (lambda d: _bcsr(d).todense(), [(4,)]),
    ("bcsr_fromdense", ""): (lambda x: _sparse().BCSR.fromdense(x, nse=4).data, [_SHAPE]),
    ("bcsr_extract", ""): (
        lambda x: _sparse().bcsr_extract(_bcsr(x[0]).indices, _bcsr(x[0]).indptr, x),
        [_SHAPE],
    ),
    ("bcsr_dot_general", "vector"): (lambda d, v: _bcsr(d) @ v, [(4,), (4,)]),
    ("bcsr_dot_general", "matrix"): (lambda d, m: _bcsr(d) @ m, [(4,), (4, 2)]),
    ("coo_todense", ""): (lambda d: _coo(d).todense(), [(4,)]),
    ("coo_fromdense", ""): (lambda x: _sparse().COO.fromdense(x, nse=3).data, [_SHAPE]),
    ("coo_matvec", ""): (lambda d, v: _coo(d) @ v, [(4,), (4,)]),
    ("coo_matmat", ""): (lambda d, m: _coo(d) @ m, [(4,), (4, 2)]),
    ("csr_todense", ""): (lambda d: _csr(d).todense(), [(4,)]),
    ("csr_fromdense", ""): (lambda x: _sparse().CSR.fromdense(x, nse=3).data, [_SHAPE]),
    ("csr_matvec", ""): (lambda d, v: _csr(d) @ v, [(4,), (4,)]),
    ("csr_matmat", ""): (lambda d, m: _csr(d) @ m, [(4,), (4, 2)]),
}


@family.builder
def sparse_matrices() -> None:
    """Conversions, contractions and sums of sparse matrices, of random numbers."""
    for (primitive, case), (fun, shapes) in _BCOO.items():
        multiplies = "dot" in primitive or "mat" in primitive
        # The rest is made of the same pieces, which other families ask about in every dtype.
        every_dtype = (primitive, case) == ("bcoo_dot_general", "vector")
        for dtype in _NUMBERS if every_dtype else (np.float32,):
            define(
                primitive,
                case,
                fun,
                [Normal(shape, dtype) for shape in shapes],
                dtype=dtype,
                scale="array" if multiplies else "element",
            )


_EDGES = [np.nan, np.inf, -np.inf, 0.0, -2.5, -0.0, 1.0]


@family.builder
def edges_in_sparse_matrices() -> None:
    """Infinities, NaN and zeros of both signs in sparse matrices and dense arrays."""
    # Where a matrix holds what is not finite, its products are NaN; what only moves is as it was.
    # From two values on, since of elements that are given twice the sum alone is seen.
    for (primitive, case), (fun, shapes) in _BCOO.items():
        for turn in (0, 3) if case in ("", "vector", "matrix") else ():
            turned = [np.roll(_EDGES, -turn - 2 * i) for i in range(len(shapes))]
            args = [Values(v, np.float32, s) for v, s in zip(turned, shapes, strict=True)]
            name = f"{case}_edges_from_{turn}".strip("_")
            define(primitive, name, fun, args, dtype=np.float32)


def _of_float32(primitive: str, case: str, fun: Callable[..., Any], *shapes: tuple) -> None:
    define(primitive, case, fun, [Normal(s, np.float32) for s in shapes], dtype=np.float32)


@family.builder
def gradients_reductions_and_slices_of_sparse_matrices() -> None:
    """A gradient, a sum, a product, a slice and a sparsified function of BCOO matrices."""
    _of_float32(
        "bcoo_dot_general",
        "gradient",
        jax.grad(lambda d, v: jnp.sum((_bcoo(d) @ v) ** 2), argnums=(0, 1)),
        (5,),
        (4,),
    )
    _of_float32("bcoo_reduce_sum", "", lambda d: _bcoo(d).sum(0).todense(), (5,))
    _of_float32("bcoo_multiply_dense", "", lambda d, x: (_bcoo(d) * x).todense(), (5,), _SHAPE)
    _of_float32("bcoo_slice", "", lambda d: _bcoo(d)[1:, :2].todense(), (5,))
    _of_float32(
        "sparsify",
        "",
        lambda d, x: _sparse().sparsify(lambda m, x: jnp.sum(m.T @ x + 2 * m[0, 1]))(_bcoo(d), x),
        (5,),
        (3, 2),
    )


def _kernel_call(kernel: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def fun(x: Any, *rest: Any) -> Any:
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, out_shape=out, interpret=True, **options)(x, *rest)

    return fun


def _twice(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + x_ref[...]


def _add_row_by_row(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + y_ref[...] + pl.program_id(0).astype(x_ref.dtype)


_ROWS = pl.BlockSpec((1, 4), lambda i: (i, 0))


@family.builder
def pallas_kernels() -> None:
    """Kernels in interpret mode, of every dtype and over a grid."""
    for dtype in (d for d in ALL if d not in COMPLEX):  # JAX's interpreter has no complex numbers
        define("pallas_call", "", _kernel_call(_twice), [Normal(_SHAPE, dtype)], dtype=dtype)
    for dtype in (np.float32, np.int32):
        define(
            "pallas_call",
            "grid",
            _kernel_call(_add_row_by_row, grid=(3,), in_specs=[_ROWS, _ROWS], out_specs=_ROWS),
            [Normal(_SHAPE, dtype), Normal(_SHAPE, dtype)],
            dtype=dtype,
        )


def _exported(fun: Callable[..., Any], *shapes: str) -> Callable[..., Any]:
    """Calls what jax.export makes of `fun`; it is made when the harness runs."""

    def call(*args: Any) -> Any:
        avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        if shapes:
            avals = export.symbolic_args_specs(tuple(avals), shapes)
        return export.export(jax.jit(fun))(*avals).call(*args)

    return call


@family.builder
def calls_of_exported_functions() -> None:
    """Calls of what jax.export makes: of fixed shapes, of an open batch, and their gradient."""
    _of_float32("call_exported", "", _exported(lambda x: {"y": jnp.tanh(x) * 2}), _SHAPE)
    _of_float32("call_exported", "open_batch", _exported(lambda x: x - x.mean(0), "b, _"), _SHAPE)
    _of_float32(
        "call_exported",
        "gradient",
        jax.grad(lambda x: jnp.sum(_exported(jnp.sin)(x) ** 2)),
        _SHAPE,
    )


@custom_vmap
def _told_how_to_batch(x: Any) -> Any:
    return jnp.sin(x)


@_told_how_to_batch.def_vmap
def _batched(axis_size: int, in_batched: Any, x: Any) -> Any:
    # Another function than the one that it is a batch of: who batches otherwise is found out.
    return jnp.cos(x), in_batched[0]


@family.builder
def functions_with_a_batching_rule() -> None:
    """A function with a rule for batching of its own, alone and in vmap."""
    _of_float32("custom_vmap_call", "", _told_how_to_batch, _SHAPE)
    _of_float32("custom_vmap_call", "batched", jax.vmap(_told_how_to_batch), _SHAPE)


@family.builder
def linear_calls() -> None:
    """Linear functions whose transposes are stated, and their gradients."""
    _of_float32(
        "linear_call",
        "",
        lambda x, y: linear_call(lambda r, v: v * r, lambda r, t: t * r, x, y),
        _SHAPE,
        _SHAPE,
    )
    define(
        "linear_call",
        "gradient",
        jax.grad(lambda y: linear_call(lambda r, v: v * r, lambda r, t: 3 * t * r, 2.0, y).sum()),
        [Values([1.0, 2.0, 3.0], np.float32)],
        dtype=np.float32,
    )
