"""Tensors of our graphs as rules see them (see util/tensors.py), and single ops of them.

`raw.AddV2(x=x, y=y)` adds an op to the graph under construction, as tf.raw_ops does.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from jax2tf._src.graph import make
from jax2tf._src.graph.graph import Node, Tensor
from jax2tf._src.graph.inference import kept
from jax2tf._src.graph.make import Maker
from jax2tf._src.graph.shapes import typed
from jax2tf._src.graph.signatures import Signature, signature_of
from jax2tf._src.graph.symbol_shapes import SymbolShape
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DTYPES, DType
from jax2tf._src.util.typing import PyTree

# The dtype of a list of tensors; its number is TensorFlow's.
VARIANT = DType(21)
VARIANT.name, VARIANT.size = "variant", 0
VARIANT.is_floating = VARIANT.is_complex = VARIANT.is_bool = False
VARIANT.is_integer = VARIANT.is_unsigned = False


class SymbolOp:
    """The op that makes a tensor; an argument has a Placeholder."""

    control_inputs: Sequence[SymbolOp] = ()

    def __init__(self, node: Node | None, symbol: Symbol) -> None:
        self._node = node
        self._symbol = symbol

    @property
    def type(self) -> str:
        """The name of its kind: "AddV2"."""
        return "Placeholder" if self._node is None else self._node.op

    @property
    def name(self) -> str:
        """Its own name in the graph."""
        return self._symbol.tensor.name if self._node is None else self._node.name

    @property
    def graph(self) -> Maker:
        """The graph that it is in."""
        return self._symbol.graph

    @property
    def inputs(self) -> Sequence[Symbol]:
        """Its operands; behind them, what its graphs read of the graphs around them."""
        inputs = () if self._node is None else (*self._node.inputs, *self._node.captured)
        return [Symbol(x, self._symbol.graph) for x in inputs]

    @property
    def outputs(self) -> Sequence[Symbol]:
        """Its results."""
        if self._node is None:
            return [self._symbol]
        return [Symbol(x, self._symbol.graph) for x in self._node.outputs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolOp) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> Node | Tensor:
        return self._node or self._symbol.tensor

    def get_attr(self, name: str) -> PyTree:
        """The value of an attribute; a dtype is one of util/dtypes."""
        value = {} if self._node is None else self._node.attributes
        found = value[name]
        return DTYPES[found.name] if isinstance(found, np.dtype) else found


class Symbol:
    """A tensor of a graph, as rules see it.

    Attributes:
      tensor: the tensor of the graph.
      graph: the maker of the graph that it was taken from.
    """

    device = ""
    # NumPy leaves operators to the methods below: it would make arrays of objects.
    __array_ufunc__ = None

    def __init__(self, tensor: Tensor, graph: Maker) -> None:
        self.tensor = tensor
        self.graph = graph

    @property
    def dtype(self) -> DType:
        """The dtype."""
        dtype = self.tensor.dtype
        return VARIANT if dtype is None else DTYPES[dtype.name]

    @property
    def shape(self) -> SymbolShape:
        """The shape, as far as it is known."""
        return SymbolShape(self.tensor.shape)

    @property
    def op(self) -> SymbolOp:
        """The op that makes it."""
        return SymbolOp(self.tensor.node, self)

    @property
    def value_index(self) -> int:
        """Its place among the results of its op."""
        return self.tensor.index

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return self.tensor.name

    def numpy(self) -> NoReturn:
        """Tensors of graphs have no values."""
        raise AttributeError("a tensor of a graph has no value")

    def ref(self) -> Hashable:
        """A key for sets and dicts: tensors compare by element."""
        return self.tensor

    def set_shape(self, shape: PyTree) -> None:
        """States sizes that are known otherwise, as numbers or by name."""
        stated = tuple(shape)
        known = self.tensor.shape
        if known is not None and len(known) != len(stated):
            raise ValueError(f"{self!r} cannot have the shape {stated}")
        numbers = tuple(
            b if isinstance(b, int) or a is None else a
            for a, b in zip(known or stated, stated, strict=True)
        )
        self.tensor.shape = kept(numbers, known)

    def __repr__(self) -> str:
        return f"<{self.name} : {typed(self.tensor)}>"

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no value while a graph is made")

    __int__ = __bool__

    def __iter__(self) -> Iterator[Symbol]:
        n = self.shape[0]
        if n is None:
            raise TypeError(f"{self!r} has an unknown number of rows")
        return (self[i] for i in range(n))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: PyTree) -> Symbol:
        return sliced(self, index if isinstance(index, tuple) else (index,))

    def __abs__(self) -> Symbol:
        return raw.Abs(x=self)

    def __neg__(self) -> Symbol:
        return raw.Neg(x=self)

    def __invert__(self) -> Symbol:
        return raw.LogicalNot(x=self) if self.dtype.is_bool else raw.Invert(x=self)


def _operator(op: str, *, swapped: bool = False, of_bools: str = "") -> PyTree:
    """An operator of Python: `of_bools` is its op for bools."""

    def operate(self: Symbol, other: PyTree) -> Symbol:
        y = converted(other, self.dtype)
        a, b = (y, self) if swapped else (self, y)
        return getattr(raw, of_bools if of_bools and self.dtype.is_bool else op)(x=a, y=b)

    return operate


def _division(*, swapped: bool = False) -> PyTree:
    def divide(self: Symbol, other: PyTree) -> Symbol:
        y = converted(other, self.dtype)
        x: Symbol = self
        if self.dtype.is_integer:
            wide = np.dtype(np.float32 if self.dtype.size < 4 else np.float64)
            x, y = (raw.Cast(x=z, DstT=wide) for z in (self, y))
        return raw.RealDiv(x=y, y=x) if swapped else raw.RealDiv(x=x, y=y)

    return divide


def _equality(op: str) -> PyTree:
    """== and !=, which find tensors different that cannot be broadcast."""

    def compare(self: Symbol, other: PyTree) -> Symbol:
        y = converted(other, self.dtype)
        return getattr(raw, op)(x=self, y=y, incompatible_shape_error=False)

    return compare


def _exclusive_or(self: Symbol, other: PyTree) -> Symbol:
    y = converted(other, self.dtype)
    if not self.dtype.is_bool:
        return raw.BitwiseXor(x=self, y=y)
    both = raw.LogicalNot(x=raw.LogicalAnd(x=self, y=y))
    return raw.LogicalAnd(x=raw.LogicalOr(x=self, y=y), y=both)


for _name, _method in {
    "__add__": _operator("AddV2"),
    "__radd__": _operator("AddV2", swapped=True),
    "__sub__": _operator("Sub"),
    "__rsub__": _operator("Sub", swapped=True),
    "__mul__": _operator("Mul"),
    "__rmul__": _operator("Mul", swapped=True),
    "__truediv__": _division(),
    "__rtruediv__": _division(swapped=True),
    "__floordiv__": _operator("FloorDiv"),
    "__rfloordiv__": _operator("FloorDiv", swapped=True),
    "__mod__": _operator("FloorMod"),
    "__rmod__": _operator("FloorMod", swapped=True),
    "__pow__": _operator("Pow"),
    "__rpow__": _operator("Pow", swapped=True),
    "__lt__": _operator("Less"),
    "__le__": _operator("LessEqual"),
    "__gt__": _operator("Greater"),
    "__ge__": _operator("GreaterEqual"),
    "__eq__": _equality("Equal"),
    "__ne__": _equality("NotEqual"),
    "__and__": _operator("BitwiseAnd", of_bools="LogicalAnd"),
    "__or__": _operator("BitwiseOr", of_bools="LogicalOr"),
    "__xor__": _exclusive_or,
}.items():
    setattr(Symbol, _name, _method)


def sliced(x: Symbol, index: Sequence[PyTree]) -> Symbol:
    """`x[index]` of ints, scalars, slices, None and an ellipsis."""
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
    begin: list[PyTree] = []
    end: list[PyTree] = []
    strides: list[PyTree] = []
    for i, part in enumerate(index):
        start, stop, step = 0, 0, 1
        if part is Ellipsis or part is None:
            masks["ellipsis" if part is Ellipsis else "new_axis"] |= 1 << i
        elif isinstance(part, slice):
            masks["begin"] |= (part.start is None) << i
            masks["end"] |= (part.stop is None) << i
            start = 0 if part.start is None else part.start
            stop = 0 if part.stop is None else part.stop
            step = 1 if part.step is None else part.step
        else:
            masks["shrink_axis"] |= 1 << i
            start, stop = part, part + 1
        begin, end, strides = [*begin, start], [*end, stop], [*strides, step]
    return raw.StridedSlice(
        input=x,
        begin=_stacked(begin),
        end=_stacked(end),
        strides=_stacked(strides),
        **{f"{name}_mask": mask for name, mask in masks.items()},
    )


def _stacked(places: Sequence[PyTree]) -> PyTree:
    """A vector of places; a constant is one of int32."""
    if any(isinstance(x, Symbol) for x in places):
        return converted(list(places))
    return np.array(places, np.int32)


def converted(value: PyTree, dtype: DType | None = None) -> Symbol:
    """A tensor of a number, an array, or nested lists of numbers and tensors."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, list | tuple) and any(map(_has_symbols, value)):
        of_value = dtype or _dtype_in(value)
        return raw.Pack(values=[converted(x, of_value) for x in value], axis=0)
    if isinstance(value, SymbolShape):
        value = value.as_list()
    maker = make.current()
    return Symbol(maker.constant(as_array(value, dtype)), maker)


def as_array(value: PyTree, dtype: DType | None = None) -> np.ndarray:
    """An array of numbers; those of Python have 32 bits, as in TensorFlow."""
    array = np.asarray(value, None if dtype is None else dtype.dtype)
    if dtype is not None or isinstance(value, np.ndarray | np.generic):
        return array
    narrow = {"int64": np.int32, "float64": np.float32}.get(array.dtype.name)
    return array if narrow is None else array.astype(narrow)


def _has_symbols(value: PyTree) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_symbols, value))
    return isinstance(value, Symbol)


def _dtype_in(value: PyTree) -> DType | None:
    """The dtype of the first tensor in nested lists."""
    if isinstance(value, Symbol):
        return value.dtype
    found = map(_dtype_in, value) if isinstance(value, list | tuple) else ()
    return next((dtype for dtype in found if dtype is not None), None)


class _RawOps:
    """The function of each op, made on first use."""

    def __getattr__(self, op: str) -> Callable[..., PyTree]:
        if op.startswith("__"):
            raise AttributeError(op)
        signature = signature_of(op)
        names = _renamed(signature)

        def add(**arguments: PyTree) -> PyTree:
            return _made(signature, {names.get(k, k): v for k, v in arguments.items()})

        add.__name__ = add.__qualname__ = op
        setattr(self, op, add)
        return add


def _renamed(signature: Signature) -> Mapping[str, str]:
    """The names of operands and attributes by their names in tf.raw_ops, where these differ."""
    ours = {x.name for x in signature.operands} | signature.attributes.keys()
    return {
        theirs: name
        for theirs, name in (
            ("axis", "reduction_indices"),
            ("axis", "squeeze_dims"),
            ("axis", "split_dim"),
            ("axis", "concat_dim"),
            ("axis", "dim"),
        )
        if name in ours
    }


def _made(signature: Signature, arguments: dict[str, PyTree]) -> PyTree:
    operands: list[PyTree] = []
    for operand in signature.operands:
        value = arguments.pop(operand.name)
        if operand.is_list:
            known = _dtype_in(value)
            operands += [_operand(x, known) for x in value]
        else:
            operands.append(_operand(value, None))
    attributes = {
        name: _attribute(signature.attributes[name].kind, value)
        for name, value in arguments.items()
        if value is not None or signature.attributes[name].kind == "shape"
    }
    maker = make.current()
    results = [Symbol(x, maker) for x in maker.make(signature.op, operands, attributes)]
    if len(signature.results) == 1:
        return results if signature.results[0].is_list else results[0]
    # As in TensorFlow, the results have names.
    return collections.namedtuple(signature.op, [x.name for x in signature.results])(*results)


def _operand(value: PyTree, dtype: DType | None) -> PyTree:
    if isinstance(value, Symbol):
        return value.tensor
    if _has_symbols(value) or isinstance(value, SymbolShape):
        return converted(value).tensor
    # The maker gives the dtype of another operand to a number.
    return np.asarray(value, dtype.dtype) if dtype is not None else value


def _attribute(kind: str, value: PyTree) -> PyTree:
    if kind == "type":
        return dtypes.named(value).dtype
    if kind == "shape":
        return None if value is None else tuple(value)
    if kind.startswith("list("):
        return [_attribute(kind[5:-1], x) for x in value]
    if kind == "string":
        return value.decode() if isinstance(value, bytes) else value
    if kind == "float":
        # TensorFlow stores 32 bits.
        return float(np.float32(value))
    return {"bool": bool, "int": int}[kind](value)


raw = _RawOps()
