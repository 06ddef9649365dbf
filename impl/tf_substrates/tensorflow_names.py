"""The public names of TensorFlow's modules that substrates are about, of one version.

The list beside this module is made from an installed TensorFlow by
`python -m tests.substrates.names`, and a test holds it against the installed one.
"""

from __future__ import annotations

import functools
import pathlib

VERSION = "2.21"


@functools.cache
def names() -> frozenset[str]:
    file = pathlib.Path(__file__).with_name("tensorflow_names.txt")
    return frozenset(file.read_text().split())


def has(name: str) -> bool:
    """Whether a name, such as `tf.math` or `tf.math.exp`, is one of them or a module of them."""
    return any(known == name or known.startswith(f"{name}.") for known in names())
