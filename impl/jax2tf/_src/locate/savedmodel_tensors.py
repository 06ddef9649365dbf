"""The tensors inside a SavedModel: a copy of its graph, with calls inlined, returns them all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from jax2tf._src import compat
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# The last two are there, or not, by the gradients that a SavedModel has.
_IDENTITIES = ("Identity", "IdentityN", "ReadVariableOp", "PreventGradient", "StopGradient")
_OUTSIDE = ("Placeholder", "NoOp", "Const", *_IDENTITIES)
_DEFAULT = "serving_default"
_NAMED = re.compile(r"jax2tf\.convert_\w+")
# What differs from one time that a program is saved to the next.
_ANY = ("_output_shapes", "_gradient_op_type", "_collective_manager_ids", "config", "config_proto")


def inputs(path: Path) -> dict[str, Taken]:
    """The inputs of the signature by name."""
    function, _owner = _signature(path)
    _, specs = function.structured_input_signature
    return {
        name: Taken(np.dtype(spec.dtype.as_numpy_dtype), tuple(spec.shape))
        for name, spec in specs.items()
    }


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """None: a SavedModel has all bits."""
    return {}


def tensors(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of all ops, in their order; those of loops and branches are one op each."""
    function, _owner = _signature(path)
    names: list[str] = []

    def all_results(**given: tf.Tensor) -> list[tf.Tensor]:
        found = [
            (f"{name}:{i}" if i else name, tensor)
            for name, op, results in _inlined(function, given)
            if op.type not in _OUTSIDE
            for i, tensor in enumerate(results)
            if tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
        ]
        names.extend(name for name, _ in found)
        return [tensor for _, tensor in found]

    given = {name: tf.constant(array) for name, array in feeds.items()}
    # Results that are returned are not merged away by TensorFlow's optimiser.
    results = tf.function(all_results, autograph=False)(**given)
    return {name: result.numpy() for name, result in zip(names, results, strict=True)}


def _signature(path: Path) -> tuple[PyTree, PyTree]:
    """The signature that is served by default, or the first one; and what its variables live in."""
    restored = tf.saved_model.load(str(path))
    signatures = restored.signatures
    name = _DEFAULT if _DEFAULT in signatures else next(iter(signatures))
    return signatures[name], restored


def _inlined(
    function: PyTree, given: Mapping[str, tf.Tensor]
) -> Iterator[tuple[str, tf.Operation, Sequence[tf.Tensor]]]:
    """Makes the ops of a function in the current graph; each has a name, itself, and results."""
    graph = function.graph
    captured = zip(graph.internal_captures, function.captured_inputs, strict=True)
    values = {Identity(inner): outer for inner, outer in captured}
    for tensor in graph.inputs:
        name = tensor.op.name
        if Identity(tensor) not in values:
            values[Identity(tensor)] = given[name] if name in given else _only(given)
    yield from _made(graph, values, "", compat.graphs.graphs_of_functions(graph))


def _only(given: Mapping[str, tf.Tensor]) -> tf.Tensor:
    (tensor,) = given.values()
    return tensor


def _made(
    graph: tf.Graph,
    values: dict[Identity, tf.Tensor],
    scope: str,
    functions: Mapping[str, tf.Graph],
) -> Iterator[tuple[str, tf.Operation, Sequence[tf.Tensor]]]:
    for op in graph.get_operations():
        if all(Identity(tensor) in values for tensor in op.outputs):
            continue
        operands = [values[Identity(tensor)] for tensor in op.inputs]
        name = f"{scope}{op.name}"
        if op.type in _CALLS:
            inner = functions[op.get_attr("f").name]
            known = {Identity(t): x for t, x in zip(inner.inputs, operands, strict=True)}
            yield from _made(inner, known, f"{name}/", functions)
            results = [known[Identity(tensor)] for tensor in inner.outputs]
        else:
            results = list(_copied(op, operands))
            yield name, op, results
        values.update((Identity(t), x) for t, x in zip(op.outputs, results, strict=True))


def _copied(op: tf.Operation, operands: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    made = tf.compat.v1.get_default_graph().create_op(
        op.type,
        list(operands),
        dtypes=[tensor.dtype for tensor in op.outputs],
        attrs=dict(op.node_def.attr),
    )
    results: Sequence[tf.Tensor] = made.outputs
    return results


@dataclasses.dataclass(frozen=True)
class _Op:
    """An op of a SavedModel, with the names of the ops that it reads and its constants.

    The loops and branches that it is in come from the inside to the outside.
    """

    kind: str
    outer: Sequence[str]
    attributes: Mapping[str, bytes]
    reads: Sequence[str]
    constants: Mapping[str, np.ndarray]


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a SavedModel has otherwise than one that was written anew, in the order of its ops."""
    ours, theirs = _ops(path), _ops(fresh)
    return list(_between(ours, theirs))


def _ops(path: Path) -> dict[str, _Op]:
    function, _owner = _signature(path)
    graph = function.graph
    variables = {Identity(v.handle): v for v in function.variables}
    sources: dict[Identity, str | np.ndarray] = {}
    captured = zip(graph.internal_captures, function.captured_inputs, strict=True)
    for inner, outer in captured:
        variable = variables.get(Identity(outer))
        sources[Identity(inner)] = outer.numpy() if variable is None else variable.numpy()
    sources.update((Identity(x), x.op.name) for x in graph.inputs if Identity(x) not in sources)
    collection = _Collection(compat.graphs.graphs_of_functions(graph), {})
    collection.add(graph, sources, "", ())
    return collection.found


Sources: TypeAlias = dict[Identity, str | np.ndarray]


@dataclasses.dataclass(frozen=True)
class _Collection:
    """The ops of a graph and of all that it calls, by name."""

    functions: Mapping[str, tf.Graph]
    found: dict[str, _Op]

    def add(self, graph: tf.Graph, sources: Sources, scope: str, outer: Sequence[str]) -> None:
        """Adds the ops of a graph; what only names or holds an array has no entry."""
        for op in graph.get_operations():
            if all(Identity(tensor) in sources for tensor in op.outputs):
                continue
            operands = [sources[Identity(tensor)] for tensor in op.inputs]
            results = self._results(op, operands, scope, outer)
            sources.update((Identity(t), x) for t, x in zip(op.outputs, results, strict=True))

    def _results(
        self,
        op: tf.Operation,
        operands: Sequence[str | np.ndarray],
        scope: str,
        outer: Sequence[str],
    ) -> Sequence[str | np.ndarray]:
        """What stands for the results of an op: names, or arrays that are known."""
        # The checks of open dimensions have the function's name.
        name = scope + _NAMED.sub("jax2tf.convert", op.name)
        if op.type in _CALLS:
            inner = self.functions[op.get_attr("f").name]
            known: Sources = {Identity(t): x for t, x in zip(inner.inputs, operands, strict=True)}
            self.add(inner, known, f"{name}/", outer)
            return [known[Identity(tensor)] for tensor in inner.outputs]
        if op.type in _IDENTITIES:
            return operands[: len(op.outputs)]
        if op.type == "Const":
            return [tf.make_ndarray(op.get_attr("value"))]
        attributes = dict(op.node_def.attr)
        for key, value in sorted(attributes.items()):
            for i, function in enumerate([value.func, *value.list.func]):
                if function.name in self.functions:
                    body = self.functions[function.name]
                    arguments: Sources = {
                        Identity(t): f"argument {j}" for j, t in enumerate(body.inputs)
                    }
                    self.add(body, arguments, f"{name}/{key}{i or ''}/", (name, *outer))
        self.found[name] = _Op(
            op.type,
            outer,
            {
                k: v.SerializeToString(deterministic=True)
                for k, v in attributes.items()
                if k not in _ANY and not v.HasField("func") and not v.list.func
            },
            [x for x in operands if isinstance(x, str)],
            {str(i): x for i, x in enumerate(operands) if isinstance(x, np.ndarray)},
        )
        return [f"{name}:{i}" if i else name for i in range(len(op.outputs))]


def _between(ours: Mapping[str, _Op], theirs: Mapping[str, _Op]) -> Iterator[Difference]:
    for name, wanted in theirs.items():
        where, op = f"{wanted.kind} {name!r}", ours.get(name)
        if op is None:
            yield Difference(f"the op {where} is missing", (name, *wanted.outer))
        elif op.kind != wanted.kind:
            yield Difference(f"the op {where} is {op.kind}", (name, *wanted.outer))
        else:
            texts = list(_of_op(op, wanted))
            if texts:
                yield Difference(f"the op {where}: {'; '.join(texts)}", (name, *wanted.outer))


def _of_op(op: _Op, wanted: _Op) -> Iterator[str]:
    for key in sorted({*op.attributes, *wanted.attributes}):
        if op.attributes.get(key) != wanted.attributes.get(key):
            yield f"the attribute {key} differs"
    if op.reads != wanted.reads:
        yield f"reads {', '.join(op.reads)} in place of {', '.join(wanted.reads)}"
    for key in sorted({*op.constants, *wanted.constants}):
        x, y = op.constants.get(key), wanted.constants.get(key)
        if x is None or y is None or x.shape != y.shape or x.tobytes() != y.tobytes():
            yield f"operand {key}, a parameter or constant, differs"
