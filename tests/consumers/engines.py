"""The engines of the judge as targets of `convert`."""

from __future__ import annotations


def target_of(engine: str) -> str:
    """The name of the target for an engine of harnesses.engine.consumers."""
    return "tensorflow" if engine == "savedmodel" else engine
