"""Lists of tensors, which the steps of a loop write."""

from __future__ import annotations

import jax
import numpy as np

from jax2tf._src.graph.graph import Size
from jax2tf._src.graph.inference import kept
from jax2tf._src.graph.ops.control_flow import get_static_value
from jax2tf._src.graph.shapes.registry import Shape, elements_of
from jax2tf._src.graph.symbols import Symbol, as_array, converted, raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import PyTree


class _Elements:
    """What all states of one list have in common.

    Attributes:
      dtype: the dtype of the elements.
      size: their number.
      shape: their shape, as far as it is stated or that of an element that was written.
    """

    def __init__(self, dtype: dtypes.DType, size: PyTree, shape: Shape) -> None:
        self.dtype = dtype
        self.size = size
        self.shape = shape

    def add(self, shape: Shape) -> None:
        """States the shape of an element."""
        a, b = self.shape, shape
        if a is not None and b is not None and (len(a) != len(b) or _differ(a, b)):
            raise ValueError(f"TensorArray: elements of shape {a} and {b}")
        self.shape = kept(a, b)


def _differ(a: tuple[Size, ...], b: tuple[Size, ...]) -> bool:
    pairs = zip(a, b, strict=True)
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs)


@jax.tree_util.register_pytree_node_class
class TensorArray:
    """A list of tensors of one dtype; to write an element makes another list.

    Args:
      dtype: the dtype of the elements.
      size: the number of elements.
      element_shape: their shape, with None for unknown sizes; None if it is not known.
    """

    def __init__(self, dtype: PyTree, size: PyTree, *, element_shape: PyTree = None) -> None:
        of = dtypes.named(dtype)
        shape = None if element_shape is None else tuple(element_shape)
        self._elements = _Elements(of, size, shape)
        self._list: Symbol = raw.TensorListReserve(
            element_shape=_stated(shape), num_elements=size, element_dtype=of
        )

    def write(self, index: PyTree, value: PyTree) -> TensorArray:
        """The list with an element at a place."""
        item = converted(value, self._elements.dtype)
        self._elements.add(item.tensor.shape)
        return self._with(raw.TensorListSetItem(input_handle=self._list, index=index, item=item))

    def stack(self) -> Symbol:
        """The elements as rows of one tensor."""
        elements = self._elements
        size = elements.size
        number = get_static_value(size) if isinstance(size, Symbol) else size
        stacked: Symbol = raw.TensorListStack(
            input_handle=self._list,
            element_shape=_stated(elements.shape),
            element_dtype=elements.dtype,
            num_elements=-1 if number is None else int(number),
        )
        if elements.shape is not None:
            stacked.set_shape((_size_of(size), *elements.shape))
        return stacked

    def _with(self, changed: Symbol) -> TensorArray:
        other = object.__new__(TensorArray)
        other._elements, other._list = self._elements, changed
        return other

    def tree_flatten(self) -> tuple[PyTree, PyTree]:
        """The tensor of the list; see jax.tree_util."""
        return (self._list,), self._elements

    @classmethod
    def tree_unflatten(cls, elements: PyTree, children: PyTree) -> TensorArray:
        """The list of a tensor; see jax.tree_util."""
        made = object.__new__(cls)
        made._elements, (made._list,) = elements, children
        return made


def _stated(shape: Shape) -> np.ndarray:
    """The shape as an operand, where -1 stands for what is not known."""
    if shape is None:
        return as_array(-1)
    return np.array([size if isinstance(size, int) else -1 for size in shape], np.int32)


def _size_of(x: PyTree) -> Size:
    """A number of elements as a size, with a name if it is open."""
    if not isinstance(x, Symbol):
        return int(x)
    known = elements_of(x.tensor)
    return None if known is None else known.item()
