"""The dtypes and shapes of the results of each op.

A module for each family registers functions in one table. They know open sizes by name: a shape
that is computed from the shapes of other tensors is known as far as `known.sizes_of` follows it.
Dtypes are those of the op's signature.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from jax2tf._src.graph.graph import Tensor
from jax2tf._src.graph.shapes import registry
from jax2tf._src.graph.shapes.registry import Shape, UnknownRankError, Use
from jax2tf._src.graph.shapes.registry import shown as shown
from jax2tf._src.graph.shapes.registry import typed as typed
from jax2tf._src.graph.signatures import Argument, Signature, signature_of
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

Type: TypeAlias = tuple[np.dtype | None, Shape]

_FAMILIES = (
    *("arrays", "convolution", "elementwise", "indexing", "linear_algebra"),
    *("lists", "reductions", "slices"),
)


def types_of(op: str, operands: Sequence[Tensor], attributes: Mapping[str, PyTree]) -> list[Type]:
    """The dtype and shape of each result.

    Args:
      op: the name of the op.
      operands: all operands, those of lists too.
      attributes: all attributes, as `completed` gives them.

    Raises:
      ValueError: the op does not take operands of these shapes or values.
      NotImplementedError: no shape function is known.
    """
    infer = _table().get(op)
    if infer is None:
        raise NotImplementedError(f"jax2tf: graphs without TensorFlow lack the shapes of {op}")
    dtypes = result_dtypes(op, attributes)
    use = Use(op, operands, attributes, len(dtypes))
    try:
        shapes = infer(use)
    except UnknownRankError:
        shapes = [None] * len(dtypes)
    listed = shapes if isinstance(shapes, list) else [shapes]
    return list(zip(dtypes, listed, strict=True))


def completed(
    op: str, operands: Sequence[Tensor], attributes: Mapping[str, PyTree]
) -> dict[str, PyTree]:
    """All attributes of an op, in its order: the given, those of the operands, the defaults.

    Raises:
      ValueError: an attribute is missing or unknown, or the dtypes of operands do not fit.
    """
    signature = signature_of(op)
    found = dict(attributes)
    use = Use(op, operands, attributes, 0)
    for argument, tensors in _grouped(signature, operands, use):
        _check(argument, tensors, found, use)
    unknown = found.keys() - signature.attributes.keys()
    if unknown:
        raise use.error(f"there is no attribute {', '.join(sorted(unknown))}")
    for name, attribute in signature.attributes.items():
        if name not in found and not attribute.has_default:
            raise use.error(f"the attribute {name} is missing")
        value = found.setdefault(name, attribute.default)
        values = value if isinstance(value, list) else [value]
        if attribute.allowed is not None and not attribute.allowed.issuperset(values):
            raise use.error(f"the attribute {name} cannot be {value}")
    return {name: found[name] for name in signature.attributes}


def result_dtypes(op: str, attributes: Mapping[str, PyTree]) -> list[np.dtype | None]:
    """The dtype of each result of an op with these attributes, all of them; None for a list."""
    dtypes: list[np.dtype | None] = []
    for result in signature_of(op).results:
        dtype: PyTree = attributes[result.attribute] if result.attribute else result.dtype
        if result.count:
            dtypes += [dtype] * attributes[result.count]
        elif result.is_list:
            dtypes += dtype
        else:
            dtypes.append(dtype)
    return dtypes


@cached
def known_ops() -> Sequence[str]:
    """The ops whose shapes are known."""
    return tuple(sorted(_table()))


@cached
def _table() -> Mapping[str, registry.Infer]:
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    return registry.TABLE


def _grouped(
    signature: Signature, operands: Sequence[Tensor], use: Use
) -> list[tuple[Argument, Sequence[Tensor]]]:
    """The tensors of each operand. No op has two lists."""
    n_lists = sum(argument.is_list for argument in signature.operands)
    n = len(operands) - len(signature.operands) + n_lists
    if n < 0 or (n and not n_lists):
        raise use.error(f"it takes {len(signature.operands)} operands, not {len(operands)}")
    groups, start = [], 0
    for argument in signature.operands:
        end = start + (n if argument.is_list else 1)
        groups.append((argument, operands[start:end]))
        start = end
    return groups


def _check(
    argument: Argument, tensors: Sequence[Tensor], found: dict[str, PyTree], use: Use
) -> None:
    """Adds the attributes that an operand determines."""
    dtypes = [x.dtype for x in tensors]
    if argument.count and found.setdefault(argument.count, len(tensors)) != len(tensors):
        raise use.error(f"the attribute {argument.count} is not {len(tensors)}")
    expected: PyTree
    if argument.is_list and not argument.count:
        expected = found.setdefault(argument.attribute, dtypes)
    elif argument.attribute:
        first = dtypes[:1] or [None]
        expected = [found.setdefault(argument.attribute, first[0])] * len(tensors)
    else:
        expected = [argument.dtype] * len(tensors)
    if list(expected) != dtypes:
        names = ", ".join(map(str, dtypes))
        raise use.error(f"{argument.name} is {names}, not {', '.join(map(str, expected))}")
