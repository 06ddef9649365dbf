"""Names as TensorFlow takes them."""

from __future__ import annotations

import re

from jax2tf._src.util.lru import cached


@cached
def identifier(text: str) -> str:
    """The text with what TensorFlow takes in the name of an op or a function."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")
