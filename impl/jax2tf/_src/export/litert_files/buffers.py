"""Buffers of LiteRT files, aligned for kernels."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from jax2tf._src.util.typing import PyTree

# A table of the model. FlatBuffers generates its class without types.
Table: TypeAlias = Any


def pack_aligned(schema: ModuleType, buffer: Table) -> None:
    """Makes the method `Pack` of a buffer align its bytes."""
    buffer.Pack = functools.partial(_packed, schema, buffer)


# LiteRT's schema requires this alignment; FlatBuffers' builder in Python aligns bytes to 1.
_ALIGNMENT = 16


def _packed(schema: ModuleType, buffer: Table, builder: Table) -> PyTree:
    """Writes a buffer as its generated method `Pack` does, but aligned for kernels."""
    data = None
    if buffer.data is not None and len(buffer.data):
        content = np.ascontiguousarray(buffer.data).tobytes()
        builder.StartVector(1, len(content), _ALIGNMENT)
        builder.head -= len(content)
        builder.Bytes[builder.head : builder.head + len(content)] = content
        data = builder.EndVector()
    schema.BufferStart(builder)
    if data is not None:
        schema.BufferAddData(builder, data)
    schema.BufferAddOffset(builder, buffer.offset)
    schema.BufferAddSize(builder, buffer.size)
    return schema.BufferEnd(builder)
