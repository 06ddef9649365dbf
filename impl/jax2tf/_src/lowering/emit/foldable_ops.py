"""Finds the ops that a converter may fold into one of their operands.

Converters fold more than a table can list: a product with ones, a slice of all elements, the
reverse of an axis of one element, a Cast there and back. Every op is therefore assumed foldable
unless a table says that it computes. In doubt, a tensor "may be" an operand and does not "surely"
read that operand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src import ops
from jax2tf._src.util.tensors import Operation, Tensor

# The result of these ops never equals an operand.
_COMPUTES = frozenset(
    {
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BatchMatMulV2", "Betainc"),
        *("Conv2D", "Conv2DBackpropInput", "Cos", "Cosh", "DepthwiseConv2dNative", "Digamma"),
        *("Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "FloorMod", "Gelu", "Igamma", "Igammac"),
        *(
            "LeakyRelu",
            "Lgamma",
            "Log",
            "Log1p",
            "LogSoftmax",
            "MatMul",
            "Mod",
            "Ndtri",
            "Polygamma",
        ),
        *("Relu", "Relu6", "Rsqrt", "Sigmoid", "Sin", "Sinh", "Softmax", "Softplus", "Sqrt"),
        *("Square", "SquaredDifference", "Tan", "Tanh", "Zeta"),
    }
)

Number = Callable[[np.dtype], object]


def _of(number: float) -> Number:
    return lambda dtype: number


def _least(dtype: np.dtype) -> object:
    return -np.inf if np.issubdtype(dtype, np.inexact) else np.iinfo(dtype).min


def _largest(dtype: np.dtype) -> object:
    return np.inf if np.issubdtype(dtype, np.inexact) else np.iinfo(dtype).max


# If one operand is this number, the result may be the other operand. For a difference or a quotient
# both operands count: converters fold 0 - (0 - x).
_NEUTRAL: Mapping[str, Number] = {
    **dict.fromkeys(("Add", "AddV2", "BitwiseOr", "BitwiseXor", "LeftShift"), _of(0)),
    **dict.fromkeys(("LogicalOr", "RightShift", "Sub"), _of(0)),
    **dict.fromkeys(("Div", "FloorDiv", "LogicalAnd", "Mul", "Pow", "RealDiv"), _of(1)),
    **dict.fromkeys(("DivNoNan", "MulNoNan", "TruncateDiv", "Xdivy"), _of(1)),
    "BitwiseAnd": lambda dtype: _largest(dtype) if np.issubdtype(dtype, np.unsignedinteger) else -1,
    "Maximum": _least,
    "Minimum": _largest,
}
# Applied to the same tensor twice, these ops return that tensor.
_IDEMPOTENT = frozenset(
    {"BitwiseAnd", "BitwiseOr", "LogicalAnd", "LogicalOr", "Maximum", "Minimum"}
)
# If one operand is this number, the op does not read the other operand.
_ABSORBING: Mapping[str, Number] = {
    **dict.fromkeys(("Mul", "MulNoNan", "BitwiseAnd", "LogicalAnd", "Pow"), _of(0)),
    "BitwiseOr": lambda dtype: _largest(dtype) if np.issubdtype(dtype, np.unsignedinteger) else -1,
    "LogicalOr": _of(1),
    "Maximum": _largest,
    "Minimum": _least,
}
# Applied to the same tensor twice, these ops return a constant.
_CANCEL = frozenset({"BitwiseXor", "Div", "RealDiv", "Sub"})
# These ops write the operand with this index into their first operand.
_OVERWRITES: Mapping[str, int] = {
    "TensorScatterUpdate": 2,
    "XlaDynamicUpdateSlice": 1,
}
# These ops read only the shape of their operand.
_OF_SHAPES = frozenset({"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"})


# These ops call a function, which decides about their operands.
_CALLS = frozenset(
    {
        *("Case", "If", "PartitionedCall", "StatefulPartitionedCall", "StatelessCase"),
        *("StatelessIf", "StatelessWhile", "While"),
    }
)

Numbers = frozenset[int]
_NONE: Numbers = frozenset()


class Folds:
    """Which operands the tensors of a graph may equal, or surely read, whatever a converter folds.

    Operands are given by index. A tensor that is not listed reads no operand.
    """

    def __init__(
        self, operations: Iterable[Operation], operands: Sequence[Tensor], known: Numbers = _NONE
    ):
        """Looks at each op once.

        Args:
          operations: the ops of the graph, each after the ops whose results it takes.
          operands: the tensors to track.
          known: the operands that a converter may know, because no step of a loop changes them. It
            may also know all other inputs of the graph.
        """
        self._kinds: dict[Hashable, int] = {}
        self._kind_of: dict[Hashable, int] = {}
        self._may_be = {x.ref(): frozenset({i}) for i, x in enumerate(operands)}
        self._reads = {x.ref(): frozenset({i} - known) for i, x in enumerate(operands)}
        for op in operations:
            for result in op.outputs:
                self._count(op, result)
                if result.ref() not in self._may_be:
                    self._look_at(op, result)

    def may_be(self, x: Tensor) -> Numbers:
        """The operands that a converter may substitute for the tensor."""
        return self._may_be.get(x.ref(), _NONE)

    def reads(self, x: Tensor) -> Numbers:
        """The operands that the tensor surely reads, whatever a converter folds."""
        return self._reads.get(x.ref(), _NONE)

    def _count(self, op: Operation, result: Tensor) -> None:
        """Assigns a number to a tensor; tensors that may be equal get the same number."""
        # A converter merges ops that compute the same from the same tensors.
        inputs = tuple(self._kind_of.get(x.ref()) for x in op.inputs)
        made_by = op.type if inputs or op.type == "Const" else op.name
        kind = (made_by, result.value_index, inputs)
        self._kind_of[result.ref()] = self._kinds.setdefault(kind, len(self._kinds))

    def _may_be_same(self, x: Tensor, y: Tensor) -> bool:
        return self._kind_of.get(x.ref()) == self._kind_of.get(y.ref())

    def _look_at(self, op: Operation, result: Tensor) -> None:
        passed_on = _NONE.union(*map(self.may_be, self._passed_on(op, result)))
        if passed_on:
            self._may_be[result.ref()] = passed_on
        read = self._surely_read(op, result)
        if read:
            self._reads[result.ref()] = read

    def _passed_on(self, op: Operation, result: Tensor) -> Iterator[Tensor]:
        """Yields the operands of an op that its result may equal."""
        if op.type in _COMPUTES:
            return
        for i, operand in enumerate(op.inputs):
            if operand.dtype != result.dtype and op.type not in ("Bitcast", "Cast"):
                continue
            if op.type not in _NEUTRAL or self._may_be_neutral(op.type, op.inputs[1 - i]):
                yield operand

    def _may_be_neutral(self, op: str, x: Tensor) -> bool:
        if op in _IDEMPOTENT and self.may_be(x):
            return True
        return not self.reads(x) and _may_be_number(x, _NEUTRAL[op])

    def _surely_read(self, op: Operation, result: Tensor) -> Numbers:
        """The operands that an op reads even after a converter folded all that it can."""
        inputs: list[Tensor] = list(op.inputs)
        is_empty = result.shape.rank is not None and 0 in result.shape.as_list()
        if is_empty or op.type in _OF_SHAPES or op.type in _CALLS:
            return _NONE
        if op.type in _CANCEL and self._may_be_same(*inputs):
            return _NONE
        if op.type == "SelectV2" and not self.reads(inputs[0]):
            return self._read_by_choice(*inputs)
        if op.type in _ABSORBING:
            inputs = [x for i, x in enumerate(inputs) if not self._absorbs(op.type, inputs[1 - i])]
        elif op.type in _OVERWRITES and not _is_smaller(inputs[_OVERWRITES[op.type]], result):
            del inputs[0]
        return _NONE.union(*map(self.reads, inputs))

    def _read_by_choice(self, condition: Tensor, x: Tensor, y: Tensor) -> Numbers:
        """The operands that a SelectV2 reads whose condition a converter may know."""
        value = ops.get_static_value(condition)
        if value is None:
            return self.reads(x) & self.reads(y)
        is_read = np.any(value), not np.all(value)
        return _NONE.union(
            *(self.reads(side) for side, is_ in zip((x, y), is_read, strict=True) if is_)
        )

    def _absorbs(self, op: str, x: Tensor) -> bool:
        return not self.reads(x) and _may_be_number(x, _ABSORBING[op])


def _may_be_number(x: Tensor, number: Number) -> bool:
    """Whether all elements of a tensor may be `number`: not if the tensor is another constant."""
    value = ops.get_static_value(x)
    return value is None or bool(np.all(value == number(np.asarray(value).dtype)))


def _is_smaller(x: Tensor, than: Tensor) -> bool:
    """Whether an array is known to have fewer elements than another."""
    sizes = [y.shape.num_elements() for y in (x, than)]
    return None not in sizes and sizes[0] < sizes[1]
