"""tf.DType and the dtypes: their names, limits and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_substrates.numpy.namespaces import export

ml_dtypes: Any
try:
    import ml_dtypes
except ImportError:  # then there is no bfloat16; JAX brings it
    ml_dtypes = None

JAX_MODE = False
if JAX_MODE:
    import jax


@export("DType", "dtypes.DType")
class DType:
    """A dtype of TensorFlow's. It equals and hashes as the NumPy dtype that it stands for.

    >>> from tf_substrates.numpy import tf
    >>> tf.float32.is_floating, tf.float32 == "float32", tf.as_dtype(float).name
    (True, True, 'float32')
    """

    __slots__ = ("_name", "dtype")

    def __init__(self, name: str, scalar: Any):
        self._name = name
        # NumPy and JAX read this attribute where they are given an object in place of a dtype.
        self.dtype = np.dtype(scalar)

    if JAX_MODE:

        def __call__(self, value: Any) -> Any:
            """A value of the dtype, as the types of JAX give it, which code for JAX alone calls."""
            return jax.numpy.asarray(value, self.dtype)

    @property
    def name(self) -> str:
        return self._name

    @property
    def as_numpy_dtype(self) -> Any:
        return object if self._name == "string" else self.dtype.type

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def real_dtype(self) -> DType:
        return {"complex64": float32, "complex128": float64}.get(self._name, self)

    @property
    def is_floating(self) -> bool:
        return self._name in ("bfloat16", "float16", "float32", "float64")

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.kind == "u"

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def is_numeric(self) -> bool:
        return self.is_floating or self.is_complex or self.is_integer

    @property
    def is_quantized(self) -> bool:
        return False

    @property
    def is_numpy_compatible(self) -> bool:
        return True

    @property
    def size(self) -> int:
        return 0 if self._name == "string" else self.dtype.itemsize

    @property
    def min(self) -> Any:
        return self._limit("min")

    @property
    def max(self) -> Any:
        return self._limit("max")

    def _limit(self, which: str) -> Any:
        if self.is_bool:
            return which == "max"
        if self.is_integer:
            return getattr(np.iinfo(self.dtype), which)
        if self.is_floating:
            finfo = ml_dtypes.finfo if self._name == "bfloat16" else np.finfo
            return getattr(finfo(self.dtype), which)
        raise TypeError(f"Cannot find {which}imum value of {self}.")

    @property
    def limits(self) -> tuple:
        if self.is_floating:
            return (0, 1)
        return (self.min, self.max)

    def is_compatible_with(self, other: Any) -> bool:
        return self == as_dtype(other)

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        if isinstance(other, DType):
            return self._name == other._name
        try:
            return self == as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> tuple:
        return as_dtype, (self._name,)

    def __repr__(self) -> str:
        return f"tf.{self._name}"

    def __str__(self) -> str:
        return f"<dtype: {self._name!r}>"


_SCALARS: dict[str, Any] = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
    "string": np.object_,
}
if ml_dtypes is not None:
    _SCALARS["bfloat16"] = ml_dtypes.bfloat16

_BY_NAME = {name: DType(name, scalar) for name, scalar in _SCALARS.items()}
for _name, _dtype in _BY_NAME.items():
    export(_name, f"dtypes.{_name}")(_dtype)
_BY_NUMPY = {dtype.dtype: dtype for dtype in _BY_NAME.values()}

float16 = _BY_NAME["float16"]
float32 = _BY_NAME["float32"]
float64 = _BY_NAME["float64"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
bool_ = _BY_NAME["bool"]
string = _BY_NAME["string"]

for _name, _of in [("half", "float16"), ("double", "float64")]:
    _BY_NAME[_name] = _BY_NAME[_of]
    export(_name, f"dtypes.{_name}")(_BY_NAME[_of])
_BY_NAME["float"] = float32
_BY_PYTHON = {float: float32, int: int32, bool: bool_, complex: complex128, str: string}


@export("as_dtype", "dtypes.as_dtype")
def as_dtype(type_value: Any) -> DType:
    """The tf.DType of a name, a NumPy or JAX dtype, a Python type or a tf.DType.

    Raises:
      TypeError: it is none of these.
    """
    if isinstance(type_value, DType):
        return type_value
    found = None
    if isinstance(type_value, str):
        found = _BY_NAME.get(type_value)
    elif isinstance(type_value, type) and type_value in _BY_PYTHON:
        found = _BY_PYTHON[type_value]
    if found is None and type_value is not None:
        try:
            found = _BY_NUMPY.get(np.dtype(type_value))
        except TypeError:
            found = None
        if found is None and getattr(type_value, "kind", "") in ("U", "S"):
            found = string
    if found is None:
        raise TypeError(
            f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType."
        )
    return found


def numpy_dtype(dtype: Any) -> np.dtype:
    """The dtype that arrays of it have here: JAX without jax_enable_x64 has no 64 bits."""
    wanted = as_dtype(dtype).dtype
    if JAX_MODE:
        return jax.dtypes.canonicalize_dtype(wanted)
    return wanted


def dtype_of(array: Any) -> DType:
    """The tf.DType of an array."""
    found = _BY_NUMPY.get(array.dtype)
    return as_dtype(array.dtype) if found is None else found
