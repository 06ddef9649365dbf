"""Makes a graph node by node, without TensorFlow.

>>> import numpy as np
>>> from jax2tf._src.graph.text import text_of
>>> with making("main") as maker:
...     x = maker.argument("x", np.float32, ("b", 3))
...     (y,) = make("Softmax", [x])
...     (z,) = make("AddV2", [y, 1.0])
>>> print(text_of(maker.graph([z])))
graph main(x : float32[b, 3])
  Softmax = Softmax(x) : float32[b, 3]
  AddV2/y = Const() {value: 1.0} : float32[]
  AddV2 = AddV2(Softmax, AddV2/y) : float32[b, 3]
  return AddV2

A graph is inlined from the start: loops and branches hold their graphs, as those of
`inlining.inlined` do, and these read tensors of the graphs around them.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src.graph.folding import fold
from jax2tf._src.graph.graph import Graph, Node, Tensor, captured_by, graphs_in
from jax2tf._src.graph.inference import infer_node
from jax2tf._src.graph.inlining import replace
from jax2tf._src.graph.shapes import completed, result_dtypes, typed
from jax2tf._src.graph.shapes.control_flow import joined, shapes_of_branches
from jax2tf._src.graph.shapes.registry import Shape
from jax2tf._src.graph.signatures import Argument, signature_of
from jax2tf._src.util.typing import PyTree

_current: contextvars.ContextVar[Maker | None] = contextvars.ContextVar("maker", default=None)


class Maker:
    """A graph under construction; see `making`.

    Attributes:
      name: the name of the graph.
      folds: whether ops whose results are known become constants.
      nodes: the nodes so far.
      inputs: the arguments so far.
      scope: the name stack of the nodes that are made now, such as "Block/Dense_0".
    """

    def __init__(self, name: str, folds: bool = True, parent: Maker | None = None) -> None:
        self.name = name
        self.folds = folds
        self.nodes: list[Node] = []
        self.inputs: list[Tensor] = []
        self.scope: str = "" if parent is None else parent.scope
        self._names: dict[str, int] = {} if parent is None else parent._names

    def argument(self, name: str, dtype: PyTree, shape: Shape) -> Tensor:
        """A new argument; None for a list of tensors has no dtype."""
        of_numpy = None if dtype is None else np.dtype(dtype)
        tensor = Tensor(self._unique(name), of_numpy, shape, None, len(self.inputs))
        self.inputs.append(tensor)
        return tensor

    def constant(self, value: PyTree, dtype: PyTree = None, name: str = "Const") -> Tensor:
        """A constant, which keeps an array and does not copy it."""
        array = np.asarray(value, dtype)
        attributes = {"value": array, "dtype": array.dtype}
        node = Node("Const", self._in_scope(name), [], attributes, scope=self.scope)
        node.outputs.append(Tensor(f"{node.name}:0", array.dtype, array.shape, node))
        self.nodes.append(node)
        return node.outputs[0]

    def make(
        self,
        op: str,
        operands: Sequence[PyTree],
        attributes: Mapping[str, PyTree] | None = None,
        name: str = "",
    ) -> list[Tensor]:
        """The results of an op; see `make`."""
        name = self._in_scope(name or op)
        tensors = self._operands(op, operands, name)
        complete = completed(op, tensors, attributes or {})
        node = Node(op, name, tensors, complete, scope=self.scope)
        for i, dtype in enumerate(result_dtypes(op, complete)):
            node.outputs.append(Tensor(f"{name}:{i}", dtype, None, node, i))
        infer_node(node)
        if self.folds:
            fold(node)
        self.nodes.append(node)
        return node.outputs

    def graph(self, outputs: Sequence[Tensor]) -> Graph:
        """The finished graph."""
        return Graph(self.name, self.inputs, list(outputs), self.nodes)

    def add(self, op: str, operands: list[Tensor], graphs: Mapping[str, Graph]) -> Node:
        """Adds a loop or a branch without results."""
        node = Node(op, self._in_scope(op), operands, graphs, scope=self.scope)
        node.captured = captured_by(list(graphs.values()))
        self.nodes.append(node)
        return node

    def as_default(self) -> contextlib.AbstractContextManager[Maker]:
        """A context whose ops go into this graph."""
        return _as_current(self)

    def _operands(self, op: str, operands: Sequence[PyTree], name: str) -> list[Tensor]:
        """The operands as tensors. A number has the dtype of an operand of the same attribute."""
        signature = signature_of(op)
        n_more = len(operands) - len(signature.operands)
        arguments: list[Argument] = []
        for argument in signature.operands:
            arguments += [argument] * (n_more + 1 if argument.is_list else 1)
        # `completed` refuses a wrong number of operands.
        if len(arguments) != len(operands):
            return [self._tensor(x, None, name) for x in operands]
        dtypes = {
            argument.attribute: x.dtype
            for argument, x in zip(reversed(arguments), reversed(operands), strict=True)
            if isinstance(x, Tensor)
        }
        defaults = {key: value.default for key, value in signature.attributes.items()}
        return [
            self._tensor(
                x,
                argument.dtype
                or dtypes.get(argument.attribute)
                or defaults.get(argument.attribute),
                f"{name}/{argument.name}",
            )
            for argument, x in zip(arguments, operands, strict=True)
        ]

    def _tensor(self, x: PyTree, dtype: np.dtype | None, name: str) -> Tensor:
        if isinstance(x, Tensor):
            return x
        # The dtypes of arrays are their own.
        is_array = isinstance(x, np.ndarray | np.generic)
        array = np.asarray(x, None if is_array else dtype)
        node = Node("Const", self._unique(name), [], {"value": array, "dtype": array.dtype})
        node.scope = self.scope
        node.outputs.append(Tensor(f"{node.name}:0", array.dtype, array.shape, node))
        self.nodes.append(node)
        return node.outputs[0]

    def _in_scope(self, name: str) -> str:
        return self._unique(f"{self.scope}/{name}" if self.scope else name)

    def _unique(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{number}" if number else name


@contextlib.contextmanager
def making(name: str = "main", *, folds: bool = True) -> Iterator[Maker]:
    """A context whose ops are made in a new graph.

    Args:
      name: the name of the graph.
      folds: whether ops whose results are known become constants.
    """
    with _as_current(Maker(name, folds)) as maker:
        yield maker


@contextlib.contextmanager
def scoped(name: str) -> Iterator[None]:
    """A context whose nodes have another level in their name stack."""
    maker = current()
    with scoped_in(maker, f"{maker.scope}/{name}" if maker.scope else name):
        yield


@contextlib.contextmanager
def scoped_in(maker: Maker, scope: str) -> Iterator[None]:
    """A context whose nodes in this graph have this name stack."""
    before = maker.scope
    maker.scope = scope
    try:
        yield
    finally:
        maker.scope = before


@contextlib.contextmanager
def _as_current(maker: Maker) -> Iterator[Maker]:
    token = _current.set(maker)
    try:
        yield maker
    finally:
        _current.reset(token)


def is_making() -> bool:
    """Whether a graph is under construction."""
    return _current.get() is not None


def current() -> Maker:
    """The graph under construction.

    Raises:
      RuntimeError: there is none.
    """
    maker = _current.get()
    if maker is None:
        raise RuntimeError("jax2tf: ops are made only within `with making():`")
    return maker


def make(
    op: str,
    operands: Sequence[PyTree],
    attributes: Mapping[str, PyTree] | None = None,
    name: str = "",
) -> list[Tensor]:
    """Adds an op to the graph under construction; gives its results.

    Args:
      op: its name, such as "AddV2".
      operands: tensors, arrays or numbers; those of lists too.
      attributes: those that neither follow from the operands nor have their default.
      name: the last part of the node's name; the op if it is empty.

    Raises:
      ValueError: the op does not take these operands or attributes.
      NotImplementedError: the op is not known.
      RuntimeError: no graph is under construction.
    """
    return current().make(op, operands, attributes, name)


def constant(value: PyTree, dtype: PyTree = None) -> Tensor:
    """Adds a constant, which keeps an array and does not copy it."""
    return current().constant(value, dtype)


Body = Callable[..., Sequence[Tensor]]


def branch(predicate: Tensor, then: Body, otherwise: Body) -> list[Tensor]:
    """Adds an If: the results of `then()` where the predicate is true, else of `otherwise()`.

    Raises:
      ValueError: the predicate is no bool scalar, or the results have different dtypes.
    """
    if predicate.dtype != np.bool_ or predicate.shape not in ((), None):
        raise ValueError(f"If: the predicate is {typed(predicate)}, not bool[]")
    if predicate.value is not None:
        return list(then() if predicate.value else otherwise())
    maker = current()
    graphs = [_traced(body, name, []) for name, body in (("then", then), ("otherwise", otherwise))]
    first, second = ([x.dtype for x in graph.outputs] for graph in graphs)
    if first != second:
        raise ValueError(f"If: one branch gives {_listed(graphs[0])}, one {_listed(graphs[1])}")
    node = maker.add("If", [predicate], dict(zip(("then", "otherwise"), graphs, strict=True)))
    return _with_results(node, first, shapes_of_branches(graphs))


def switch(index: Tensor, branches: Sequence[Body]) -> list[Tensor]:
    """The results of the branch with this number, of the last one for an index out of range.

    It is a chain of If.
    """
    first, *others = branches
    if not others:
        return list(first())
    (is_first,) = make("Equal", [index, np.zeros((), index.dtype)])
    # The next branch has the number zero for the rest of the chain.
    ones = np.ones((), index.dtype)
    return branch(is_first, first, lambda: switch(make("Sub", [index, ones])[0], others))


def loop(cond: Callable[..., Tensor], body: Body, operands: Sequence[Tensor]) -> list[Tensor]:
    """Adds a While: what is carried after the last step.

    A size that changes from step to step is unknown within the loop and after it. What a step does
    not change is not carried.

    Args:
      cond: takes the carried tensors; gives a bool scalar.
      body: takes the carried tensors; gives as many of the same dtypes.
      operands: the first carried tensors.

    Raises:
      ValueError: results have another number, other dtypes or ranks than what is carried.
    """
    maker = current()
    shapes: list[Shape] = [x.shape for x in operands]
    while True:
        of_body = _traced(body, "body", operands, shapes)
        _check_step(of_body)
        after = [joined(a, x.shape) for a, x in zip(shapes, of_body.outputs, strict=True)]
        if after == shapes:
            break
        shapes = after
    of_cond = _traced(lambda *carried: [cond(*carried)], "cond", operands, shapes)
    (goes_on,) = of_cond.outputs
    if goes_on.dtype != np.bool_ or goes_on.shape not in ((), None):
        raise ValueError(f"While: the condition gives {typed(goes_on)}, not bool[]")
    changed = [i for i, x in enumerate(of_body.inputs) if of_body.outputs[i] is not x]
    for graph in (of_cond, of_body):
        fixed = {x: operands[i] for i, x in enumerate(graph.inputs) if i not in changed}
        graph.inputs = [graph.inputs[i] for i in changed]
        for i, x in enumerate(graph.inputs):
            x.index = i
        replace(graph, fixed)
    of_body.outputs = [of_body.outputs[i] for i in changed]
    node = maker.add("While", [operands[i] for i in changed], {"cond": of_cond, "body": of_body})
    dtypes = [operands[i].dtype for i in changed]
    results = _with_results(node, dtypes, [shapes[i] for i in changed])
    by_index = dict(zip(changed, results, strict=True))
    return [by_index.get(i, x) for i, x in enumerate(operands)]


def _traced(
    body: Body, name: str, operands: Sequence[Tensor], shapes: Sequence[Shape] = ()
) -> Graph:
    """The graph of a function of arguments like these operands, within the current graph."""
    outer = current()
    inner = Maker(name, outer.folds, outer)
    arguments = [
        inner.argument(f"{name}/{i}", x.dtype, shape)
        for i, (x, shape) in enumerate(zip(operands, shapes, strict=True))
    ]
    with _as_current(inner):
        return inner.graph(body(*arguments))


def _check_step(body: Graph) -> None:
    carried, results = ([x.dtype for x in part] for part in (body.inputs, body.outputs))
    ranks = [
        a.shape is None or b.shape is None or len(a.shape) == len(b.shape)
        for a, b in zip(body.inputs, body.outputs, strict=False)
    ]
    if carried != results or not all(ranks):
        given = ", ".join(map(typed, body.inputs))
        raise ValueError(f"While: a step takes {given} and gives {_listed(body)}")


def _listed(graph: Graph) -> str:
    return ", ".join(map(typed, graph.outputs)) or "nothing"


def _with_results(
    node: Node, dtypes: Sequence[np.dtype | None], shapes: Sequence[Shape]
) -> list[Tensor]:
    for i, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True)):
        node.outputs.append(Tensor(f"{node.name}:{i}", dtype, shape, node, i))
    return node.outputs


def nodes_in(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the graphs within it."""
    for node in graph.nodes:
        yield node
        for inner in graphs_in(node):
            yield from nodes_in(inner)
