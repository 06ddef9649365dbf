"""Tensors, and how values become them by TensorFlow's rules.

On JAX a tensor is a jax.Array. On NumPy it is an ndarray of the class `Tensor`, whose operators are
TensorFlow's: the other operand takes the tensor's dtype, and nothing is promoted. Inside this
package operations compute with plain arrays, which `convert` gives and `wrap` makes tensors of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, registered_types
from tf_substrates.numpy.errors import UnknownValueError, invalid_argument
from tf_substrates.numpy.known_values import Known, unchanging
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.recording import stands_for
from tf_substrates.numpy.shapes import TensorShape

JAX_MODE = False
if JAX_MODE:
    import jax

# The functions behind Tensor's operators, by the operator's name; the math module fills it.
OPERATORS: dict[str, Callable] = {}


def _operator(name: str) -> Callable:
    def method(self: Any, other: Any) -> Any:
        return OPERATORS[name](self, other)

    return method


def _reflected(name: str) -> Callable:
    def method(self: Any, other: Any) -> Any:
        if not is_tensor(other):
            other = wrap(convert(other, dtype=self.dtype))
        return OPERATORS[name](other, self)

    return method


def _unary(name: str) -> Callable:
    def method(self: Any) -> Any:
        return OPERATORS[name](self)

    return method


if JAX_MODE:
    Tensor = jax.Array
else:

    class Tensor(np.ndarray):  # type: ignore[no-redef]
        """A NumPy array with TensorFlow's operators. NumPy's own functions of it give arrays."""

        __array_priority__ = 100

        __add__ = _operator("add")
        __sub__ = _operator("subtract")
        __mul__ = _operator("multiply")
        __truediv__ = _operator("truediv")
        __floordiv__ = _operator("floordiv")
        __mod__ = _operator("floormod")
        __pow__ = _operator("pow")
        __matmul__ = _operator("matmul")
        __and__ = _operator("and")
        __or__ = _operator("or")
        __xor__ = _operator("xor")
        __lt__ = _operator("less")
        __le__ = _operator("less_equal")
        __gt__ = _operator("greater")
        __ge__ = _operator("greater_equal")
        __radd__ = _reflected("add")
        __rsub__ = _reflected("subtract")
        __rmul__ = _reflected("multiply")
        __rtruediv__ = _reflected("truediv")
        __rfloordiv__ = _reflected("floordiv")
        __rmod__ = _reflected("floormod")
        __rpow__ = _reflected("pow")
        __rmatmul__ = _reflected("matmul")
        __rand__ = _reflected("and")
        __ror__ = _reflected("or")
        __rxor__ = _reflected("xor")
        # As TensorFlow's tensors, which do not change: `x += y` binds a new one.
        __iadd__ = __add__
        __isub__ = __sub__
        __imul__ = __mul__
        __itruediv__ = __truediv__
        __ifloordiv__ = __floordiv__
        __imod__ = __mod__
        __ipow__ = __pow__
        __neg__ = _unary("negative")
        __abs__ = _unary("abs")
        __invert__ = _unary("invert")
        __getitem__ = _operator("getitem")

        def __eq__(self, other: Any) -> Any:
            return OPERATORS["tensor_equals"](self, other)

        def __ne__(self, other: Any) -> Any:
            return OPERATORS["tensor_not_equals"](self, other)

        __hash__ = None

        def __setitem__(self, key: Any, value: Any) -> None:
            raise TypeError("'Tensor' object does not support item assignment")

        def __iter__(self) -> Any:
            if self.ndim == 0:
                raise TypeError("Cannot iterate over a scalar tensor.")
            return (wrap(row) for row in self.view(np.ndarray))

        def __bool__(self) -> bool:
            return bool(self.view(np.ndarray))

        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
            name = _OF_UFUNC.get(ufunc)
            if name is not None and method == "__call__" and not kwargs and len(inputs) == 2:
                x, y = inputs
                # A NumPy scalar on the left asks its ufunc, not our reflected operator.
                return OPERATORS[name](x, y) if is_tensor(x) else _reflected(name)(y, x)
            plain = {
                key: tuple(map(_unwrap, value)) if key == "out" else _unwrap(value)
                for key, value in kwargs.items()
            }
            return getattr(ufunc, method)(*map(_unwrap, inputs), **plain)

        def numpy(self) -> Any:
            array = self.view(np.ndarray)
            return array[()] if array.ndim == 0 else array.copy()

        def get_shape(self) -> TensorShape:
            return TensorShape(self.shape)

        def set_shape(self, shape: Any) -> None:
            if not TensorShape(shape).is_compatible_with(self.shape):
                raise ValueError(f"Tensor's shape {self.shape} is not compatible with {shape}")

        def ref(self) -> Reference:
            return Reference(self)

        def __str__(self) -> str:
            array = self.view(np.ndarray)
            return f"tf.Tensor({array!s}, shape={self.shape}, dtype={self.dtype.name})"

        def __repr__(self) -> str:
            array = self.view(np.ndarray)
            array = array.item() if array.ndim == 0 and array.dtype.kind != "O" else array
            return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={array!r}>"

        def __format__(self, spec: str) -> str:
            return format(self.numpy() if spec and self.ndim == 0 else str(self), spec)


export("Tensor")(Tensor)

_OF_UFUNC: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "truediv",
    np.floor_divide: "floordiv",
    np.remainder: "floormod",
    np.power: "pow",
    np.less: "less",
    np.less_equal: "less_equal",
    np.greater: "greater",
    np.greater_equal: "greater_equal",
}


class Reference:
    """A tensor, or another object, as a key of dictionaries: equal where it is the same object."""

    def __init__(self, wrapped: Any):
        self._wrapped = wrapped

    def deref(self) -> Any:
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)


def is_tensor(value: Any) -> bool:
    if not JAX_MODE:
        return isinstance(value, Tensor)
    return isinstance(value, (Tensor, Known)) or is_typed_number(value)


def is_typed_number(value: Any) -> bool:
    """Whether a value is a Python number with a dtype, as JAX gives to rules of derivatives."""
    return (
        isinstance(value, (int, float, complex))
        and hasattr(value, "dtype")
        and not isinstance(value, np.generic)
    )


@export("is_tensor")
def _is_tensor(x: Any) -> bool:
    return is_tensor(x) or hasattr(x, "__tf_tensor__")


def is_key(value: Any) -> bool:
    """Whether a value holds keys of JAX's random numbers, which have a dtype of their own."""
    return isinstance(value, Tensor) and not isinstance(value.dtype, np.dtype)


def seed_of_key(key: Any) -> Any:
    """The two integers of a key, as a seed of TensorFlow's stateless samplers."""
    words = jax.random.key_data(key)
    if words.shape[-1] != 2:  # a generator that is not JAX's default has more of them
        words = jax.vmap(lambda k: jax.random.bits(k, (2,), np.uint32))(key.reshape(-1))
        words = words.reshape((*key.shape, 2))
    return jax.lax.bitcast_convert_type(words, np.int32)


def has_dtype(value: Any) -> bool:
    """Whether a value sets the dtype of the operands beside it."""
    if isinstance(value, (Tensor, np.ndarray)) or hasattr(value, "__tf_tensor__"):
        return True
    return bool(JAX_MODE) and is_typed_number(value)


def _unwrap(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Tensor) else value


def wrap(value: Any) -> Any:
    """Plain arrays as tensors, in lists and tuples too; on JAX those of integers and booleans."""
    if isinstance(value, (np.ndarray, np.generic)):
        if JAX_MODE:
            return unchanging(value)
        return value if isinstance(value, Tensor) else np.asarray(value).view(Tensor)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(wrap, value))
    if type(value) in (list, tuple):
        return type(value)(map(wrap, value))
    return value


def convert(value: Any, dtype: Any = None, hint: Any = None) -> Any:
    """A value as a plain array, by the rules of tf.convert_to_tensor.

    Args:
      value: a tensor, an array, a Python number, string or sequence of these.
      dtype: what it must have; None for what it has or would get.
      hint: what it gets if it is no tensor and can have it.

    Raises:
      ValueError: a tensor of another dtype, None, or a sequence that is not rectangular.
      TypeError: a Python number that the dtype does not take.
    """
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__()
    if JAX_MODE:
        value = stands_for(value)
        if is_key(value):
            value = seed_of_key(value)
        elif is_typed_number(value):
            value = jax.numpy.asarray(value, value.dtype)
    if is_tensor(value):
        if dtype is not None and value.dtype != dtypes.numpy_dtype(dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with"
                f" dtype {dtypes.dtype_of(value).name}: {value!r}"
            )
        return value if JAX_MODE else value.view(np.ndarray)
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, hint if dtype is None else dtype)
    made = registered_types.as_registered(value, None if dtype is None else dtypes.as_dtype(dtype))
    if made is not value:
        return convert(made, dtype)
    if dtype is None and hint is not None:
        with contextlib.suppress(TypeError):
            return _from_python(value, hint)
    return _from_python(value, dtype)


def _from_numpy(value: Any, dtype: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "US":
        array = np.array([_bytes(s) for s in array.ravel()], object).reshape(array.shape)
    wanted = dtypes.numpy_dtype(array.dtype if dtype is None else dtype)
    if array.dtype.kind == "O" and wanted.kind != "O":
        return _from_python(array.tolist(), dtype)
    if array.dtype.kind == "c" and wanted.kind != "c":
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.name}")
    return array.astype(wanted, copy=False)


def _bytes(text: Any) -> Any:
    return text.encode() if isinstance(text, str) else text


def _leaves(value: Any) -> Iterable:
    if isinstance(value, (list, tuple, range, TensorShape)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _from_python(value: Any, dtype: Any) -> Any:
    leaves = list(_leaves(value))
    arrays = [x for x in leaves if has_dtype(x)]
    if arrays:
        tensors = [x for x in arrays if not isinstance(x, np.ndarray) or is_tensor(x)]
        if not tensors:
            return _stacked(value, _dtype_beside(arrays, leaves) if dtype is None else dtype)
        inferred = tensors[0].dtype
        if dtype is None or dtypes.numpy_dtype(dtype) == inferred:
            return _packed(value, inferred)
        return _packed(value, dtypes.numpy_dtype(dtype), casts=True)
    for leaf in leaves:
        if leaf is None or not isinstance(
            leaf, (bool, int, float, complex, str, bytes, np.generic)
        ):
            if leaf is not None and hasattr(leaf, "__array__"):
                return (
                    _from_numpy(np.asarray(leaf), dtype)
                    if leaf is value
                    else _stacked(value, dtype)
                )
            raise ValueError(
                f"Attempt to convert a value ({leaf!r}) with an unsupported type ({type(leaf)})"
                " to a Tensor."
            )
    is_empty_shape = isinstance(value, TensorShape) and not leaves
    natural = np.dtype(np.int32) if is_empty_shape else _natural_dtype(leaves)
    wanted = natural if dtype is None else dtypes.numpy_dtype(dtype)
    if not _takes(wanted, natural, leaves):
        raise TypeError(
            f"Cannot convert {value!r} to EagerTensor of dtype {dtypes.as_dtype(wanted).name}"
        )
    try:
        if wanted.kind == "O":
            flat = np.array([*map(_bytes, leaves), None], object)[:-1]
            return flat.reshape(np.shape(value))
        # By way of what Python's numbers are, so that integers wrap as TensorFlow's do.
        exact = np.asarray(list(value) if isinstance(value, TensorShape) else value)
        if exact.dtype.kind == "O":
            raise ValueError(f"Can't convert Python integers out of range: {value!r}")
    except ValueError as error:
        if "inhomogeneous" in str(error) or "reshape" in str(error):
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
        raise
    return exact.astype(dtypes.numpy_dtype(wanted))


def _natural_dtype(leaves: list) -> np.dtype:
    if not leaves:
        return np.dtype(np.float32)
    if all(isinstance(leaf, np.generic) for leaf in leaves):
        return np.result_type(*leaves)
    if any(isinstance(leaf, (str, bytes)) for leaf in leaves):
        return np.dtype(object)
    if any(isinstance(leaf, (complex, np.complexfloating)) for leaf in leaves):
        return np.dtype(np.complex128)
    if any(isinstance(leaf, (float, np.floating)) for leaf in leaves):
        return np.dtype(np.float32)
    if all(isinstance(leaf, (bool, np.bool_)) for leaf in leaves):
        return np.dtype(np.bool_)
    fits = all(-(2**31) <= leaf < 2**31 for leaf in leaves)
    return np.dtype(np.int32 if fits else np.int64)


def _takes(wanted: np.dtype, natural: np.dtype, leaves: list) -> bool:
    """Whether Python's numbers, of which `natural` is the dtype, may have the wanted one."""
    if not leaves or all(isinstance(leaf, np.generic) for leaf in leaves):
        return True
    kinds = {"b": "biufcV", "i": "iufcV", "u": "iufcV", "f": "fcV", "c": "c", "O": "O"}
    return wanted.kind in kinds[natural.kind]


def _dtype_beside(arrays: list, leaves: list) -> np.dtype:
    """What a sequence of NumPy's arrays and Python's numbers becomes: a float decides."""
    others = [leaf for leaf in leaves if isinstance(leaf, (float, complex))]
    if others and all(array.dtype.kind in "iub" for array in arrays):
        return _natural_dtype(others)
    return next((a.dtype for a in arrays if a.dtype.kind in "fc"), arrays[0].dtype)


def _packed(value: Any, dtype: np.dtype, casts: bool = False) -> Any:
    """A sequence that holds tensors, which have the dtype or, with `casts`, are cast to it.

    Python's numbers must take the dtype.
    """
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__()
    if is_tensor(value):
        return convert(value.astype(dtype) if casts else value)
    if not isinstance(value, (list, tuple)):
        return convert(value, dtype)
    rows = [_packed(item, dtype, casts) for item in value]
    for i, (row, item) in enumerate(zip(rows, value, strict=True)):
        if row.dtype != dtype:
            found, wanted = dtypes.dtype_of(row), dtypes.as_dtype(dtype)
            if all(map(_is_tensor, value)):
                raise invalid_argument(
                    f"cannot compute Pack as input #{i}(zero-based) was expected to be a"
                    f" {wanted.name} tensor but is a {found.name} tensor [Op:Pack]"
                )
            raise TypeError(
                f"Cannot convert a list containing a tensor of dtype {found} to {wanted}"
                f" (Tensor is: {item!r})"
            )
    return _rows_stacked(rows)


def _stacked(value: Any, dtype: Any) -> Any:
    """A sequence that holds arrays of NumPy's and no tensors. Python's numbers take the dtype."""
    if isinstance(value, (bool, int, float, complex)):
        return convert(value, dtype)
    if not isinstance(value, (list, tuple)):
        return convert(value, hint=dtype)
    rows = [_stacked(item, dtype) for item in value]
    return _rows_stacked([convert(row, dtype) if dtype is not None else row for row in rows])


def _rows_stacked(rows: list) -> Any:
    shapes = {np.shape(row) for row in rows}
    if len(shapes) > 1:
        raise invalid_argument(
            f"Shapes of all inputs must match: {' != '.join(map(str, sorted(shapes)))} [Op:Pack]"
        )
    if JAX_MODE and any(isinstance(row, jax.Array) for row in rows):
        return xp.stack(rows)
    return np.stack(rows)


@op("convert_to_tensor", static=True)
def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: Any = None
) -> Any:
    """A value as a tensor; Python numbers become int32, float32 or complex128.

    Raises:
      ValueError: a tensor of another dtype than asked for, or None.
      TypeError: a Python number that the dtype does not take.
    """
    array = convert(value, dtype, dtype_hint)
    if JAX_MODE and (is_key(value) or is_typed_number(value)):
        return array
    if traced(value) and value.aval.weak_type:
        # JAX differentiates at a Python number, which has no dtype that a rule could ask for.
        return jax.lax.convert_element_type(value, value.dtype)
    # A tensor is itself: libraries know by identity what they have computed of it.
    return value if is_tensor(value) else array


@op("constant", static=True)
def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = "Const") -> Any:
    """A tensor of a value, filled or reshaped to `shape`."""
    if is_tensor(value) and dtype is not None and value.dtype != dtypes.numpy_dtype(dtype):
        raise TypeError(
            f"Expected tensor {value} with dtype {dtypes.as_dtype(dtype)!r}, but got dtype"
            f" {dtypes.dtype_of(value)!r}."
        )
    array = convert(value, dtype)
    if shape is None:
        return value if is_tensor(value) else array
    wanted = TensorShape(shape)
    if array.size == wanted.num_elements():
        return array.reshape(wanted.as_list())
    if array.size == 1:
        return xp.broadcast_to(array.reshape(()), wanted.as_list())
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted from"
        f" {value!r}) has {array.size} elements, but got `shape` {wanted} with"
        f" {wanted.num_elements()} elements)."
    )


@export("register_tensor_conversion_function")
def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable, priority: int = 100
) -> None:
    """Lets tf.convert_to_tensor take a type: `conversion_func(value, dtype=None)` gives a tensor.

    Lower priorities come first.
    """
    registered_types.register(base_type, conversion_func, priority)


def operands(op_name: str, *values: Any) -> list:
    """The operands of an operation that takes one dtype: that of the first, whatever it is.

    Raises:
      tf.errors.InvalidArgumentError: an operand has or becomes another dtype.
    """
    return _of_one_dtype(op_name, values, 0)


def listed(op_name: str, values: Any) -> list:
    """The same of an operation that takes a list: its first tensor sets the dtype, which what is no
    tensor must take.

    Raises:
      TypeError: a Python number does not take the dtype.
    """
    leader = next((i for i, value in enumerate(values) if is_tensor(value)), None)
    if leader is None:
        first = convert(list(values)) if _all_python(values) else convert(values[0])
        return [convert(value, dtype=first.dtype) for value in values]
    dtype = values[leader].dtype
    return _of_one_dtype(
        op_name, [v if is_tensor(v) else wrap(convert(v, dtype=dtype)) for v in values], leader
    )


def _all_python(values: Any) -> bool:
    return all(isinstance(value, (bool, int, float, complex)) for value in values)


def _of_one_dtype(op_name: str, values: Any, leader: int) -> list:
    first = convert(values[leader])
    arrays = [
        first if i == leader else convert(value, hint=first.dtype) for i, value in enumerate(values)
    ]
    for i, array in enumerate(arrays):
        if array.dtype != first.dtype:
            leading, other = dtypes.dtype_of(first).name, dtypes.dtype_of(array).name
            raise invalid_argument(
                f"cannot compute {op_name} as input #{i}(zero-based) was expected to be a"
                f" {leading} tensor but is a {other} tensor [Op:{op_name}]"
            )
    return arrays


def require(op_name: str, array: Any, allowed: Iterable[str]) -> Any:
    """The array, if its dtype is one that the operation takes."""
    name = dtypes.dtype_of(array).name
    if name not in allowed:
        raise invalid_argument(
            f"Value for attr 'T' of {name} is not in the list of allowed values:"
            f" {', '.join(allowed)} [Op:{op_name}]"
        )
    return array


def traced(value: Any) -> bool:
    """Whether JAX is tracing a value, so that only its shape and dtype are known."""
    return bool(JAX_MODE) and isinstance(value, jax.core.Tracer)


def static_value(value: Any, what: str) -> np.ndarray:
    """A value that must be known while tracing (a shape, an axis) as a NumPy array.

    Raises:
      ValueError: it is being traced by JAX.
    """
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__()
    if any(map(traced, _leaves(value))):
        raise UnknownValueError(
            f"{what} must be known when jax.jit traces the function, and depends on its"
            " arguments. Compute it from shapes, or pass it as a static argument"
            " (jax.jit(..., static_argnums=...))."
        )
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, (list, tuple)):
        return np.array([int(item) for item in value], np.int64)
    return np.asarray(value).view(np.ndarray)


def static_shape(value: Any) -> tuple:
    """A shape argument as a tuple of ints."""
    found = static_value(value, "A shape")
    return tuple(int(dim) for dim in np.atleast_1d(found))
