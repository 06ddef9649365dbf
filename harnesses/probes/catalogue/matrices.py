"""Products, decompositions and transforms."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from harnesses.probes.probe import COMPLEX, NUMBERS, POSITIVE, Of, Probe

_RAW = tf.raw_ops
_INEXACT = ("float32", "float64", *COMPLEX)
_FEW = ("int32", "float32")
# Symmetric, and all eigenvalues are positive and far from each other.
_DEFINITE = Of((3, 3), values=[[6, 1, 0], [1, 4, 1], [0, 1, 2]], edges=False)
_LOWER = Of((3, 3), values=[[2, 0, 0], [1, 4, 0], [0, 1, 2]], edges=False)
_ANY = Of((3, 3), values=[[1, 2, 0], [3, 1, 1], [0, 2, 4]], edges=False)
_RIGHT = Of((3, 2), edges=False)


def probes() -> list[Probe]:
    """Products, then decompositions, then transforms."""
    return [*_products(), *_decompositions(), *_transforms()]


def _products() -> list[Probe]:
    return [
        Probe("MatMul", lambda x, y: _RAW.MatMul(a=x, b=y), (Of((2, 3)), Of((3, 4))), NUMBERS),
        Probe(
            "MatMul",
            lambda x, y: _RAW.MatMul(a=x, b=y, transpose_b=True),
            (Of((2, 3)), Of((4, 3))),
            _FEW,
            "with a transpose",
        ),
        Probe(
            "MatMul",
            lambda x, y: _RAW.MatMul(a=x[None], b=y[:, None]),
            (Of((3,)), Of((3,))),
            _FEW,
            "of two reshaped vectors",
        ),
        Probe(
            "MatMul",
            lambda x, y: _RAW.MatMul(a=x[None], b=y),
            (Of((3,)), Of((3, 4))),
            _FEW,
            "of a reshaped vector and a computed matrix",
        ),
        Probe(
            "BatchMatMulV2",
            lambda x, y: _RAW.BatchMatMulV2(x=x, y=y),
            (Of((2, 2, 3)), Of((2, 3, 4))),
            NUMBERS,
        ),
        Probe(
            "BatchMatMulV2",
            lambda x, y: _RAW.BatchMatMulV2(x=x, y=y, adj_y=True),
            (Of((2, 2, 3)), Of((2, 4, 3))),
            (*_FEW, "complex64"),
            "with an adjoint",
        ),
    ]


def _decompositions() -> list[Probe]:
    plain = {"edges": False}
    return [
        Probe("Cholesky", lambda x: _RAW.Cholesky(input=x), (_DEFINITE,), _INEXACT),
        Probe("Lu", lambda x: tuple(_RAW.Lu(input=x)), (_ANY,), _INEXACT),
        Probe("Qr", lambda x: tuple(_RAW.Qr(input=x)), (_ANY,), _INEXACT, up_to_sign=True),
        Probe(
            "SelfAdjointEigV2",
            lambda x: tuple(_RAW.SelfAdjointEigV2(input=x)),
            (_DEFINITE,),
            _INEXACT,
            up_to_sign=True,
        ),
        Probe("Svd", lambda x: tuple(_RAW.Svd(input=x)), (_ANY,), _INEXACT, up_to_sign=True),
        Probe("MatrixInverse", lambda x: _RAW.MatrixInverse(input=x), (_ANY,), _INEXACT),
        Probe("MatrixDeterminant", lambda x: _RAW.MatrixDeterminant(input=x), (_ANY,), _INEXACT),
        Probe(
            "MatrixSolve", lambda x, y: _RAW.MatrixSolve(matrix=x, rhs=y), (_ANY, _RIGHT), _INEXACT
        ),
        Probe(
            "MatrixTriangularSolve",
            lambda x, y: _RAW.MatrixTriangularSolve(matrix=x, rhs=y),
            (_LOWER, _RIGHT),
            _INEXACT,
        ),
        Probe(
            "TridiagonalSolve",
            lambda x, y: _RAW.TridiagonalSolve(diagonals=x, rhs=y),
            (Of((3, 3), values=np.array([[1, 1, 0], [6, 5, 4], [0, 1, 1]]), **plain), _RIGHT),
            _INEXACT,
        ),
    ]


def _transforms() -> list[Probe]:
    found = []
    for rank, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        shape = (4, 4, 4)
        for op in (f"FFT{suffix}", f"IFFT{suffix}"):
            found.append(_transform(op, shape, COMPLEX))
        length = [4] * rank
        found.append(_real(f"RFFT{suffix}", Of(shape, edges=False), length, ("float32", "float64")))
        # What is no spectrum of real numbers is each kernel's own matter.
        spectrum = Of((4, 4, 3), range=POSITIVE, edges=False)
        found.append(_real(f"IRFFT{suffix}", spectrum, length, COMPLEX))
    return found


def _transform(op: str, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> Probe:
    return Probe(op, lambda x: getattr(_RAW, op)(input=x), (Of(shape, edges=False),), dtypes)


def _real(op: str, arg: Of, length: list[int], dtypes: tuple[str, ...]) -> Probe:
    def transform(x: tf.Tensor) -> tf.Tensor:
        to = {
            tf.float32: {"Tcomplex": tf.complex64},
            tf.float64: {"Tcomplex": tf.complex128},
            tf.complex64: {"Treal": tf.float32},
            tf.complex128: {"Treal": tf.float64},
        }
        return getattr(_RAW, op)(input=x, fft_length=length, **to[x.dtype])

    return Probe(op, transform, (arg,), dtypes)
