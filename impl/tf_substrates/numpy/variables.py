"""tf.Variable: a tensor that is assigned to."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.functional_state import Held, current, held_of
from tf_substrates.numpy import dtypes
from tf_substrates.numpy.arrays.slicing import getitem
from tf_substrates.numpy.errors import StatefulError
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.recording import accessed
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import OPERATORS, Reference, convert, traced, wrap
from tf_substrates.numpy.traced_variables import place_of_trace

JAX_MODE = False
if JAX_MODE:
    import jax


def _operator(name: str) -> Callable:
    def method(self: Any, other: Any) -> Any:
        return OPERATORS[name](self.value(), other)

    return method


def _reflected(name: str) -> Callable:
    def method(self: Any, other: Any) -> Any:
        return OPERATORS[name](wrap(convert(other, dtype=self.dtype)), self.value())

    return method


@export("VariableSynchronization")
class VariableSynchronization(enum.Enum):
    """When the copies of a variable are made equal; there is one copy here."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


@export("VariableAggregation")
class VariableAggregation(enum.Enum):
    """How the copies of a variable are made one; there is one copy here."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


@export("Variable")
class Variable(Held):
    """A tensor that is assigned to.

    On JAX, tf.function, loops and branches take the values of their variables in and out. Where
    jax.jit itself traces the function, tf_substrates.functional does, and without it an assignment
    is refused.

    >>> from tf_substrates.numpy import tf
    >>> v = tf.Variable([1.0, 2.0])
    >>> _ = v.assign_add([1.0, 1.0])
    >>> print(v * 2.0)
    tf.Tensor([4. 6.], shape=(2,), dtype=float32)

    Raises:
      ValueError: there is no initial value, or an assigned one has another shape or dtype.
      StatefulError: JAX traces what is assigned, and tf_substrates.functional does not call the
        function.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Any = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ):
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified.")
        # What it has outside of calls of tf_substrates.functional.
        self.held = _initial(initial_value, dtype)
        self._name = name or "Variable"
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._shape = TensorShape(self.held.shape if shape is None else shape)
        frame = current()
        if frame is not None:
            frame.made(self)

    @property
    def _value(self) -> Any:
        frame = current()
        return held_of(self) if frame is None else frame.value_of(self)

    @property
    def name(self) -> str:
        return f"{self._name}:0"

    @property
    def shape(self) -> Any:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return dtypes.dtype_of(self.held)

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def constraint(self) -> Any:
        return self._constraint

    @property
    def handle(self) -> Variable:
        return self

    def value(self) -> Any:
        value, frame = self._value, current()
        if JAX_MODE:
            accessed(self, value, None if frame is None else frame.owner_of(self))
        return wrap(value)

    def read_value(self) -> Any:
        return self.value()

    def numpy(self) -> Any:
        return np.array(self._value)[()]

    def get_shape(self) -> TensorShape:
        return self._shape

    def ref(self) -> Reference:
        return Reference(self)

    def assign(
        self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        array = convert(value, self.dtype)
        frame = current()
        own = _own(array)
        # In what JAX compiles, a copy of a constant is traced too: it would be assigned when JAX
        # traces, in each branch, and not when the function runs.
        if frame is None and traced(own):
            raise StatefulError(
                f"tf.Variable.assign: {self.name} is assigned in what JAX traces, and a traced"
                " function has no state. What to do: call it by tf_substrates.functional, or"
                " return the value from the function and assign it outside."
            )
        if not self._shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable"
                f" shape {self._shape}, and the assigned value shape {tuple(array.shape)} are"
                " incompatible."
            )
        if frame is None:
            self.held = own
        elif JAX_MODE and frame.place != place_of_trace():
            raise StatefulError(
                f"tf.Variable.assign: {self.name} is assigned in a function that JAX traces for"
                " jax.jit, jax.grad, jax.vmap or a loop of jax.lax, inside of tf.function,"
                " tf_substrates.functional or a loop of tf. What to do: use the loops and the tapes"
                " of tf there, or return the value and assign it outside."
            )
        else:
            frame.assign(self, own)
        return self

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        return self.assign(self._value + convert(delta, self.dtype))

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        return self.assign(self._value - convert(delta, self.dtype))

    def __tf_tensor__(self) -> Any:
        return self.value()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._value, dtype)

    def __getitem__(self, key: Any) -> Any:
        return getitem(self.value(), key)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __repr__(self) -> str:
        value = np.array(self._value)
        shown = value.item() if value.ndim == 0 else repr(value)
        about = f"'{self.name}' shape={self._shape} dtype={self.dtype.name}"
        return f"<tf.Variable {about}, numpy={shown}>"

    # NumPy's arrays and numbers on the left leave the operator to it.
    __array_priority__ = 100

    __add__ = _operator("add")
    __sub__ = _operator("subtract")
    __mul__ = _operator("multiply")
    __truediv__ = _operator("truediv")
    __floordiv__ = _operator("floordiv")
    __mod__ = _operator("floormod")
    __pow__ = _operator("pow")
    __matmul__ = _operator("matmul")
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

    def __neg__(self) -> Any:
        return OPERATORS["negative"](self.value())

    def __abs__(self) -> Any:
        return OPERATORS["abs"](self.value())


def _own(array: Any) -> Any:
    """The array, for itself: the caller may change a NumPy array that it gave."""
    return xp.array(array)


def _initial(value: Any, dtype: Any) -> Any:
    """The first value. What is known while JAX traces is an array that can stay when it has."""
    if not JAX_MODE:
        return _own(convert(value() if callable(value) else value, dtype))
    if callable(value):
        with jax.ensure_compile_time_eval():
            return _own(convert(value(), dtype))
    array = convert(value, dtype)
    if traced(array):
        return _own(array)
    with jax.ensure_compile_time_eval():
        return _own(array)
