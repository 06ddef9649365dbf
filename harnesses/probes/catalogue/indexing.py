"""Ops that read and write at computed places."""

from __future__ import annotations

import tensorflow as tf

from harnesses.probes.probe import ALL, NUMBERS, REALS, Of, Probe

_RAW = tf.raw_ops
_ROWS = Of((3,), "int32", values=[1, 0, 1], edges=False)
_PLACES = Of((3, 1), "int32", values=[[2], [0], [1]], edges=False)
_OFTEN = Of((6, 1), "int32", values=[[2], [0], [2], [2], [0], [2]], edges=False)
_SEGMENTS = Of((4,), "int32", values=[0, 2, 0, 1], edges=False)


def probes() -> list[Probe]:
    """Gathers, scatters, segments."""
    return [*_gathers(), *_scatters(), *_segments()]


def _gathers() -> list[Probe]:
    in_batches = Of((2, 2), "int32", values=[[1, 3], [0, 2]], edges=False)
    return [
        Probe(
            "GatherV2", lambda x, i: _RAW.GatherV2(params=x, indices=i, axis=0), (Of(), _ROWS), ALL
        ),
        Probe(
            "GatherV2",
            lambda x, i: _RAW.GatherV2(params=x, indices=i, axis=1, batch_dims=1),
            (Of(), in_batches),
            ALL,
            "in batches",
        ),
        Probe(
            "GatherV2",
            lambda x, i: _RAW.GatherV2(params=x, indices=i, axis=-1, batch_dims=1),
            (Of(), in_batches),
            ("int32", "float32"),
            "in batches along axis -1",
        ),
        Probe(
            "GatherNd",
            lambda x, i: _RAW.GatherNd(params=x, indices=i),
            (Of((3, 4)), Of((2, 2), "int32", values=[[2, 1], [0, 3]], edges=False)),
            ALL,
        ),
    ]


def _scatters() -> list[Probe]:
    kinds = {"Update": ALL, "Add": NUMBERS, "Sub": NUMBERS, "Max": REALS, "Min": REALS}
    found = [
        Probe(
            "ScatterNd",
            lambda i, x: _RAW.ScatterNd(indices=i, updates=x, shape=[4, 2]),
            (_PLACES, Of((3, 2))),
            ALL,
        ),
        Probe(
            "ScatterNd",
            lambda i, x: _RAW.ScatterNd(indices=i, updates=x, shape=[4, 2]),
            (_OFTEN, Of((6, 2))),
            NUMBERS,
            "where indices repeat",
        ),
    ]
    for kind, dtypes in kinds.items():
        found.append(_scatter(kind, "", _PLACES, Of((3, 2)), dtypes))
        found.append(_scatter(kind, "where indices repeat", _OFTEN, Of((6, 2)), dtypes))
    return found


def _scatter(kind: str, use: str, places: Of, updates: Of, dtypes: tuple[str, ...]) -> Probe:
    op = f"TensorScatter{kind}"

    def scatter(x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
        return getattr(_RAW, op)(tensor=x, indices=indices, updates=updates)

    return Probe(op, scatter, (Of((4, 2)), places, updates), dtypes, use)


def _segments() -> list[Probe]:
    kinds = {"Sum": NUMBERS, "Prod": NUMBERS, "Max": REALS, "Min": REALS}
    return [_segment(kind, dtypes) for kind, dtypes in kinds.items()]


def _segment(kind: str, dtypes: tuple[str, ...]) -> Probe:
    op = f"UnsortedSegment{kind}"

    def segment(x: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        return getattr(_RAW, op)(data=x, segment_ids=ids, num_segments=3)

    return Probe(op, segment, (Of((4, 2)), _SEGMENTS), dtypes)
