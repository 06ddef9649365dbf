"""Dtypes of tensors: by name, of each JAX dtype, and as JAX gives one to a value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import jax
import ml_dtypes
import numpy as np

from jax2tf._src.api.errors import UnsupportedDtypeError
from jax2tf._src.util.lazy_imports import classes, tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Aval, Dim

if TYPE_CHECKING:

    class _Number:  # Python 3.12 has an int.is_integer that is a method.
        def __new__(cls, number: int) -> Self: ...
else:
    _Number = int


class DType(_Number):
    """A dtype of tensors; its number is the one in TensorFlow's types.proto and in saved graphs.

    TensorFlow's functions take the number where they take a dtype, and TensorFlow's dtype of this
    name is equal to it and has the same hash. Sets, dicts and comparisons may therefore hold both.
    Compare by `==`, not by `is`. NumPy's functions take it as dtype too.

    Attributes:
      name: "float32".
      dtype: the NumPy dtype.
      size: the bytes of an element.
    """

    name: str
    dtype: np.dtype
    size: int
    is_floating: bool
    is_complex: bool
    is_bool: bool
    is_integer: bool
    is_unsigned: bool

    def __new__(cls, number: int, name: str = "") -> Self:
        # A copied or unpickled dtype gets its attributes afterwards.
        self = super().__new__(cls, number)
        if name:
            self.name = name
            self.dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
            self.size = self.dtype.itemsize
            self.is_floating = jax.dtypes.issubdtype(self.dtype, np.floating)
            self.is_complex = name.startswith("complex")
            self.is_bool = name == "bool"
            self.is_unsigned = name.startswith("uint")
            self.is_integer = name.startswith("int") or self.is_unsigned
        return self

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    @property
    def as_numpy_dtype(self) -> Any:
        """The class of NumPy's scalars of this dtype."""
        return self.dtype.type

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real parts."""
        return _REAL.get(self, self)

    @property
    def min(self) -> Any:
        """The smallest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest finite value."""
        return self._limits().max

    def _limits(self) -> Any:
        return (ml_dtypes.iinfo if self.is_integer else ml_dtypes.finfo)(self.dtype)


float32 = DType(1, "float32")
float64 = DType(2, "float64")
int32 = DType(3, "int32")
uint8 = DType(4, "uint8")
int16 = DType(5, "int16")
int8 = DType(6, "int8")
complex64 = DType(8, "complex64")
int64 = DType(9, "int64")
bool_ = DType(10, "bool")
bfloat16 = DType(14, "bfloat16")
uint16 = DType(17, "uint16")
complex128 = DType(18, "complex128")
float16 = DType(19, "float16")
uint32 = DType(22, "uint32")
uint64 = DType(23, "uint64")
float8_e5m2 = DType(24, "float8_e5m2")
float8_e4m3fn = DType(25, "float8_e4m3fn")
float8_e4m3fnuz = DType(26, "float8_e4m3fnuz")
float8_e4m3b11fnuz = DType(27, "float8_e4m3b11fnuz")
float8_e5m2fnuz = DType(28, "float8_e5m2fnuz")
int4 = DType(29, "int4")
uint4 = DType(30, "uint4")

DTYPES = {dtype.name: dtype for dtype in list(vars().values()) if isinstance(dtype, DType)}
_REAL = {complex64: float32, complex128: float64}


def named(dtype: Any) -> DType:
    """The dtype here with the name of a dtype of NumPy's, of TensorFlow's, or of this module."""
    name = getattr(dtype, "name", None)
    return DTYPES[name if isinstance(name, str) else np.dtype(dtype).name]


_PYTHON_SCALARS = (bool, int, float, complex)

# TensorFlow differentiates only these. For some other dtypes XLA has no PreventGradient.
DIFFERENTIABLE = frozenset({bfloat16, float16, float32, float64, complex64, complex128})

# NumPy's dtypes with the 80 bits that some processors have.
_EXTENDED = (np.longdouble, np.clongdouble) if np.finfo(np.longdouble).bits > 64 else ()


@cached
def to_tf(dtype: np.dtype) -> DType:
    """The dtype of the tensors that stand for arrays of a JAX dtype.

    float0 (the tangent dtype of integers) becomes bool, and typed PRNG keys their uint32 data.

    Raises:
      UnsupportedDtypeError: TensorFlow has no such dtype (float8_e3m4, float8_e8m0fnu, ...), or no
        kernels for it.
    """
    if dtype == jax.dtypes.float0:
        return bool_
    name = (key_data(dtype).dtype if is_key(dtype) else np.dtype(dtype)).name
    if name in DTYPES:
        return DTYPES[name]
    lack = "neither kernels nor an XLA type for" if name in _WITHOUT_KERNELS else "no"
    raise UnsupportedDtypeError(
        f"jax2tf.convert: TensorFlow has {lack} dtype {name}; "
        "cast to one that it has (float8_e4m3fn, bfloat16, int4, ...) inside the function"
    )


# Tensors can have these dtypes, but no op takes them.
_WITHOUT_KERNELS = frozenset({"float4_e2m1fn", "int2", "uint2"})


@cached
def is_key(dtype: np.dtype) -> bool:
    """Whether `dtype` is that of a typed PRNG key, as made by jax.random.key."""
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


@cached
def key_data(dtype: np.dtype) -> jax.ShapeDtypeStruct:
    """Shape and dtype of the raw data of one typed PRNG key of `dtype`."""
    return jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct((), dtype))


def physical_shape(aval: Aval) -> tuple[Dim, ...]:
    """The shape of the tensor for `aval`: the data of a PRNG key adds dimensions."""
    if is_key(aval.dtype):
        return (*aval.shape, *key_data(aval.dtype).shape)
    return tuple(aval.shape)


def tensor_spec(aval: Aval) -> tf.TensorSpec:
    """The spec of the tensor that stands for `aval`; sizes of dimension variables are unknown."""
    shape = [d if isinstance(d, int) else None for d in physical_shape(aval)]
    return tf.TensorSpec(shape, to_tf(aval.dtype))


def dtype_of_val(val: object) -> tf.DType:
    """The TensorFlow dtype that JAX's typing rules give to a value.

    Python scalars and 64-bit values follow jax_enable_x64.

    >>> dtype_of_val(1.0)
    tf.float32

    Args:
      val: a Python scalar, numpy array or scalar, jax.Array, tf.Tensor or tf.Variable.

    Raises:
      TypeError: `val` is none of these, or JAX has no such dtype (tf.string, tf.resource, ...).
    """
    try:
        return tf.as_dtype(to_tf(jax_dtype(val)))
    except (TypeError, OverflowError) as error:
        raise type(error)(f"jax2tf.dtype_of_val: val: {error}") from None


def jax_dtype(val: object) -> np.dtype:
    """The dtype of `val` inside a JAX computation, after canonicalisation."""
    if is_tensor(val):
        return _dtype_of_tensors(
            val.dtype.as_datatype_enum, bool(jax.config.read("jax_enable_x64"))
        )
    if isinstance(val, _PYTHON_SCALARS) and is_python_scalar(val):
        return _python_scalar_dtype(val)
    if isinstance(val, jax.Array) and is_key(val.dtype):
        return val.dtype
    if isinstance(val, np.ma.MaskedArray):
        raise TypeError(
            "JAX has no arrays with a mask, got a numpy.ma.MaskedArray; give x.filled(...), and "
            "x.mask beside it where the function needs it"
        )
    if isinstance(val, np.ndarray | np.generic | jax.Array):
        if val.dtype == jax.dtypes.float0:
            return val.dtype
        of_other_kind = val.dtype.kind in "OSUMm" or val.dtype.names is not None
        # JAX has arrays only in the byte order of the machine.
        if of_other_kind or val.dtype in _EXTENDED or not val.dtype.isnative:
            raise TypeError(f"JAX has no dtype {val.dtype}")
        return jax.dtypes.canonicalize_dtype(val.dtype)
    raise TypeError(
        f"expected a number, numpy array, jax.Array, tf.Tensor or tf.Variable, "
        f"got {type(val).__module__}.{type(val).__qualname__}"
    )


def is_tensor(val: object) -> TypeGuard[tf.Tensor | tf.Variable]:
    """Whether `val` is a tf.Tensor or a tf.Variable."""
    return isinstance(val, classes("Tensor", "Variable"))


@cached
def _dtype_of_tensors(dtype: int, x64: bool) -> np.dtype:
    """The JAX dtype of a TensorFlow dtype; `x64` is the value of jax_enable_x64."""
    return jax.dtypes.canonicalize_dtype(_numpy_dtype(tf.as_dtype(dtype)))


def is_python_scalar(val: object) -> bool:
    """Whether JAX takes `val` as weakly typed: a Python number, not a subclass such as NumPy's."""
    return type(val) in _PYTHON_SCALARS


def _python_scalar_dtype(val: bool | int | float | complex) -> np.dtype:
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(type(val)))
    if type(val) is int and not np.iinfo(dtype).min <= val <= np.iinfo(dtype).max:
        raise OverflowError(
            f"Python int {val} does not fit {dtype.name}"
            + ("; enable jax_enable_x64 or pass a numpy array" if math.log2(abs(val)) < 63 else "")
        )
    return dtype


def is_of_jax(dtype: tf.DType | DType | np.dtype) -> bool:
    """Whether JAX and TensorFlow have this dtype in common."""
    return dtype.name in DTYPES or dtype.name in _WITHOUT_KERNELS


def _numpy_dtype(dtype: tf.DType) -> np.dtype:
    if not is_of_jax(dtype):
        raise TypeError(f"JAX has no dtype {dtype.name}")
    return np.dtype(dtype.as_numpy_dtype)
