"""Ops that move elements and compute none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from harnesses.probes.probe import ALL, INTEGERS, NUMBERS, REALS, Of, Probe, of_ops

_RAW = tf.raw_ops
_OF_SIX = (2, 1, 2, 3, 1, 2)
_FEW = ("bool", "int32", "float32")


def probes() -> list[Probe]:
    """Uses with constants for the shapes, the axes and the places."""
    return [*_shapes(), *_parts(), *_joined(), *_made()]


def _use(
    op: str,
    function: Callable[..., Any],
    *shapes: tuple[int, ...],
    use: str = "",
    dtypes: tuple[str, ...] = ALL,
) -> Probe:
    return Probe(op, function, tuple(Of(shape) for shape in shapes), dtypes, use)


def _shapes() -> list[Probe]:
    return [
        _use("BroadcastTo", lambda x: _RAW.BroadcastTo(input=x, shape=[3, 2, 4]), (2, 4)),
        _use(
            "BroadcastTo",
            lambda x: _RAW.BroadcastTo(input=x, shape=[2, 3, 2, 3, 4, 2]),
            _OF_SIX,
            use="of six dimensions",
            dtypes=_FEW,
        ),
        _use("EnsureShape", lambda x: _RAW.EnsureShape(input=x, shape=[2, 4]), (2, 4)),
        _use("ExpandDims", lambda x: _RAW.ExpandDims(input=x, axis=1), (2, 4)),
        _use("Reshape", lambda x: _RAW.Reshape(tensor=x, shape=[4, 2]), (2, 4)),
        _use(
            "Reshape",
            lambda x: _RAW.Reshape(tensor=x, shape=[0, 4]),
            (0, 2, 2),
            use="without elements",
            dtypes=_FEW,
        ),
        _use("Squeeze", lambda x: _RAW.Squeeze(input=x, axis=[1]), (2, 1, 4)),
        _use("Shape", lambda x: _RAW.Shape(input=x), (2, 4)),
        _use("Size", lambda x: _RAW.Size(input=x), (2, 4)),
        _use("Rank", lambda x: _RAW.Rank(input=x), (2, 4)),
        _use("Tile", lambda x: _RAW.Tile(input=x, multiples=[2, 3]), (2, 4)),
        _use("Transpose", lambda x: _RAW.Transpose(x=x, perm=[1, 0]), (2, 4)),
        _use(
            "Transpose",
            lambda x: _RAW.Transpose(x=x, perm=[5, 3, 1, 0, 2, 4]),
            _OF_SIX,
            use="of six dimensions",
            dtypes=_FEW,
        ),
    ]


def _parts() -> list[Probe]:
    return [
        _use("ReverseV2", lambda x: _RAW.ReverseV2(tensor=x, axis=[1]), (2, 4)),
        _use(
            "ReverseV2",
            lambda x: _RAW.ReverseV2(tensor=x, axis=[0, 1]),
            (2, 4),
            use="of two axes",
            dtypes=_FEW,
        ),
        _use("Slice", lambda x: _RAW.Slice(input=x, begin=[0, 1], size=[2, 2]), (2, 4)),
        Probe(
            "Slice",
            lambda x, at: _RAW.Slice(input=x, begin=at, size=[1, 2]),
            (Of(), Of((2,), "int32", values=[1, 2], edges=False)),
            _FEW,
            "at computed places",
        ),
        _use("StridedSlice", lambda x: x[:, 1:4:2], (2, 4)),
        _use("StridedSlice", lambda x: x[:, ::-1], (2, 4), use="backwards", dtypes=_FEW),
        _use("StridedSlice", lambda x: x[1], (2, 4), use="that drops a dimension", dtypes=_FEW),
        _use(
            "StridedSlice",
            lambda x: x[:, tf.newaxis],
            (2, 4),
            use="that adds a dimension",
            dtypes=_FEW,
        ),
        _use(
            "StridedSlice",
            lambda x: x[1, tf.newaxis],
            (2, 4),
            use="that drops and adds",
            dtypes=_FEW,
        ),
        _use("Split", lambda x: _RAW.Split(axis=1, value=x, num_split=2), (2, 4)),
        _use(
            "SplitV",
            lambda x: _RAW.SplitV(value=x, size_splits=[1, 3], axis=1, num_split=2),
            (2, 4),
        ),
        _use("Unpack", lambda x: _RAW.Unpack(value=x, num=2, axis=0), (2, 4)),
    ]


def _joined() -> list[Probe]:
    return [
        _use("ConcatV2", lambda x, y: _RAW.ConcatV2(values=[x, y], axis=1), (2, 4), (2, 3)),
        _use("Pack", lambda x, y: _RAW.Pack(values=[x, y], axis=1), (2, 4), (2, 4)),
        _use("Pad", lambda x: _RAW.Pad(input=x, paddings=[[1, 0], [0, 2]]), (2, 4)),
        _use("PadV2", lambda x: _padded(x, tf.ones([], x.dtype)), (2, 4)),
        Probe("PadV2", _padded, (Of(), Of(())), ALL, "with a computed number"),
        _use(
            "MirrorPad",
            lambda x: _RAW.MirrorPad(input=x, paddings=[[1, 0], [0, 2]], mode="REFLECT"),
            (2, 4),
        ),
    ]


def _padded(x: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    return _RAW.PadV2(input=x, paddings=[[1, 0], [0, 2]], constant_values=number)


def _filled(x: tf.Tensor) -> tf.Tensor:
    """An array of the shape of `x`, which is computed in the graph."""
    return _RAW.Fill(dims=tf.shape(x), value=tf.ones([], x.dtype))


def _random_bits(key: tf.Tensor, counter: tf.Tensor) -> tf.Tensor:
    """Bits of Philox, whose algorithm has the number 1."""
    return _RAW.StatelessRandomUniformFullIntV2(
        shape=[5], key=key, counter=counter, alg=1, dtype=tf.uint32
    )


def _made() -> list[Probe]:
    return [
        Probe("Fill", lambda x: _RAW.Fill(dims=[2, 3], value=x), (Of(()),), ALL),
        Probe("Fill", _filled, (Of(),), ALL, "with a constant number"),
        Probe(
            "Range",
            lambda n: _RAW.Range(start=tf.zeros_like(n), limit=n, delta=tf.ones_like(n)),
            (Of((), values=5, edges=False),),
            REALS,
        ),
        Probe(
            "OneHot",
            lambda i, on, off: _RAW.OneHot(indices=i, depth=4, on_value=on, off_value=off),
            (Of((3,), "int32", values=[1, 3, -1], edges=False), Of(()), Of(())),
            ALL,
        ),
        *of_ops(("MatrixBandPart",), (Of((3, 4)),), ALL, num_lower=1, num_upper=0),
        Probe(
            "MatrixDiagV3",
            lambda x: _RAW.MatrixDiagV3(
                diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=tf.zeros([], x.dtype)
            ),
            (Of((2, 3)),),
            ALL,
        ),
        Probe(
            "MatrixDiagPartV3",
            lambda x: _RAW.MatrixDiagPartV3(input=x, k=0, padding_value=tf.zeros([], x.dtype)),
            (Of((2, 3, 3)),),
            ALL,
        ),
        Probe(
            "MatrixSetDiagV3",
            lambda x, y: _RAW.MatrixSetDiagV3(input=x, diagonal=y, k=0),
            (Of((2, 3, 3)), Of((2, 3))),
            ALL,
        ),
        # The dtype is that of the generator's key.
        Probe(
            "StatelessRandomUniformFullIntV2",
            _random_bits,
            (Of((1,), edges=False), Of((2,), edges=False)),
            ("uint64",),
        ),
        Probe("Where", lambda x: _RAW.Where(condition=x), (Of(),), (*NUMBERS, "bool")),
        Probe(
            "LowerBound",
            lambda rows, x: _RAW.LowerBound(sorted_inputs=tf.sort(rows), values=x),
            (Of((2, 4), edges=False), Of((2, 3), edges=False)),
            (*INTEGERS, "float32", "float64"),
        ),
    ]
