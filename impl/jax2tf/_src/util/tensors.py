"""Tensors as rules see them: the questions that the tensors of every graph answer.

TensorFlow's tensors answer them. So no rule imports TensorFlow for a type, and a rule takes the
tensors of any other graph that answers them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from jax2tf._src.util.dtypes import DType

# A number, an array or a tensor, as Python's operators of a tensor take it; a tensor's index.
Operand: TypeAlias = Any

# A graph under construction, whatever makes it: it has `as_default`, and ops/surroundings.py knows
# the rest.
Graph: TypeAlias = Any

# A function of scalars that an op of XLA's takes as an attribute.
Computation: TypeAlias = Any

# The dtype and the shape that a function's argument has.
Spec: TypeAlias = Any

# A variable that stands for a constant.
Variable: TypeAlias = Any


class TensorShape(Protocol):
    """The shape of a tensor, as far as it is known."""

    @property
    def rank(self) -> Any:
        """The number of dimensions; None if it is unknown."""

    def as_list(self) -> list[Any]:
        """The sizes, with None for each unknown one."""

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""

    def num_elements(self) -> Any:
        """The number of elements; None if it is unknown."""

    def __getitem__(self, place: Any) -> Any: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Operation(Protocol):
    """The op that makes a tensor."""

    @property
    def type(self) -> str:
        """The name of its kind: "AddV2"."""

    @property
    def name(self) -> str:
        """Its own name in the graph."""

    @property
    def graph(self) -> Graph:
        """The graph that it is in."""

    @property
    def inputs(self) -> Sequence[Tensor]:
        """Its operands."""

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Its results."""

    @property
    def control_inputs(self) -> Sequence[Operation]:
        """The ops that run before it and whose results it does not take."""

    def get_attr(self, name: str) -> Any:
        """The value of an attribute."""


class Tensor(Protocol):
    """A value of a graph, or an array in eager mode."""

    @property
    def dtype(self) -> DType:
        """The dtype."""

    @property
    def shape(self) -> TensorShape:
        """The shape, as far as it is known."""

    @property
    def op(self) -> Operation:
        """The op that makes it; eager tensors have none and raise an error."""

    @property
    def value_index(self) -> int:
        """Its place among the results of its op."""

    @property
    def graph(self) -> Graph:
        """The graph that it is in; eager tensors have none and raise an error."""

    @property
    def device(self) -> str:
        """The device that holds it."""

    def numpy(self) -> Any:
        """The value; only eager tensors have it."""

    def ref(self) -> Hashable:
        """A key for sets and dicts: tensors compare by element."""

    def set_shape(self, shape: Any) -> None:
        """States sizes that are known otherwise."""

    def __eq__(self, other: Operand) -> Any: ...

    def __ne__(self, other: Operand) -> Any: ...

    def __getitem__(self, index: Operand) -> Tensor: ...

    def __abs__(self) -> Tensor: ...

    def __neg__(self) -> Tensor: ...

    def __invert__(self) -> Tensor: ...

    def __bool__(self) -> bool: ...

    def __int__(self) -> int: ...

    def __add__(self, other: Operand) -> Tensor: ...

    def __radd__(self, other: Operand) -> Tensor: ...

    def __sub__(self, other: Operand) -> Tensor: ...

    def __rsub__(self, other: Operand) -> Tensor: ...

    def __mul__(self, other: Operand) -> Tensor: ...

    def __rmul__(self, other: Operand) -> Tensor: ...

    def __truediv__(self, other: Operand) -> Tensor: ...

    def __rtruediv__(self, other: Operand) -> Tensor: ...

    def __floordiv__(self, other: Operand) -> Tensor: ...

    def __mod__(self, other: Operand) -> Tensor: ...

    def __lt__(self, other: Operand) -> Tensor: ...

    def __le__(self, other: Operand) -> Tensor: ...

    def __gt__(self, other: Operand) -> Tensor: ...

    def __ge__(self, other: Operand) -> Tensor: ...

    def __and__(self, other: Operand) -> Tensor: ...

    def __or__(self, other: Operand) -> Tensor: ...

    def __xor__(self, other: Operand) -> Tensor: ...
