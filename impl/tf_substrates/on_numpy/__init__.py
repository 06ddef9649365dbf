"""Packages written against TensorFlow, on NumPy: see `tf_substrates.install`."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"{__name__} has no package {name!r}. What to do first:"
        f' tf_substrates.install("numpy", [{name!r}]).'
    )
