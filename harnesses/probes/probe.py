"""One use of one op, with the arguments that it is tried with."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = INTEGERS[:4]
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
BOOL = ("bool",)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEX)
ALL = (*BOOL, *NUMBERS)

# What arguments are tried with beside usual numbers, by the kind of their dtype. "large" are
# neighbours beyond 2**24, which float32 does not tell apart, and the ends of the range.
FLOAT_EDGES = ("nan", "infinity", "zeros", "large")
INTEGER_EDGES = ("large",)

# From which numbers an argument is drawn: (lowest, highest) of floats, of signed, of unsigned ones.
Range = tuple[float, float]
REAL: Range = (-3.0, 3.0)
POSITIVE: Range = (0.25, 4.0)
UNIT: Range = (-0.95, 0.95)
FRACTION: Range = (0.05, 0.95)
ABOVE_ONE: Range = (1.0, 4.0)
NOT_ZERO: Range = (1.0, 5.0)


@dataclasses.dataclass(frozen=True)
class Of:
    """An argument: an array of random numbers of a range.

    Attributes:
      shape: its shape.
      dtype: its dtype; None stands for the dtype that is tried.
      range: the lowest and the highest of its numbers; integers are those in between.
      edges: whether it is tried with NaN, infinities and large numbers too.
      values: the numbers themselves, for an argument that is no random array.
    """

    shape: tuple[int, ...] = (2, 4)
    dtype: str | None = None
    range: Range = REAL
    edges: bool = True
    values: Any = None

    def array(self, dtype: str, place: int) -> np.ndarray:
        """The usual numbers of the argument in this place of a use of a dtype."""
        own = np_dtype(self.dtype or dtype)
        if self.values is not None:
            return np.asarray(self.values).astype(own).reshape(self.shape)
        draw = np.random.default_rng([zlib.crc32(dtype.encode()), place])
        low, high = self.range
        if own == np.bool_:
            return np.asarray(draw.random(self.shape) < 0.5)
        if own.kind in "iu":
            lowest = max(low, 0) if own.kind == "u" else low
            drawn = draw.integers(int(np.ceil(lowest)), int(high) + 1, self.shape)
            return np.asarray(drawn).astype(own)
        real = np.asarray(draw.uniform(low, high, self.shape))
        if own.kind == "c":
            return (real + 1j * draw.uniform(low, high, self.shape)).astype(own)
        return real.astype(own)

    def with_edges(self, dtype: str, place: int, kind: str) -> np.ndarray | None:
        """The argument with the numbers of an edge in it; None where its dtype has no such."""
        plain = self.array(dtype, place)
        found = _edges(plain.dtype, kind) if self.edges and plain.size else ()
        if not len(found):
            return None
        flat = plain.reshape(-1).copy()
        # Edges meet those before them in the other argument, and one alone meets usual numbers.
        shift = 1 if len(found) > 1 else 3
        at = (np.arange(len(found)) + shift * place) % flat.size
        flat[at] = found
        return flat.reshape(plain.shape)


@dataclasses.dataclass(frozen=True)
class Probe:
    """One use of an op.

    Attributes:
      op: the type of the op.
      function: of as many tensors as there are arguments; gives a tensor or a tuple of them. The op
        is the one that computes in it.
      args: what it is tried with.
      dtypes: those it is tried with, among those of which TensorFlow has a kernel.
      use: what is special in this use; empty for the plain one, of which there is one for each op.
      up_to_sign: whether the signs of the numbers are the kernel's to choose.
    """

    op: str
    function: Callable[..., Any]
    args: tuple[Of, ...]
    dtypes: tuple[str, ...]
    use: str = ""
    up_to_sign: bool = False

    @property
    def name(self) -> str:
        """The op, and what is special in this use of it."""
        return f"{self.op}: {self.use}" if self.use else self.op

    def arrays(self, dtype: str) -> list[np.ndarray]:
        """Usual numbers for the arguments."""
        return [arg.array(dtype, place) for place, arg in enumerate(self.args)]

    def edges(self, dtype: str) -> dict[str, list[np.ndarray]]:
        """The arguments with other numbers in them, by the kind of these."""
        tried = {}
        for kind in FLOAT_EDGES:
            arrays = [arg.with_edges(dtype, place, kind) for place, arg in enumerate(self.args)]
            if any(array is not None for array in arrays):
                usual = self.arrays(dtype)
                tried[kind] = [u if a is None else a for u, a in zip(usual, arrays, strict=True)]
        return tried


def of_ops(
    ops: Sequence[str], args: Sequence[Of], dtypes: Sequence[str], use: str = "", **attrs: Any
) -> list[Probe]:
    """A use of each op, whose arguments are those of tf.raw_ops in order, with these attributes."""
    return [Probe(op, _raw(op, attrs), tuple(args), tuple(dtypes), use) for op in ops]


def np_dtype(name: str) -> np.dtype:
    """The dtype of NumPy, or of ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _raw(op: str, attrs: dict[str, Any]) -> Callable[..., Any]:
    function = getattr(tf.raw_ops, op)
    names = [arg.name for arg in _definition(op).input_arg if arg.name not in attrs]

    def apply(*tensors: Any) -> Any:
        return function(**dict(zip(names, tensors, strict=True)), **attrs)

    return apply


def _definition(op: str) -> Any:
    """The OpDef of an op, which names its inputs in their order."""
    with tf.Graph().as_default() as graph:
        return graph.op_def_for_type(op)


def _edges(dtype: np.dtype, kind: str) -> Sequence[Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if kind != "large":
            return ()
        wide = [2**24, 2**24 + 1] if info.bits >= 32 else []
        return [info.max, info.max - 1, info.min, *wide]
    if dtype.kind in "bc":
        return ()
    info = ml_dtypes.finfo(dtype)
    return {
        "nan": [np.nan],
        "infinity": [np.inf, -np.inf],
        "zeros": [0.0, -0.0],
        "large": [info.max, -float(info.max), info.tiny],
    }[kind]
