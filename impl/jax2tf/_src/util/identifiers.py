"""Names as TensorFlow takes them."""

from __future__ import annotations

import functools
import re


@functools.lru_cache(maxsize=4096)
def identifier(text: str) -> str:
    """The text with what TensorFlow takes in the name of an op or a function."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")
