"""The operands, attributes and results of each op, as TensorFlow defines them.

The file beside this module holds them, so that a graph can be made without TensorFlow. A test
compares it with TensorFlow.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

FILE = pathlib.Path(__file__).with_name("signatures.json")


@dataclass(frozen=True)
class Argument:
    """An operand or a result of an op, or a list of them.

    Attributes:
      name: its name.
      dtype: the dtype, if it is always the same.
      attribute: the attribute that holds the dtype, or a dtype for each tensor of a list; else "".
      count: the attribute with the number of tensors in a list of one dtype; else "".
      is_list: whether it is a list of tensors.
    """

    name: str
    dtype: np.dtype | None
    attribute: str
    count: str
    is_list: bool


@dataclass(frozen=True)
class Attribute:
    """An attribute of an op.

    Attributes:
      kind: "int", "type", "list(shape)", ...
      has_default: whether it can be left out.
      default: its value if it is left out, as `graph.Node` holds it.
      allowed: the dtypes or words that it can be; None for any.
    """

    kind: str
    has_default: bool
    default: PyTree
    allowed: frozenset[PyTree] | None


@dataclass(frozen=True)
class Signature:
    """What an op takes and gives; all in TensorFlow's order."""

    op: str
    operands: Sequence[Argument]
    attributes: Mapping[str, Attribute]
    results: Sequence[Argument]

    @property
    def of_operands(self) -> frozenset[str]:
        """The attributes that the operands determine."""
        return frozenset(name for x in self.operands for name in (x.attribute, x.count) if name)


@cached
def signature_of(op: str) -> Signature:
    """The signature of an op.

    Raises:
      NotImplementedError: no signature is known.
    """
    entry = _entries().get(op)
    if entry is None:
        raise NotImplementedError(f"jax2tf: graphs without TensorFlow lack the op {op}")
    attributes = {name: _attribute(value) for name, value in entry["attributes"].items()}
    operands, results = (
        [_argument(name, kind, attributes) for name, kind in entry[part].items()]
        for part in ("operands", "results")
    )
    return Signature(op, operands, attributes, results)


def known_ops() -> Sequence[str]:
    """The ops that have signatures."""
    return sorted(_entries())


def entry(op: str) -> Mapping[str, PyTree]:
    """The entry of an op in the file."""
    return json.loads(json.dumps(_entries()[op]))


@cached
def _entries() -> Mapping[str, PyTree]:
    return json.loads(FILE.read_text(encoding="utf-8"))


@cached
def dtype_of(name: str) -> np.dtype | None:
    """The dtype of a name of TensorFlow's; None for what is no array.

    Strings are objects, as in TensorFlow's NumPy.
    """
    if name in ("resource", "variant"):
        return None
    if name == "string" or name.startswith("q"):
        return np.dtype(object)
    if name in _OTHER_NAMES:
        return np.dtype(_OTHER_NAMES[name])
    return np.dtype(getattr(ml_dtypes, name, None) or name)


_OTHER_NAMES = {"half": "float16", "float": "float32", "double": "float64"}


def _argument(name: str, kind: str, attributes: Mapping[str, Attribute]) -> Argument:
    count, _, dtype = kind.rpartition("*")
    attribute = dtype if dtype in attributes else ""
    fixed = None if attribute else dtype_of(dtype)
    return Argument(name, fixed, attribute, count, "*" in kind)


def _attribute(entry: Mapping[str, PyTree]) -> Attribute:
    kind = entry["kind"]
    read = dtype_of if kind in ("type", "list(type)") else lambda x: x
    default = entry.get("default")
    if kind == "list(type)" and default is not None:
        default = list(map(dtype_of, default))
    elif kind == "shape" and default is not None:
        default = tuple(default)
    elif default is not None:
        default = read(default)
    allowed = entry.get("allowed")
    return Attribute(
        kind,
        "default" in entry,
        default,
        None if allowed is None else frozenset(map(read, allowed)),
    )
