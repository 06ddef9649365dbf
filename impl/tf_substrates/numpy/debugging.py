"""tf.debugging: assertions about values and shapes.

On JAX a value that is being traced is not known: its assertion passes, as a compiled TensorFlow
function (XLA) drops it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export, named
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import convert, has_dtype, operands, static_value, traced, wrap


class _Dropped:
    """How many assertions about traced values have passed unseen."""

    count = 0


DROPPED = _Dropped()


def _is_unknown(value: Any) -> bool:
    """Whether JAX traces a value that an assertion is about, which is then dropped."""
    if not traced(value):
        return False
    DROPPED.count += 1
    return True


def _message(message: Any, default: str) -> str:
    return default if not message else f"{message}\n{default}"


def _compare(kind: str, holds: Callable, sign: str) -> None:
    def call(x: Any, y: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        _check_pair(holds, sign, x, y, message)

    def none_equal(
        x: Any, y: Any, summarize: Any = None, message: Any = None, name: Any = None
    ) -> None:
        _check_pair(holds, sign, x, y, message)

    function = none_equal if kind == "none_equal" else call
    named(
        function,
        f"assert_{kind}",
        f"Asserts `x {sign} y` elementwise; tf.errors.InvalidArgumentError if not.",
    )
    names = [f"debugging.assert_{kind}"]
    if kind in ("equal", "greater", "less"):
        names.append(f"assert_{kind}")
    export(*names)(function)
    if kind not in ("equal", "greater", "less", "none_equal"):
        export(f"compat.v1.assert_{kind}")(_of_version_1(function))


def _of_version_1(function: Callable) -> Callable:
    """The assertion as TensorFlow 1 has it, which takes data to print before the message."""

    def call(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: Any = None,
        message: Any = None,
        name: Any = None,
    ) -> None:
        function(x, y, message=message)

    return named(call, function.__name__, str(function.__doc__))


def _check_pair(holds: Callable, sign: str, x: Any, y: Any, message: Any) -> None:
    a, b = operands("Assert", x, y)
    if _is_unknown(a) or _is_unknown(b):
        return
    a, b = np.asarray(a), np.asarray(b)
    try:
        result = holds(a, b)
    except ValueError:
        raise invalid_argument(
            f"Incompatible shapes: {list(a.shape)} vs. {list(b.shape)}"
        ) from None
    if not np.all(result):
        raise invalid_argument(
            _message(message, f"Condition x {sign} y did not hold.")
            + f"\nx (shape={a.shape} dtype={a.dtype.name}) = {a}\ny (shape={b.shape}"
            f" dtype={b.dtype.name}) = {b}"
        )


_COMPARISONS: tuple[tuple[str, Callable, str], ...] = (
    ("equal", np.equal, "=="),
    ("none_equal", np.not_equal, "!="),
    ("less", np.less, "<"),
    ("less_equal", np.less_equal, "<="),
    ("greater", np.greater, ">"),
    ("greater_equal", np.greater_equal, ">="),
)
for _kind, _holds, _sign in _COMPARISONS:
    _compare(_kind, _holds, _sign)


def _sign_of(kind: str, holds: Callable, sign: str) -> None:
    def call(x: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        array = convert(x)
        if not _is_unknown(array) and not np.all(holds(np.asarray(array))):
            raise invalid_argument(
                _message(message, f"Condition x {sign} 0 did not hold element-wise:")
                + f"\nx (shape={array.shape} dtype={array.dtype.name}) = {array}"
            )

    named(
        call,
        f"assert_{kind}",
        f"Asserts `x {sign} 0` elementwise; tf.errors.InvalidArgumentError if not.",
    )
    export(f"debugging.assert_{kind}")(call)


_SIGNS: tuple[tuple[str, Callable, str], ...] = (
    ("positive", lambda x: x > 0, ">"),
    ("negative", lambda x: x < 0, "<"),
    ("non_negative", lambda x: x >= 0, ">="),
    ("non_positive", lambda x: x <= 0, "<="),
)
for _kind, _holds, _sign in _SIGNS:
    _sign_of(_kind, _holds, _sign)


@export("debugging.Assert", "Assert")
def tf_assert(condition: Any, data: Any, summarize: Any = None, name: Any = None) -> None:
    """Raises tf.errors.InvalidArgumentError with the data if the condition is known not to hold."""
    found = convert(condition)
    if not _is_unknown(found) and not np.all(found):
        shown = "\n".join(str(item) for item in data)
        raise invalid_argument(f"Expected '{condition}' to be true. Summarized data: {shown}")


@export("debugging.assert_near")
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: Any = None,
    summarize: Any = None,
    name: Any = None,
) -> None:
    """Asserts |x - y| <= atol + rtol * |y|, each 10 times the dtype's epsilon if not given."""
    a, b = operands("Assert", x, y)
    if _is_unknown(a) or _is_unknown(b):
        return
    a, b = np.asarray(a), np.asarray(b)
    epsilon = 10 * np.finfo(a.dtype).eps
    bound = (epsilon if atol is None else atol) + (epsilon if rtol is None else rtol) * np.abs(b)
    if not np.all(np.abs(a - b) <= bound):
        raise invalid_argument(
            _message(message, "x and y not equal to tolerance")
            + f"\nx (shape={a.shape} dtype={a.dtype.name}) = {a}\ny = {b}"
        )


@export("debugging.assert_all_finite")
def assert_all_finite(x: Any, message: Any, name: Any = None) -> Any:
    """x, of which every element is finite."""
    return check_numerics(x, message)


@export("debugging.check_numerics")
def check_numerics(tensor: Any, message: Any, name: Any = None) -> Any:
    """The tensor; tf.errors.InvalidArgumentError if an element is known to be NaN or infinite."""
    x = convert(tensor)
    if not _is_unknown(x):
        array = np.asarray(x)
        found = [n for n, bad in (("Inf", np.isinf(array)), ("NaN", np.isnan(array))) if bad.any()]
        if found:
            raise invalid_argument(f"{message} : Tensor had {' and '.join(found)} values")
    return wrap(x)


@export("debugging.assert_integer")
def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    dtype = dtypes.dtype_of(convert(x))
    if not dtype.is_integer:
        raise TypeError(_message(message, f'Expected "x" to be integer type.  Found: {dtype!r}'))


@export("debugging.assert_type")
def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    dtype = dtypes.dtype_of(convert(tensor))
    if dtype != dtypes.as_dtype(tf_type):
        raise TypeError(
            _message(message, f"tensor must be of type {dtypes.as_dtype(tf_type)!r}; got {dtype!r}")
        )


def _rank(x: Any) -> int:
    return len(x.shape) if has_dtype(x) else len(convert(x).shape)


@export("debugging.assert_rank", "assert_rank")
def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    wanted = int(static_value(rank, "rank"))
    if _rank(x) != wanted:
        raise ValueError(
            _message(message, f"Tensor must have rank {wanted}. Received rank {_rank(x)}")
        )


@export("debugging.assert_rank_at_least")
def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    wanted = int(static_value(rank, "rank"))
    if _rank(x) < wanted:
        raise ValueError(
            _message(message, f"Tensor must have rank at least {wanted}. Received rank {_rank(x)}")
        )


@export("debugging.assert_rank_in")
def assert_rank_in(x: Any, ranks: Any, message: Any = None, name: Any = None) -> None:
    wanted = [int(static_value(r, "rank")) for r in ranks]
    if _rank(x) not in wanted:
        raise ValueError(
            _message(message, f"Tensor must have rank in {wanted}. Received rank {_rank(x)}")
        )


@export("debugging.assert_scalar")
def assert_scalar(tensor: Any, message: Any = None, name: Any = None) -> Any:
    x = convert(tensor)
    if x.shape:
        raise ValueError(_message(message, f"Expected scalar shape, saw shape: {x.shape}."))
    return wrap(x)


@export("debugging.assert_shapes")
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Asserts shapes in which letters stand for equal dimensions, and '*' or None for any.

    >>> from tf_substrates.numpy import tf
    >>> tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("N", "D")), (tf.zeros([3]), ("D",))])
    """
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    sizes: dict = {}
    for tensor, symbols in pairs:
        here = list(tensor.shape if has_dtype(tensor) else convert(tensor).shape)
        symbols = (
            list(symbols) if isinstance(symbols, (list, tuple, str, TensorShape)) else [symbols]
        )
        if symbols[:1] in (["..."], [Ellipsis]):
            symbols = ["*"] * (len(here) - len(symbols) + 1) + symbols[1:]
        if symbols[-1:] in (["..."], [Ellipsis]):
            symbols = symbols[:-1] + ["*"] * (len(here) - len(symbols) + 1)
        if len(symbols) != len(here):
            raise ValueError(
                _message(
                    message, f"Tensor must have rank {len(symbols)}. Received rank {len(here)}"
                )
            )
        for i, (symbol, size) in enumerate(zip(symbols, here, strict=True)):
            if symbol in (None, "*", "."):
                continue
            if isinstance(symbol, str) and symbol.isdigit():
                symbol = int(symbol)
            expected = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size)
            if expected != size:
                raise ValueError(
                    _message(
                        message,
                        f"Tensor dimension {i} must have size {expected}. Received size {size},"
                        f" shape {tuple(here)}",
                    )
                )


@export("debugging.assert_same_float_dtype")
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The dtype of tensors and of what else has one, such as operators; float32 if nothing has.

    Raises:
      ValueError: the dtypes differ, or are no floats.
    """
    seen = [
        dtypes.as_dtype(t.dtype) if hasattr(t, "dtype") else dtypes.dtype_of(convert(t))
        for t in tensors or []
        if t is not None
    ]
    expected = dtypes.as_dtype(dtype) if dtype is not None else seen[0] if seen else dtypes.float32
    for found in seen:
        if found != expected:
            raise ValueError(f"Expected tensor of dtype {expected!r}, got {found!r}.")
    if not expected.is_floating:
        raise ValueError(f"Expected floating point type, got {expected!r}.")
    return expected


@export("debugging.is_numeric_tensor")
def is_numeric_tensor(tensor: Any) -> bool:
    return has_dtype(tensor) and dtypes.dtype_of(tensor).is_numeric


@export("debugging.enable_traceback_filtering", "debugging.disable_traceback_filtering")
def no_traceback_filtering() -> None:
    """Tracebacks are not filtered here."""


@export("debugging.is_traceback_filtering_enabled")
def is_traceback_filtering_enabled() -> bool:
    return False
