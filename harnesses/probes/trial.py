"""One use of an op in one engine: does it take it, and does it give TensorFlow's numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from harnesses.engine.compare import ulp_errors
from harnesses.engine.consumers import Model, words_of
from harnesses.engine.consumers.graph import graph_of
from harnesses.probes.probe import Probe, np_dtype

TAKES = "takes"
DIFFERS = "differs"
REFUSES = "refuses"
FAILS = "fails"
ENDS = "ends the process"

# How far an engine's kernel may be from TensorFlow's, in ULPs at the largest number of the result:
# this tells a kernel of another dtype from one of another algorithm, and no good one from a better.
_ULPS = 256.0

_WORDS = 160


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one use with one dtype.

    Attributes:
      kind: "takes": TensorFlow's numbers; "differs": others; "refuses": no model can be made;
        "fails": the model does not run; "ends the process".
      message: the engine's words, where it refuses or fails.
      edges: the kinds of special numbers at which what it takes differs.
    """

    kind: str
    message: str = ""
    edges: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f"; differs at {', '.join(self.edges)}" if self.edges else ""
        return self.kind + (f": {self.message}" if self.message else "") + at


def kernel_of(probe: Probe, dtype: str) -> bool:
    """Whether TensorFlow has a kernel for this use, and the use can be tried at all."""
    try:
        _computed(probe, probe.arrays(dtype))
    except (tf.errors.OpError, TypeError, ValueError):
        return False
    return True


def tried(probe: Probe, dtype: str, engine: Any) -> Outcome:
    """The use of a dtype, in an engine: what has `convert` and `NOISE` (see engine.consumers)."""
    arrays = probe.arrays(dtype)
    specs = [tf.TensorSpec(a.shape, _tf_dtype(a)) for a in arrays]
    try:
        model = engine.convert(graph_of(probe.function, specs))
    except Exception as error:  # An engine may raise anything: it is what the table tells of.
        return Outcome(REFUSES, _words(error, engine))
    if model is None:
        return Outcome(TAKES)
    try:
        agrees = _agrees(_computed(probe, arrays), model(arrays), probe)
    except Exception as error:
        return Outcome(FAILS, _words(error, engine))
    if not agrees:
        return Outcome(DIFFERS)
    return Outcome(TAKES, edges=_edges(probe, dtype, model, engine))


def _edges(probe: Probe, dtype: str, model: Model, engine: Any) -> tuple[str, ...]:
    found = []
    for kind, arrays in probe.edges(dtype).items():
        try:
            expected = _computed(probe, arrays)
        except tf.errors.OpError:
            # What TensorFlow refuses (a division by 0) is no edge that an engine could keep.
            continue
        try:
            agrees = _agrees(expected, model(arrays), probe, signs=kind == "zeros")
        except Exception as error:
            return (*found, f"{kind} ({_words(error, engine)})")
        if not agrees:
            found.append(kind)
    return tuple(found)


def _computed(probe: Probe, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """TensorFlow's results, eager, on the CPU."""
    with tf.device("CPU:0"):
        tensors = [tf.constant(a, _tf_dtype(a)) for a in arrays]
        return [y.numpy() for y in tf.nest.flatten(probe.function(*tensors))]


def _agrees(
    expected: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    probe: Probe,
    signs: bool = False,
) -> bool:
    if len(expected) != len(results):
        return False
    return all(
        _is_equal(e, np.asarray(r), probe.up_to_sign, signs)
        for e, r in zip(expected, results, strict=True)
    )


def _is_equal(expected: np.ndarray, result: np.ndarray, up_to_sign: bool, signs: bool) -> bool:
    if (expected.dtype, expected.shape) != (result.dtype, result.shape):
        return False
    if expected.dtype == np.bool_ or expected.dtype.kind in "iu":
        return bool(np.array_equal(expected, result))
    if up_to_sign:
        expected, result = np.abs(expected), np.abs(result)
    with np.errstate(all="ignore"):
        errors = ulp_errors(expected, result, "array")
    zeros = (expected == 0) & (result == 0) if signs else np.zeros(expected.shape, bool)
    parts = [(expected.real, result.real), (expected.imag, result.imag)]
    lost = any((zeros & (np.signbit(e) != np.signbit(r))).any() for e, r in parts)
    return bool((errors <= _ULPS).all()) and not lost


def _words(error: Exception, engine: Any) -> str:
    # Names and addresses differ from run to run.
    words = re.sub(r"0x[0-9a-f]+|/\S+/|__\d+", "", words_of(error, engine))
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"[:_WORDS]


def _tf_dtype(array: np.ndarray) -> tf.DType:
    return tf.bfloat16 if array.dtype == np_dtype("bfloat16") else tf.as_dtype(array.dtype)
