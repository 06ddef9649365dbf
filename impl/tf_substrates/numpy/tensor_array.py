"""tf.TensorArray: a list of tensors of one dtype and shape, which loops carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import OutOfRangeError, invalid_argument
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.recording import recorded
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import convert, is_tensor, static_value, traced, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


@export("TensorArray")
class TensorArray:
    """A list of tensors. Each `write` gives a new one; what is not written is zeros.

    On JAX its size is fixed, and it knows the shape of its elements by `element_shape` or by the
    first write or unstack; a loop needs one of these before it, since what it carries has a shape.

    >>> from tf_substrates.numpy import tf
    >>> print(tf.TensorArray(tf.float32, size=2).write(1, 5.0).stack())
    tf.Tensor([0. 5.], shape=(2,), dtype=float32)

    Raises:
      tf.errors.OutOfRangeError: a known index is outside, and the size not dynamic.
    """

    # Marks what loops carry as it is.
    _as_carry = True

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: Any = None,
        clear_after_read: Any = None,
        tensor_array_name: Any = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: Any = None,
    ):
        self._dtype = dtypes.as_dtype(dtype)
        self._size = 0 if size is None else int(static_value(size, "The size of a TensorArray"))
        self._dynamic = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._element_shape = TensorShape(element_shape)
        self._data: Any = None
        if self._element_shape.is_fully_defined():
            self._data = self._zeros(self._element_shape.as_list())

    def _zeros(self, shape: Any) -> Any:
        return xp.zeros((self._size, *shape), dtypes.numpy_dtype(self._dtype))

    def _with(self, data: Any) -> TensorArray:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._data = data
        new._size = self._size if data is None else data.shape[0]
        return new

    def _with_elements_of(self, other: TensorArray) -> TensorArray:
        """The array, of zeros in another one's shape if nothing is written to it."""
        if self._data is not None or other._data is None:
            return self
        return self._with(xp.zeros(other._data.shape, other._data.dtype))

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        return self._element_shape if self._data is None else TensorShape(self._data.shape[1:])

    @property
    def flow(self) -> Any:
        return wrap(np.zeros([], np.float32))

    def size(self, name: Any = None) -> Any:
        return wrap(np.array(self._size, np.int32))

    def identity(self) -> TensorArray:
        return self

    def grad(self, source: Any, flow: Any = None, name: Any = None) -> Any:
        raise NotImplementedError(
            "TensorArray.grad: take gradients of a function of tensors instead"
        )

    def close(self, name: Any = None) -> None:
        """Nothing is held that would have to be given back."""

    @recorded
    def write(self, index: Any, value: Any, name: Any = None) -> TensorArray:
        element = self._element(value)
        if not self.element_shape.is_compatible_with(element.shape):
            raise ValueError(
                f"Inconsistent shapes: saw {tuple(element.shape)} but expected {self.element_shape}"
            )
        data = self._zeros(element.shape) if self._data is None else self._data
        at = convert(index)
        if not traced(at):
            data = self._grown(data, int(at), "write to")
        if JAX_MODE:
            on_device: Any = xp.asarray(data)
            return self._with(on_device.at[at].set(element))
        data = data.copy()
        data[int(at)] = element
        return self._with(data)

    def _element(self, value: Any) -> Any:
        wanted = dtypes.as_dtype(self._dtype)
        if is_tensor(value) and dtypes.dtype_of(value) != wanted:
            raise invalid_argument(
                f"TensorArray dtype is {wanted.name} but Op is trying to write dtype"
                f" {dtypes.dtype_of(value).name}"
            )
        return convert(value, self._dtype)

    def _grown(self, data: Any, index: int, what: str) -> Any:
        if 0 <= index < self._size:
            return data
        if not self._dynamic or index < 0 or what == "read from":
            raise OutOfRangeError(
                None,
                None,
                f"Tried to {what} index {index} but array is not resizeable and size is:"
                f" {self._size}",
            )
        more = xp.zeros((index + 1 - self._size, *data.shape[1:]), data.dtype)
        return xp.concatenate([data, more])

    def _filled(self) -> Any:
        if self._data is None:
            raise invalid_argument(
                "TensorArray: nothing is written and there is no element_shape, so that the shape"
                " of its elements is not known"
            )
        return self._data

    @recorded
    def read(self, index: Any, name: Any = None) -> Any:
        data, at = self._filled(), convert(index)
        if not traced(at):
            self._grown(data, int(at), "read from")
            at = int(at)
        return wrap(data[at])

    @recorded
    def stack(self, name: Any = None) -> Any:
        return wrap(self._filled())

    @recorded
    def gather(self, indices: Any, name: Any = None) -> Any:
        return wrap(xp.take(self._filled(), convert(indices), 0))

    @recorded
    def concat(self, name: Any = None) -> Any:
        data = self._filled()
        if len(data.shape) < 2:
            raise invalid_argument(
                "Concat saw a scalar shape at index 0 but requires at least vectors."
            )
        return wrap(data.reshape((-1, *data.shape[2:])))

    @recorded
    def unstack(self, value: Any, name: Any = None) -> TensorArray:
        return self._with(xp.asarray(convert(value, self._dtype)))

    def scatter(self, indices: Any, value: Any, name: Any = None) -> TensorArray:
        result = self
        for i, row in zip(
            np.asarray(static_value(indices, "indices")), convert(value), strict=True
        ):
            result = result.write(i, row)
        return result

    @recorded
    def split(self, value: Any, lengths: Any, name: Any = None) -> TensorArray:
        sizes = static_value(lengths, "The lengths of TensorArray.split")
        if len(set(sizes.tolist())) > 1:
            raise ValueError(
                f"TensorArray.split: elements have one shape here, not lengths {sizes}"
            )
        rows = convert(value, self._dtype)
        return self._with(rows.reshape((len(sizes), -1, *rows.shape[1:])))


if JAX_MODE:

    def _unflattened(aux: Any, children: Any) -> TensorArray:
        new = object.__new__(TensorArray)
        new.__dict__.update(dict(aux))
        new._data = children[0]
        return new

    jax.tree_util.register_pytree_node(
        TensorArray,
        lambda array: (
            (array._data,),
            tuple((k, v) for k, v in sorted(array.__dict__.items()) if k != "_data"),
        ),
        _unflattened,
    )
