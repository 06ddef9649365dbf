"""Graphs of a SavedModel, evaluated with JAX: modules by their ops, other ops by TensorFlow.

Functions that a graph calls are evaluated where they are called. A tf.cond, tf.switch_case or
tf.while_loop that holds a module, or that reads a variable, becomes control flow of JAX.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import jax.numpy as jnp
from jax import lax

from jax2tf._src import compat
from jax2tf._src.api.errors import LoadError
from jax2tf._src.call_tf.call import call_tf
from jax2tf._src.stablehlo import around, reading
from jax2tf._src.stablehlo.evaluator import Evaluator
from jax2tf._src.stablehlo.evaluator import as_array as of_sizes
from jax2tf._src.stablehlo.function import platform_operands
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import PyTree

_PASS_ON = ("Identity", "IdentityN", "PreventGradient", "EnsureShape", "Snapshot")
_MODULE = "XlaCallModule"
_WRITES = re.compile(r"Assign\w*VariableOp|Resource(?!Gather)\w+")
_KEPT = 512


@dataclasses.dataclass(frozen=True)
class Variable:
    """The handle of a variable, as an op reads it."""

    name: str


class Contents:
    """What is read of a graph once, for all traces: its functions, its modules, its definition."""

    def __init__(self, graph: PyTree, origin: str) -> None:
        self.graph = graph
        self.origin = origin
        self.definition = graph.as_graph_def()
        self._functions = compat.graphs.graphs_of_functions(graph)
        self._called: Lru[Contents] = Lru(_KEPT)
        self._evaluators: Lru[Evaluator] = Lru(_KEPT)

    def called(self, name: str) -> Contents:
        """The contents of a function of the graph."""
        return self._called.value(name, lambda: Contents(self._functions[name], self.origin))

    def evaluator(self, op: PyTree) -> Evaluator:
        """The evaluator of the module of an XlaCallModule op."""
        return self._evaluators.value(op.name, lambda: self._evaluator(op))

    def _evaluator(self, op: PyTree) -> Evaluator:
        origin = f"{self.origin}: the op {op.name}"
        program = reading.program_of_artifact(op.get_attr("module"), origin)
        functions = [self.called(f.name) for f in op.get_attr("function_list")]
        return Evaluator(program, [_as_function(contents) for contents in functions])

    def holds_module(self, op: PyTree) -> bool:
        """Whether a function that an op calls, or one that this calls, has a module."""
        functions = around.called_functions(op.node_def, self.definition.library).values()
        return any(node.op == _MODULE for function in functions for node in function.node_def)

    def writing_op(self) -> str | None:
        """The name of an op that changes a variable, here or in a function; None without one."""
        functions: dict[str, PyTree] = {}
        for node in self.definition.node:
            functions |= around.called_functions(node, self.definition.library)
        nodes = [*self.definition.node, *(n for f in functions.values() for n in f.node_def)]
        return next((f"{n.name} of type {n.op}" for n in nodes if _WRITES.fullmatch(n.op)), None)


def _as_function(contents: Contents) -> Callable[..., list[PyTree]]:
    return lambda *operands: Evaluation(contents, operands, {}).results()


class Evaluation:
    """The values of the tensors of one graph, computed from its outputs back to its inputs.

    A value is an array, a `Variable`, an `around.Deferred`, or None for what is no number.
    """

    def __init__(
        self, contents: Contents, inputs: Sequence[PyTree], params: Mapping[str, PyTree]
    ) -> None:
        self._contents = contents
        self._values = dict(zip(_names(contents.graph.inputs), inputs, strict=True))
        self._params = params

    def results(self) -> list[PyTree]:
        """The arrays of the outputs."""
        return [
            self._array(x, value) for x, value in zip(self._outputs, self.values(), strict=True)
        ]

    def values(self) -> list[PyTree]:
        """The values of the outputs."""
        return [self._value(tensor) for tensor in self._outputs]

    @property
    def _outputs(self) -> Sequence[PyTree]:
        return self._contents.graph.outputs

    def _value(self, tensor: PyTree) -> PyTree:
        """The value of a tensor. It goes down a list, because graphs are deep."""
        pending = [tensor]
        while pending:
            last = pending[-1]
            missing = [x for x in last.op.inputs if x.name not in self._values]
            if last.name in self._values:
                pending.pop()
            elif missing:
                pending += missing
            else:
                results = self._results(last.op, [self._values[x.name] for x in last.op.inputs])
                self._values.update(zip(_names(last.op.outputs), results, strict=True))
        return self._values[tensor.name]

    def _results(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        if op.type in _PASS_ON:
            return operands
        if op.type == "StopGradient":
            return [lax.stop_gradient(self._array(op.inputs[0], operands[0]))]
        if op.type in _READS and isinstance(operands[0], Variable):
            return [_READS[op.type](op, self._params[operands[0].name], *operands[1:])]
        if op.type == _MODULE:
            return self._module(op, operands)
        if op.type in _CALLS:
            return self._called(op.get_attr("f"), operands)
        rule = _CONTROL_FLOW.get(op.type)
        of_variables = any(isinstance(x, Variable) for x in operands)
        if rule is not None and (of_variables or self._contents.holds_module(op)):
            return rule(self, op, operands)
        self._check(op, operands)
        return around.results(op, operands, self._contents.definition)

    def _called(self, function: PyTree, operands: Sequence[PyTree]) -> list[PyTree]:
        contents = self._contents.called(function.name)
        return Evaluation(contents, operands, self._params).values()

    def _module(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        evaluator = self._contents.evaluator(op)
        platforms = [platform.decode().lower() for platform in op.get_attr("platforms")]
        arrays = [jnp.asarray(x) for x in self._arrays(op.inputs, operands)]
        results = evaluator.main("main", [*platform_operands(platforms), *arrays])
        return [of_sizes(x) for x in results]

    def _arrays(self, tensors: Sequence[PyTree], values: Sequence[PyTree]) -> list[PyTree]:
        return [self._array(x, value) for x, value in zip(tensors, values, strict=True)]

    def _array(self, tensor: PyTree, value: PyTree) -> PyTree:
        if value is None or isinstance(value, Variable):
            raise self._no_number(tensor.op)
        return around.as_array(value)

    def _check(self, op: PyTree, operands: Sequence[PyTree]) -> None:
        has_other = any(x.dtype.name in around.NOT_NUMBERS for x in (*op.inputs, *op.outputs))
        if has_other or any(x is None or isinstance(x, Variable) for x in operands):
            raise self._no_number(op)

    def _no_number(self, op: PyTree) -> LoadError:
        return LoadError(
            f"jax2tf.load: {self._contents.origin}: the op {op.name} of type {op.type} computes "
            "with strings, tables or resources, which JAX has not. What to do: save a signature "
            "without it."
        )

    def _if(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        which = jnp.asarray(self._array(op.inputs[0], operands[0])).astype(bool)
        names = ("then_branch", "else_branch")
        branches = [self._branch(op.get_attr(name), operands[1:]) for name in names]
        return lax.cond(which, *branches)

    def _case(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        """TensorFlow takes the last branch for an index that is out of range."""
        index = jnp.asarray(self._array(op.inputs[0], operands[0]))
        branches = [self._branch(f, operands[1:]) for f in op.get_attr("branches")]
        last = len(branches) - 1
        index = jnp.where((index < 0) | (index > last), last, index)
        return lax.switch(index, branches)

    def _branch(self, function: PyTree, operands: Sequence[PyTree]) -> Callable[[], list[PyTree]]:
        contents, params = self._contents.called(function.name), self._params
        return lambda: [jnp.asarray(x) for x in Evaluation(contents, operands, params).results()]

    def _while(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        """What the body returns as it takes it (variables, sizes) is not carried by JAX's loop."""
        condition, body = (self._contents.called(op.get_attr(n).name) for n in ("cond", "body"))
        carried = [i for i in range(len(operands)) if not _returns_argument(body.graph, i)]

        def full(arrays: Sequence[PyTree]) -> list[PyTree]:
            values = list(operands)
            for i, array in zip(carried, arrays, strict=True):
                values[i] = array
            return values

        def holds(arrays: Sequence[PyTree]) -> PyTree:
            (result,) = Evaluation(condition, full(arrays), self._params).results()
            return jnp.asarray(result).astype(bool)

        def step(arrays: Sequence[PyTree]) -> list[PyTree]:
            results = Evaluation(body, full(arrays), self._params)
            return [jnp.asarray(results.output(i)) for i in carried]

        first = [jnp.asarray(self._array(op.inputs[i], operands[i])) for i in carried]
        return full(lax.while_loop(holds, step, first))

    def output(self, index: int) -> PyTree:
        """The array of one output."""
        tensor = self._outputs[index]
        return self._array(tensor, self._value(tensor))


def _returns_argument(graph: PyTree, index: int) -> bool:
    """Whether a graph's result is the argument of the same index."""
    tensor = graph.outputs[index]
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor is graph.inputs[index] or tensor.name == graph.inputs[index].name


def _gather(op: PyTree, variable: PyTree, indices: PyTree) -> PyTree:
    batch_dims = op.get_attr("batch_dims")
    gather = call_tf(lambda x, i: tf.gather(x, i, axis=batch_dims, batch_dims=batch_dims))
    return gather(variable, around.as_array(indices))


def _names(tensors: Sequence[PyTree]) -> list[str]:
    return [tensor.name for tensor in tensors]


_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_READS: Mapping[str, Callable[..., PyTree]] = {
    "ReadVariableOp": lambda op, variable: variable,
    "ResourceGather": _gather,
}
_CONTROL_FLOW: Mapping[str, Callable[..., Sequence[PyTree]]] = {
    "If": Evaluation._if,
    "StatelessIf": Evaluation._if,
    "Case": Evaluation._case,
    "StatelessCase": Evaluation._case,
    "While": Evaluation._while,
    "StatelessWhile": Evaluation._while,
}
