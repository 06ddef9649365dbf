"""Helpers for authors of libraries that run on TensorFlow, on JAX and on NumPy from one source.

A library imports them beside TensorFlow:

    import tensorflow as tf
    from tf_substrates import authors
    from tf_substrates.authors import prefer_static as ps

A library that is not rewritten calls the helpers for TensorFlow. A library that is rewritten for
JAX or NumPy calls `tf_substrates.jax.authors` or `tf_substrates.numpy.authors`, which the rewriter
makes of this package. `import tf_substrates.authors` does not import TensorFlow; the first use of a
helper does.
"""

from __future__ import annotations

import importlib

# The rewriter sets one of them where the library is rewritten.
JAX_MODE = False
NUMPY_MODE = False

# By name: the module beside this one that has it; None is a module itself.
_PLACES = {
    "custom_gradient": "derivatives",
    "value_and_gradient": "derivatives",
    "convert_to_shape_tensor": "prefer_static",
    "prefer_static": None,
    "samplers": None,
    "tensorshape": None,
}

__all__ = [  # imported when they are asked for
    "JAX_MODE",
    "NUMPY_MODE",
    "convert_to_shape_tensor",
    "custom_gradient",
    "prefer_static",
    "samplers",
    "tensorshape",
    "value_and_gradient",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}. It has {', '.join(__all__)}."
        )
    place = _PLACES[name]
    try:
        found = importlib.import_module(f"{__name__}.{place or name}")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise ModuleNotFoundError(
            f"{__name__}.{name}: the library that asks for it is not rewritten, and TensorFlow is"
            " not installed. What to do: install TensorFlow, or rewrite the library, as"
            ' tf_substrates.install("jax", ["some_package"]).',
            name="tensorflow",
        ) from error
    return found if place is None else getattr(found, name)


def __dir__() -> list[str]:
    return list(__all__)
