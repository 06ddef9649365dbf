"""tf.print: tensors, and structures of them, in TensorFlow's words."""

from __future__ import annotations

import functools
import math
import pprint
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy import nest
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.tensors import _is_tensor, convert, traced

JAX_MODE = False
if JAX_MODE:
    import jax

_FILE = "file://"
_DEFAULTS = {"output_stream": None, "end": "\n", "sep": " ", "summarize": 3, "name": None}

# A tensor stands in a structure as one character twice, as wide as the braces of TensorFlow.
_FIRST_MARK = 0xF0000
_MARK = re.compile("([\U000f0000-\U000ffffd])\\1")

# The digits that a float is written with, and those if it is another number then.
_DIGITS = {np.dtype(np.float64): (15, 17)}
_DIGITS_OF_OTHERS = (6, 9)


@export("print")
def print_tensors(*inputs: Any, **kwargs: Any) -> None:
    """Prints tensors, strings, and structures that hold tensors.

    Of each dimension of a tensor the first and the last `summarize` elements are written. Under
    jax.jit, and inside loops of JAX, they are printed when XLA has computed them.

    Args:
      inputs: what is printed, with `sep` between two.
      kwargs: `output_stream` is sys.stderr, if it is not given, sys.stdout, or "file://" and a
        path, to which is appended; `end`, a new line; `sep`, a space; `summarize`, 3, or -1 for
        all; `name`.

    Raises:
      ValueError: another keyword, or another stream.
      TypeError: `summarize` is no integer.

    >>> from tf_substrates.numpy import tf
    >>> tf.print("x:", tf.range(8) / 3, output_stream=sys.stdout, summarize=2)
    x: [0 0.33333333333333331 ... 2 2.3333333333333335]
    """
    unknown = {name: value for name, value in kwargs.items() if name not in _DEFAULTS}
    if unknown:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {unknown}")
    options = {**_DEFAULTS, **kwargs}
    summarize = 3 if options["summarize"] is None else options["summarize"]
    if not isinstance(summarize, int | np.integer):
        raise TypeError(f"Expected int for argument 'summarize' not {summarize!r}.")
    write = _writer(options["output_stream"])
    tensors: list[Any] = []
    texts = [_text_of(value, tensors) for value in inputs]

    def show(*arrays: Any) -> None:
        shown = [_of_array(np.asarray(array), int(summarize)) for array in arrays]
        filled = (_MARK.sub(lambda found: shown[_number(found[1])], text) for text in texts)
        write(options["sep"].join(filled) + options["end"])

    if any(map(traced, tensors)):
        jax.debug.callback(show, *tensors)
    else:
        show(*tensors)


def _writer(stream: Any) -> Callable[[str], object]:
    if isinstance(stream, str) and stream.startswith(_FILE):
        return functools.partial(_append, stream[len(_FILE) :])
    if stream is None or stream is sys.stderr:
        return sys.stderr.write
    if stream is sys.stdout:
        return sys.stdout.write
    raise ValueError(
        f"tf.print: output_stream is {stream!r}. What to do: sys.stdout, sys.stderr, or "
        f"'{_FILE}<path>'."
    )


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


class _Mark:
    """Stands for a tensor in what pprint makes of a structure."""

    def __init__(self, number: int):
        self.number = number

    def __repr__(self) -> str:
        return chr(_FIRST_MARK + self.number) * 2


def _number(mark: str) -> int:
    return ord(mark) - _FIRST_MARK


def _text_of(value: Any, tensors: list) -> str:
    """The text of one input, with a mark for each tensor, which is appended to `tensors`."""

    def marked(leaf: Any) -> Any:
        if not (_is_tensor(leaf) or _is_known(leaf)):
            return leaf
        tensors.append(convert(leaf))
        return _Mark(len(tensors) - 1)

    return value if isinstance(value, str) else pprint.pformat(nest.map_structure(marked, value))


def _is_known(leaf: Any) -> bool:
    """Whether a leaf is what stands on JAX for a tensor of integers or bools that is known."""
    return JAX_MODE and isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biu"


def _of_array(array: np.ndarray, summarize: int, depth: int = 1) -> str:
    if not array.shape:
        return _of_element(array[()])
    if not array.size:  # as TensorFlow has it
        return "[]" if not len(array) else "[" + "\n" * (array.ndim - 1) + " ...]"
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    is_whole = summarize < 0 or len(array) <= 2 * summarize
    shown = range(len(array)) if is_whole else (*range(summarize), *range(-summarize, 0))
    parts = [_of_array(np.asarray(array[i]), summarize, depth + 1) for i in shown]
    if not is_whole:
        parts.insert(summarize, "...")
    return f"[{between.join(parts)}]"


def _of_element(value: Any) -> str:
    if isinstance(value, bytes | str):
        return f'"{value.decode(errors="replace") if isinstance(value, bytes) else value}"'
    kind = value.dtype.kind
    if kind == "b":
        return str(int(value))
    if kind in "iu":
        return str(value)
    return "?" if kind == "c" else _of_float(value)


def _of_float(value: Any) -> str:
    """As few digits as a float of the dtype has for certain, or as many as tell it apart."""
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    few, many = _DIGITS.get(value.dtype, _DIGITS_OF_OTHERS)
    text = f"{number:.{few}g}"
    wide = np.float64 if value.dtype == np.float64 else np.float32
    return text if wide(text) == wide(number) else f"{number:.{many}g}"
