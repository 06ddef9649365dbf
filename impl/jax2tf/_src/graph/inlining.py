"""Makes one graph of a program: calls are inlined, loops and branches hold their graphs.

In the result nodes are only ops that compute. The other ops are:

    While   attributes `cond` and `body` are graphs whose arguments are the carried tensors, the
            node's operands; what a step does not change is not carried. Pruning adds `used`, the
            positions of the results that are read
    If      attributes `then` and `otherwise` are graphs without arguments; the operand is a bool

An inner graph reads tensors of the graphs around it.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence

import numpy as np

from jax2tf._src.graph.graph import Graph, Node, Program, Tensor, graphs_in
from jax2tf._src.util.typing import PyTree

_PASS_ON = frozenset(
    {
        *("Identity", "IdentityN", "PlaceholderWithDefault", "PreventGradient", "Snapshot"),
        "StopGradient",
    }
)


def inlined(program: Program) -> Graph:
    """The main graph with all that it calls; the program stays as it is."""
    inliner = _Inliner(program.functions)
    main = program.main
    inputs = [Tensor(x.name, x.dtype, x.shape, None, i) for i, x in enumerate(main.inputs)]
    nodes: list[Node] = []
    results = inliner.copy(main, inputs, "", nodes)
    return Graph(main.name, inputs, results, nodes)


class _Inliner:
    def __init__(self, functions: Mapping[str, Graph]) -> None:
        self._functions = functions
        self._names: dict[str, int] = {}

    def copy(
        self,
        graph: Graph,
        arguments: Sequence[Tensor],
        prefix: str,
        nodes: list[Node],
        around: MutableMapping[Tensor, Tensor] | None = None,
    ) -> list[Tensor]:
        """Adds a graph's nodes for these arguments; returns its results.

        Args:
          graph: the graph.
          arguments: the tensors that become its inputs.
          prefix: how the names of its nodes begin.
          nodes: the list to which nodes are added.
          around: the copies of tensors of graphs around it, which it reads.
        """
        own = dict(zip(graph.inputs, arguments, strict=True))
        tensors: MutableMapping[Tensor, Tensor] = own
        if around is not None:
            tensors = collections.ChainMap(own, around)
        for node in graph.nodes:
            operands = [tensors[x] for x in node.inputs]
            if graphs_in(node):
                results: Sequence[Tensor] = self._held(node, operands, prefix, nodes, tensors)
            else:
                results = self._copied(node, operands, prefix, nodes)
            tensors.update(zip(node.outputs, results, strict=True))
        return [tensors[x] for x in graph.outputs]

    def _copied(
        self, node: Node, operands: list[Tensor], prefix: str, nodes: list[Node]
    ) -> Sequence[Tensor]:
        if node.op in _PASS_ON:
            return operands
        special = _SPECIAL.get(node.op)
        if special is not None:
            return special(self, node, operands, prefix, nodes)
        results = [(x.dtype, x.shape) for x in node.outputs]
        return self._add(node.op, prefix + node.name, operands, node.attributes, results, nodes)

    def _held(
        self,
        node: Node,
        operands: list[Tensor],
        prefix: str,
        nodes: list[Node],
        around: MutableMapping[Tensor, Tensor],
    ) -> list[Tensor]:
        """A loop or a branch that holds its graphs already, as `make` makes them."""
        attributes = {
            name: self._part(value, prefix, around) if isinstance(value, Graph) else value
            for name, value in node.attributes.items()
        }
        results = [(x.dtype, x.shape) for x in node.outputs]
        return self._add(node.op, prefix + node.name, operands, attributes, results, nodes)

    def _add(
        self,
        op: str,
        name: str,
        operands: list[Tensor],
        attributes: Mapping[str, PyTree],
        results: Sequence[tuple[np.dtype | None, PyTree]],
        nodes: list[Node],
    ) -> list[Tensor]:
        # The last two parts of a name are the primitive's and the op's.
        scope = "/".join(name.split("/")[:-2])
        node = Node(op, self._unique(name), operands, attributes, scope=scope)
        node.outputs += [
            Tensor(f"{node.name}:{i}", dtype, shape, node, i)
            for i, (dtype, shape) in enumerate(results)
        ]
        nodes.append(node)
        return node.outputs

    def _unique(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{number}" if number else name

    def _call(
        self, node: Node, operands: list[Tensor], prefix: str, nodes: list[Node]
    ) -> Sequence[Tensor]:
        called = self._functions[node.attributes["f"]]
        return self.copy(called, operands, f"{prefix}{node.name}/", nodes)

    def _loop(
        self, node: Node, operands: list[Tensor], prefix: str, nodes: list[Node]
    ) -> Sequence[Tensor]:
        cond, body = (
            self._part(self._functions[node.attributes[part]], prefix) for part in ("cond", "body")
        )
        carried = [i for i, x in enumerate(body.inputs) if body.outputs[i] is not x]
        fixed = {
            inside: operands[i]
            for i in range(len(operands))
            if i not in carried
            for inside in (body.inputs[i], cond.inputs[i])
        }
        for part in (cond, body):
            part.inputs = [part.inputs[i] for i in carried]
            replace(part, fixed)
        body.outputs = [body.outputs[i] for i in carried]
        results = [(node.outputs[i].dtype, node.outputs[i].shape) for i in carried]
        made = self._add(
            "While",
            prefix + node.name,
            [operands[i] for i in carried],
            {"cond": cond, "body": body},
            results,
            nodes,
        )
        by_index = dict(zip(carried, made, strict=True))
        return [by_index.get(i, x) for i, x in enumerate(operands)]

    def _part(
        self, graph: Graph, prefix: str, around: MutableMapping[Tensor, Tensor] | None = None
    ) -> Graph:
        """The condition or the body of a loop, with arguments of its own."""
        inputs = [
            Tensor(self._unique(f"{_plain(graph.name)}/{x.name}"), x.dtype, x.shape, None, i)
            for i, x in enumerate(graph.inputs)
        ]
        nodes: list[Node] = []
        results = self.copy(graph, inputs, prefix, nodes, around)
        return Graph(_plain(graph.name), inputs, results, nodes)

    def _branch(
        self, node: Node, operands: list[Tensor], prefix: str, nodes: list[Node]
    ) -> Sequence[Tensor]:
        condition, *operands = operands
        names = [node.attributes[part] for part in ("then_branch", "else_branch")]
        if condition.dtype != np.bool_:
            condition = self._compared("NotEqual", condition, 0, node, prefix, nodes)
        return self._if(node, condition, self._branches(names, operands, prefix), prefix, nodes)

    def _case(
        self, node: Node, operands: list[Tensor], prefix: str, nodes: list[Node]
    ) -> Sequence[Tensor]:
        """A chain of If. An index out of range takes the last branch, as in TensorFlow."""
        index, *operands = operands
        *branches, last = self._branches(node.attributes["branches"], operands, prefix)
        for number, branch in reversed(list(enumerate(branches))):
            inner: list[Node] = []
            condition = self._compared("Equal", index, number, node, prefix, inner)
            results = self._if(node, condition, [branch, last], prefix, inner)
            last = Graph(branch.name, [], list(results), inner)
        nodes += last.nodes
        return last.outputs

    def _branches(
        self, names: Sequence[str], operands: Sequence[Tensor], prefix: str
    ) -> list[Graph]:
        branches = []
        for name in names:
            nodes: list[Node] = []
            results = self.copy(self._functions[name], operands, prefix, nodes)
            branches.append(Graph(_plain(name), [], results, nodes))
        return branches

    def _if(
        self,
        node: Node,
        condition: Tensor,
        branches: Sequence[Graph],
        prefix: str,
        nodes: list[Node],
    ) -> list[Tensor]:
        then, otherwise = branches
        attributes = {"then": then, "otherwise": otherwise}
        results = [(x.dtype, x.shape) for x in node.outputs]
        return self._add("If", prefix + node.name, [condition], attributes, results, nodes)

    def _compared(
        self, op: str, x: Tensor, number: int, node: Node, prefix: str, nodes: list[Node]
    ) -> Tensor:
        value = np.array(number, x.dtype)
        name = f"{prefix}{node.name}/{op}"
        (constant,) = self._add("Const", f"{name}/y", [], {"value": value}, [(x.dtype, ())], nodes)
        (result,) = self._add(op, name, [x, constant], {}, [(np.dtype(bool), x.shape)], nodes)
        return result


_Special = Callable[[_Inliner, Node, list[Tensor], str, list[Node]], Sequence[Tensor]]

_SPECIAL: Mapping[str, _Special] = {
    "Case": _Inliner._case,
    "If": _Inliner._branch,
    "PartitionedCall": _Inliner._call,
    "StatefulPartitionedCall": _Inliner._call,
    "StatelessCase": _Inliner._case,
    "StatelessIf": _Inliner._branch,
    "StatelessWhile": _Inliner._loop,
    "While": _Inliner._loop,
}


def replace(graph: Graph, others: Mapping[Tensor, Tensor]) -> None:
    """Replaces tensors wherever a graph and its inner graphs read them."""
    for node in graph.nodes:
        node.inputs = [others.get(x, x) for x in node.inputs]
        for inner in graphs_in(node):
            replace(inner, others)
    graph.outputs = [others.get(x, x) for x in graph.outputs]


def _plain(name: str) -> str:
    """The name of a function without the number that TensorFlow counts up in a process."""
    return re.sub(r"_\d+$", "", name)
