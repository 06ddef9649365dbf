"""The versions of LiteRT's ops, and the version of LiteRT that a file needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax2tf._src.export.tflite.model import Op


def version_of(op: Op) -> int:
    """The version of an op that has this use."""
    return _OLDEST.get(op.code, 1)


_OLDEST = {"BROADCAST_TO": 2}


def metadata_of(codes: Iterable[tuple[str, int]]) -> Mapping[str, bytes]:
    """The oldest LiteRT that has these versions of ops, as the file says it."""
    return {"min_runtime_version": b"2.0.0".ljust(16, b"\0")}
