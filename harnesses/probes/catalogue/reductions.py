"""Ops along dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from harnesses.probes.probe import BOOL, FLOATS, NUMBERS, REALS, Of, Probe

_RAW = tf.raw_ops
_SUMS = ("Sum", "Prod", "Mean")
_EXTREMES = ("Max", "Min")
_FEW = ("int32", "float32")
_OF_SEVEN = (1, 2, 1, 2, 1, 2, 1)


def probes() -> list[Probe]:
    """Reductions, running ones, orders."""
    return [*_reductions(), *_running(), *_orders()]


def _reductions() -> list[Probe]:
    found = []
    for ops, dtypes in ((_SUMS, NUMBERS), (_EXTREMES, REALS), (("All", "Any"), BOOL)):
        for op in ops:
            found.append(_reduction(op, dtypes, (3, 4), [1]))
            few = BOOL if dtypes == BOOL else _FEW
            found.append(_reduction(op, few, _OF_SEVEN, [0, 3, 5], "of seven dimensions"))
            found.append(_reduction(op, few, (2, 3, 4), [1], "in the middle"))
    return found


def _reduction(
    op: str, dtypes: Sequence[str], shape: tuple[int, ...], axes: list[int], use: str = ""
) -> Probe:
    def reduce(x: tf.Tensor) -> tf.Tensor:
        return getattr(_RAW, op)(input=x, axis=axes)

    return Probe(op, reduce, (Of(shape),), tuple(dtypes), use)


def _running() -> list[Probe]:
    found = []
    for op, dtypes in (("Cumsum", NUMBERS), ("Cumprod", NUMBERS), ("CumulativeLogsumexp", FLOATS)):
        for use, reverse in (("", False), ("backwards", True)):
            found.append(_run_along(op, dtypes, use, reverse))
    found.append(_run_along("Cumsum", _FEW, "along axis -1", False, axis=-1))
    return found


def _run_along(op: str, dtypes: Sequence[str], use: str, reverse: bool, axis: int = 1) -> Probe:
    def run(x: tf.Tensor) -> tf.Tensor:
        return getattr(_RAW, op)(x=x, axis=axis, reverse=reverse)

    return Probe(op, run, (Of((2, 4)),), tuple(dtypes), use)


def _orders() -> list[Probe]:
    return [
        Probe(
            "ArgMax",
            lambda x: _RAW.ArgMax(input=x, dimension=1, output_type=tf.int32),
            (Of((3, 4)),),
            (*REALS, *BOOL),
        ),
        Probe(
            "ArgMin",
            lambda x: _RAW.ArgMin(input=x, dimension=1, output_type=tf.int32),
            (Of((3, 4)),),
            (*REALS, *BOOL),
        ),
        Probe("TopKV2", lambda x: tuple(_RAW.TopKV2(input=x, k=2)), (Of((3, 4)),), REALS),
    ]
