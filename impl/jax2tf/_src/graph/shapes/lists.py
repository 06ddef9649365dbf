"""Lists of tensors, which loops write and read: they are no arrays and have no shape."""

from __future__ import annotations

from jax2tf._src.graph.shapes.registry import Shape, Use, gives


@gives("TensorListFromTensor", "TensorListReserve", "TensorListSetItem")
def _list(use: Use) -> Shape:
    return ()


@gives("TensorListLength")
def _length(use: Use) -> Shape:
    return ()


@gives("TensorListElementShape")
def _element_shape(use: Use) -> Shape:
    return (None,)


@gives("TensorListGetItem")
def _item(use: Use) -> Shape:
    return _element(use, 2)


@gives("TensorListStack")
def _stack(use: Use) -> Shape:
    element, n = _element(use, 1), use.attributes["num_elements"]
    return None if element is None else (None if n == -1 else n, *element)


def _element(use: Use, i: int) -> Shape:
    """The shape that an operand states for the elements; a scalar -1 states nothing."""
    if use.operands[i].shape == ():
        return None
    sizes = use.vector(i)
    return None if sizes is None else tuple(None if size == -1 else size for size in sizes)
