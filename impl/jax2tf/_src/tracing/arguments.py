"""The arguments of a converted function: their leaves, the avals for JAX, their tensors."""

from __future__ import annotations

import jax
import numpy as np

from jax2tf._src import compat
from jax2tf._src.tracing.functions import Function, is_array_or_number
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import classes, tf
from jax2tf._src.util.typing import KeyPath, PyTree


class Argument:
    """One leaf of the arguments.

    Attributes:
      shape: its static shape in TensorFlow.
      dtype: the dtype that JAX gives it.
      weak_type: whether its dtype is weak in JAX (a Python scalar).

    Raises:
      TypeError: the value is not an array, or has a dtype that JAX does not have.
      OverflowError: a Python int that does not fit its dtype.
    """

    __slots__ = ("_function", "_path", "_value", "dtype", "shape", "weak_type")

    def __init__(self, path: KeyPath, value: PyTree, function: Function):
        self._path, self._function = path, function
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{self.where}: got a JAX tracer; a converted function takes TensorFlow values. "
                "To call TensorFlow inside JAX, use call_tf"
            )
        if hasattr(value, "__tf_tensor__") and not dtypes.is_tensor(value):
            # TensorFlow's protocol for objects that stand for a tensor, such as a Keras variable.
            value = self._standing_for(value)
        try:
            self.dtype = dtypes.jax_dtype(value)
        except (TypeError, OverflowError) as error:
            remedy = f". What to do: {self._remedy(value)}" if isinstance(error, TypeError) else ""
            raise type(error)(f"{self.where}: {error}{remedy}") from None
        self._value = value
        self.shape = _shape(value)
        self.weak_type = dtypes.is_python_scalar(value)

    def _standing_for(self, value: object) -> tf.Tensor:
        try:
            return tf.convert_to_tensor(value)
        except ValueError as error:  # Keras' placeholders have no values
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(
                f"{self.where}: expected a tensor, and {kind} has none to give. What to do: in a "
                "functional Keras model, put the function into a layer: jax2tf.keras.Layer, or "
                "keras.layers.Lambda where it has no parameters"
            ) from error

    @property
    def path(self) -> str:
        """Its path in the arguments, as "x['w']" for a parameter x."""
        return self._function.parameters.path(self._path)

    @property
    def where(self) -> str:
        """Function and path, for messages."""
        return where(self._path, self._function)

    def _remedy(self, value: object) -> str:
        if isinstance(value, (jax.ShapeDtypeStruct, *classes("TypeSpec"))):
            return (
                "give a tensor of this kind; to make a graph for a tf.TensorSpec, call "
                "get_concrete_function of a tf.function around the converted function"
            )
        for kind, remedy in _OF_OTHER_TENSORS.items():
            if isinstance(value, classes(kind)):
                return remedy
        if is_array_or_number(value):
            return (
                "make numbers of it before the call: tf.strings.to_number or a table of tf.lookup "
                "does for texts, tf.quantization.dequantize for quantized numbers, "
                "astype(np.float32) for NumPy's other arrays"
            )
        name = self._function.name
        if len(self._path) > 2:
            return (
                "close over what is no array, or jit the function as the library of such trees "
                "does (equinox.filter_jit, flax.nnx.jit), which leaves it as it is"
            )
        return (
            "make it static, which jax.jit does by name: "
            f"jax2tf.convert(jax.jit({name}, static_argnames={self.path!r}))"
        )

    @property
    def value(self) -> object:
        """The value as it was given."""
        return self._value

    def tensor(self) -> tf.Tensor:
        """The value as a tensor of the dtype that JAX sees."""
        dtype = dtypes.to_tf(self.dtype)
        value = self._value
        if dtypes.is_tensor(value):
            # A graph has to capture an eager tensor; eager mode needs no conversion.
            is_one = isinstance(value, classes("Tensor")) and (
                tf.is_symbolic_tensor(value) or tf.executing_eagerly()
            )
            tensor = value if is_one else tf.convert_to_tensor(value)
            return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
        if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
            value = compat.jaxprs.data_of_keys(value)
        if self.dtype == jax.dtypes.float0:
            value = np.zeros(np.shape(value), bool)
        return tf.constant(np.asarray(value).astype(dtype.as_numpy_dtype, copy=False))


# The advice for TensorFlow's values that are not tensors.
_OF_OTHER_TENSORS = {
    "RaggedTensor": "make it a tensor with to_tensor(), and pass row_lengths() beside it",
    "SparseTensor": "make it a tensor with tf.sparse.to_dense, or pass indices and values",
    "IndexedSlices": "make it a tensor with tf.convert_to_tensor, or pass indices and values",
    "TensorArray": "make it a tensor with stack()",
    "data.Dataset": "map the converted function over it: dataset.map(converted)",
}


def plain(
    args: tuple[PyTree, ...], kwargs: dict[str, PyTree], function: Function
) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
    """The arguments with plain containers; static values become nodes without leaves."""
    return function.with_static_leaves(unwrap(function.with_statics(args, kwargs)))


def where(path: KeyPath, function: Function) -> str:
    """Function and path of a leaf of `(args, kwargs)`, for messages."""
    return f"jax2tf.convert({function.name}): argument {function.parameters.path(path)}"


def unwrap(tree: PyTree) -> PyTree:
    """Replaces the containers that tf.Module wraps by plain ones, at any depth."""

    def unwrapped(node: PyTree) -> PyTree:
        if not compat.containers.is_module_container(node):
            return node
        return unwrap(compat.containers.unwrap_module_container(node))

    return jax.tree.map(unwrapped, tree, is_leaf=compat.containers.is_module_container)


def _shape(value: PyTree) -> tf.TensorShape:
    if isinstance(value, classes("Variable")) and tf.executing_eagerly():
        # A variable that allows several shapes has one shape now.
        known = value.shape.is_fully_defined()
        return value.shape if known else tf.convert_to_tensor(value).shape
    return value.shape if dtypes.is_tensor(value) else tf.TensorShape(np.shape(value))
