"""TensorFlow ops around modules, as functions of JAX.

An op that computes sizes (Shape, and integer arithmetic on its result) is not run on its own: XLA
must know them where an op reads them as a shape. It becomes part of the function of that op.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from jax2tf._src.call_tf.call import call_tf
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

# JAX arrays have no such elements.
NOT_NUMBERS = ("string", "variant", "resource")
_SIZES = ("Shape", "ShapeN", "Size", "Rank")
_MOST_ELEMENTS = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """An op with its operands, which are arrays and deferred results.

    Attributes:
      definition: the definition of the op's graph, which has the functions that it calls.
    """

    op: PyTree
    operands: tuple[PyTree, ...]
    definition: PyTree


@dataclasses.dataclass(frozen=True, eq=False)
class Deferred:
    """A result of an op that runs where the result is read."""

    call: Call
    index: int


def results(op: PyTree, operands: Sequence[PyTree], definition: PyTree) -> Sequence[PyTree]:
    """The results of an op: arrays by TensorFlow, deferred ones of an op that computes sizes."""
    call = Call(op, tuple(operands), definition)
    if _computes_sizes(call):
        return [Deferred(call, i) for i in range(len(op.outputs))]
    return _run(call)


def as_array(value: PyTree) -> PyTree:
    """A deferred result as an array; other values as they are."""
    return _run(value.call)[value.index] if isinstance(value, Deferred) else value


def _computes_sizes(call: Call) -> bool:
    op = call.op
    is_integer = all(x.dtype.is_integer or x.dtype.is_bool for x in op.outputs)
    if not is_integer or op.op_def.is_stateful:
        return False
    if op.type == "Const":
        return bool(op.outputs[0].shape.num_elements() <= _MOST_ELEMENTS)
    of_sizes = bool(call.operands) and all(isinstance(x, Deferred) for x in call.operands)
    return op.type in _SIZES or of_sizes


def _run(call: Call) -> Sequence[PyTree]:
    if call.op.type == "Const":
        return [tf.make_ndarray(call.op.get_attr("value"))]
    writer = _Writer()
    node = writer.node(call)
    fetches = [f"{node}:{i}" for i in range(len(call.op.outputs))]
    found = call_tf(writer.function(call.op.type, fetches))(*writer.arrays)
    return found if isinstance(found, (list, tuple)) else [found]


class _Writer:
    """Writes an op, and the deferred ones that it reads, as one graph.

    Attributes:
      arrays: the operands of the graph.
    """

    def __init__(self) -> None:
        self.arrays: list[PyTree] = []
        self._dtypes: list[PyTree] = []
        self._nodes: dict[Call, PyTree] = {}
        self._functions: dict[str, PyTree] = {}

    def node(self, call: Call) -> str:
        """The name of the node of an op."""
        if (known := self._nodes.get(call)) is not None:
            return str(known.name)
        tensors = call.op.inputs
        inputs = [self._input(x, t.dtype) for x, t in zip(call.operands, tensors, strict=True)]
        node = tf.compat.v1.NodeDef()
        node.CopyFrom(call.op.node_def)
        node.name = f"op{len(self._nodes)}"
        node.device = ""
        node.attr.pop("_class", None)  # the op that it is placed beside
        del node.input[:]
        node.input.extend(inputs)
        self._nodes[call] = node
        self._functions.update(called_functions(node, call.definition.library))
        return str(node.name)

    def _input(self, value: PyTree, dtype: PyTree) -> str:
        if isinstance(value, Deferred):
            return f"{self.node(value.call)}:{value.index}"
        self.arrays.append(value)
        self._dtypes.append(dtype)
        return f"operand{len(self.arrays) - 1}"

    def function(self, name: str, fetches: Sequence[str]) -> Callable[..., PyTree]:
        """The graph as a TensorFlow function of its arrays."""
        dtypes = tuple(self._dtypes)
        graph = tf.compat.v1.GraphDef(node=self._nodes.values())
        graph.versions.CopyFrom(next(iter(self._nodes)).definition.versions)
        graph.library.function.extend(self._functions.values())

        def function(*tensors: PyTree) -> PyTree:
            pairs = enumerate(zip(tensors, dtypes, strict=True))
            fed = {f"operand{i}:0": tf.cast(x, dtype) for i, (x, dtype) in pairs}
            return tf.graph_util.import_graph_def(graph, fed, list(fetches), name="")

        function.__name__ = name
        return tf.function(function, autograph=False)  # a tape records calls, not imported ops


def called_functions(node: PyTree, library: PyTree) -> dict[str, PyTree]:
    """The functions of a library that a node calls, and those that these call, by name."""
    by_name = {function.signature.name: function for function in library.function}
    found: dict[str, PyTree] = {}
    pending = [node]
    while pending:
        for value in pending.pop().attr.values():
            for named in (value.func, *value.list.func):
                if named.name in by_name and named.name not in found:
                    found[named.name] = by_name[named.name]
                    pending += by_name[named.name].node_def
    return found
