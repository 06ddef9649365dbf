"""Functions that state their arguments: 64 bits while JAX has 32, sizes that are open."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import NO_DERIVATIVES, ask, normal
from harnesses.harness.arguments import Values

_TABLE = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def _stating(function: Callable[..., Any], *dtypes: str) -> Callable[..., Any]:
    """The function with a signature of these dtypes, of open sizes."""
    specs = [tf.TensorSpec(None, dtype) for dtype in dtypes]
    return tf.function(function, input_signature=specs, autograph=False)


def _rows(ids: Any) -> Any:
    return tf.gather(_TABLE, ids)


def _by_keyword(dtype: str) -> Callable[..., Any]:
    """As a signature of a SavedModel is called: it looks at its arguments when it runs."""
    concrete = tf.function(_rows, autograph=False).get_concrete_function(
        ids=tf.TensorSpec(None, dtype)
    )
    return lambda ids: concrete(ids=ids)


_OF_IDS: Mapping[str, Callable[[str], Callable[..., Any]]] = {
    "tf.function": lambda dtype: _stating(_rows, dtype),
    "tf.types.experimental.ConcreteFunction": lambda dtype: _stating(
        _rows, dtype
    ).get_concrete_function(),
    "tf.saved_model.load": _by_keyword,
}


@family.builder
def ids_of_64_bits() -> None:
    """Ids in int64, which JAX passes in 32 bits while x64 is off."""
    for op, made in _OF_IDS.items():
        ask(op, made("int64"), [Values([[0, 2], [1, 1]], "int64")], dtypes=["int64"],
            case="ids", tags=NO_DERIVATIVES, x64=False)  # fmt: skip


def _doubled(x: Any) -> Any:
    return tf.reshape(tf.tile(x, [1, 2]), [tf.shape(x)[0], 2 * tf.shape(x)[1]])


@family.builder
def sizes_of_arguments() -> None:
    """Results whose sizes follow from those of arguments."""
    specs = [tf.TensorSpec([None, None], tf.float32)]
    function = tf.function(_doubled, input_signature=specs, autograph=False)
    ask("tf.function", function, normal((4, 5)), case="sizes")
