"""What stands for Keras in rewritten packages: classes to name, none of which can be made.

Packages name Keras in annotations, documentation and as a base class of parts that need it. What
they compute without it runs.
"""

from __future__ import annotations

from typing import Any


class _Refused:
    """A class of Keras that is not here."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(
            f"{type(self).__module__}.{type(self).__name__} needs Keras, which the substrates do"
            " not have. What to do: use a library of JAX for layers and optimizers."
        )


class _Part:
    """A module of Keras, with any class that it is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _member(self._name, name)


def _member(owner: str, name: str) -> Any:
    if name.startswith("__") and name != "__internal__":
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    if name[:1].isupper():
        return type(name, (_Refused,), {"__module__": owner})
    return _Part(f"{owner}.{name}")


def __getattr__(name: str) -> Any:
    return _member("tf_keras", name)
