"""SavedModels: signatures whose graphs hold XlaCallModule ops.

The modules become JAX functions. TensorFlow ops around them stay TensorFlow ops, inside `call_tf`.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from jax2tf._src import compat
from jax2tf._src.api.errors import LoadError
from jax2tf._src.call_tf.call import call_tf
from jax2tf._src.stablehlo import reading
from jax2tf._src.stablehlo.evaluator import Evaluator, as_array
from jax2tf._src.stablehlo.function import Argument, LoadedFunction, platform_operands
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import PyTree

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_PASS_ON = ("Identity", "IdentityN", "PreventGradient", "EnsureShape", "Snapshot")
_MODULE = "XlaCallModule"
_KEPT = 512
# JAX arrays have no such elements.
_NOT_NUMBERS = ("string", "variant", "resource")


def functions_of(path: pathlib.Path) -> dict[str, LoadedFunction]:
    """The signatures of a SavedModel.

    Raises:
      LoadError: it has no signature, or one takes or returns what is no array of numbers.
    """
    try:
        loaded = tf.saved_model.load(str(path))
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise LoadError(
            f"jax2tf.load: TensorFlow cannot load the SavedModel {path}: {error}"
        ) from error
    if not loaded.signatures:
        raise LoadError(
            f"jax2tf.load: the SavedModel {path} has no signature. What to do: save it with "
            "tf.saved_model.save(module, path, signatures={name: function})."
        )
    names = dict(_named_variables(loaded))
    return {
        str(key): _Signature(key, function, names, str(path)).function()
        for key, function in loaded.signatures.items()
    }


def _named_variables(root: PyTree) -> Iterator[tuple[Identity, str]]:
    """Each variable, with its path of attributes, keys and indices."""
    seen: set[Identity] = set()
    stack: list[tuple[PyTree, str]] = [(root, "")]
    while stack:
        node, path = stack.pop()
        if (key := Identity(node)) in seen:
            continue
        seen.add(key)
        if isinstance(node, tf.Variable):
            yield key, path
            continue
        stack += [(child, f"{path}.{name}" if path else name) for name, child in _children(node)]


def _children(node: PyTree) -> Iterator[tuple[str, PyTree]]:
    if isinstance(node, Mapping):
        yield from ((str(key), child) for key, child in node.items())
    elif isinstance(node, (list, tuple)):
        yield from ((str(i), child) for i, child in enumerate(node))
    elif hasattr(node, "__dict__") and not callable(node):
        public = vars(node).items()
        yield from ((name, child) for name, child in public if not name.startswith("_"))


@dataclasses.dataclass(frozen=True)
class _Variable:
    """The handle of a variable, as an op reads it."""

    name: str


@dataclasses.dataclass(frozen=True)
class _Signature:
    """One signature: a graph, what it captures, and what it takes and returns by name."""

    name: str
    concrete: PyTree
    variable_names: Mapping[Identity, str]
    origin: str

    def function(self) -> LoadedFunction:
        specs = self.concrete.structured_input_signature[1]
        names, results = sorted(specs), sorted(self.concrete.structured_outputs)
        arguments = [self._argument(name, specs[name]) for name in names]
        for name, tensor in zip(results, self.concrete.outputs, strict=True):
            self._check(f"returns {name!r}", tensor)
        params, captures = self._captures()
        contents = _Contents(self.concrete.graph, f"{self.origin}: {self.name}")

        def flat(params: Mapping[str, PyTree], leaves: Sequence[PyTree]) -> Sequence[PyTree]:
            return _Evaluation(contents, (*leaves, *captures), params).results()

        in_tree = tree_util.tree_structure(((), dict.fromkeys(names, 0)))
        out_tree = tree_util.tree_structure(dict.fromkeys(results, 0))
        return LoadedFunction(self.name, flat, arguments, in_tree, out_tree, params)

    def _argument(self, name: str, spec: PyTree) -> Argument:
        self._check(f"takes {name!r}", spec)
        return Argument(f"kwargs[{name!r}]", tuple(spec.shape), np.dtype(spec.dtype.as_numpy_dtype))

    def _check(self, what: str, spec: PyTree) -> None:
        if spec.dtype.name in _NOT_NUMBERS or spec.shape.rank is None:
            raise LoadError(
                f"jax2tf.load: {self.origin}: the signature {self.name!r} {what} of type "
                f"{spec.dtype.name} and shape {spec.shape}, which is no array of JAX. What to do: "
                "save a signature that takes and returns numbers of a known rank, without the "
                "preprocessing around them."
            )

    def _captures(self) -> tuple[dict[str, PyTree], list[PyTree]]:
        """The values of the variables by name, and what stands for each captured tensor."""
        variables = {Identity(variable.handle): variable for variable in self.concrete.variables}
        params: dict[str, PyTree] = {}
        captures: list[PyTree] = []
        for tensor in self.concrete.captured_inputs:
            variable = variables.get(Identity(tensor))
            if variable is not None:
                name = self.variable_names.get(Identity(variable), variable.name.partition(":")[0])
                params[name] = jnp.asarray(variable.numpy())
                captures.append(_Variable(name))
            else:
                captures.append(None if tensor.dtype.name in _NOT_NUMBERS else np.asarray(tensor))
        return params, captures


def _names(tensors: Sequence[PyTree]) -> list[str]:
    return [tensor.name for tensor in tensors]


class _Contents:
    """What is read of a graph once, for all traces: its functions, its modules, its definition."""

    def __init__(self, graph: PyTree, origin: str) -> None:
        self.graph = graph
        self.origin = origin
        self.definition = graph.as_graph_def()
        self.functions = compat.graphs.graphs_of_functions(graph)
        self._called: Lru[_Contents] = Lru(_KEPT)
        self._evaluators: Lru[Evaluator] = Lru(_KEPT)

    def called(self, name: str) -> _Contents:
        """The contents of a function of the graph."""
        return self._called.value(name, lambda: _Contents(self.functions[name], self.origin))

    def evaluator(self, op: PyTree) -> Evaluator:
        """The evaluator of the module of an XlaCallModule op."""
        return self._evaluators.value(op.name, lambda: self._evaluator(op))

    def _evaluator(self, op: PyTree) -> Evaluator:
        origin = f"{self.origin}: the op {op.name}"
        return Evaluator(reading.program_of_artifact(op.get_attr("module"), origin))


class _Evaluation:
    """The values of the tensors of one graph, computed from its outputs back to its inputs."""

    def __init__(
        self, contents: _Contents, inputs: Sequence[PyTree], params: Mapping[str, PyTree]
    ) -> None:
        self._contents = contents
        self._origin = contents.origin
        self._values = dict(zip(_names(contents.graph.inputs), inputs, strict=True))
        self._params = params

    def results(self) -> list[PyTree]:
        """The values of the outputs."""
        return [self.value(tensor) for tensor in self._contents.graph.outputs]

    def value(self, tensor: PyTree) -> PyTree:
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
            return [lax.stop_gradient(operands[0])]
        if op.type == "ReadVariableOp" and isinstance(operands[0], _Variable):
            return [self._params[operands[0].name]]
        if op.type in _CALLS:
            return self._called(op, operands)
        if op.type == _MODULE:
            return self._module(op, operands)
        return self._in_tensorflow(op, operands)

    def _called(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        contents = self._contents.called(op.get_attr("f").name)
        return _Evaluation(contents, operands, self._params).results()

    def _module(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        if op.get_attr("function_list"):
            raise LoadError(
                f"jax2tf.load: {self._origin}: the op {op.name} calls TensorFlow functions from "
                "inside its module. What to do: write the model without call_tf(..., "
                "call_tf_graph=True)."
            )
        evaluator = self._contents.evaluator(op)
        platforms = [platform.decode().lower() for platform in op.get_attr("platforms")]
        before = platform_operands(platforms)
        results = evaluator.main("main", [*before, *map(jnp.asarray, operands)])
        return [as_array(x) for x in results]

    def _in_tensorflow(self, op: PyTree, operands: list[PyTree]) -> Sequence[PyTree]:
        """The results of an op of TensorFlow, by call_tf; of a constant, its value."""
        known = tf.get_static_value(op.outputs[0]) if op.type == "Const" else None
        if known is not None and op.outputs[0].dtype.name not in _NOT_NUMBERS:
            return [np.asarray(known)]
        bad = [x for x in (*op.inputs, *op.outputs) if x.dtype.name in _NOT_NUMBERS]
        if bad or any(x is None or isinstance(x, _Variable) for x in operands):
            raise LoadError(
                f"jax2tf.load: {self._origin}: the op {op.name} of type {op.type} computes with "
                "strings, tables or resources, which JAX has not. What to do: save a signature "
                "without it."
            )
        if self._holds_module(op):
            raise LoadError(
                f"jax2tf.load: {self._origin}: the op {op.name} of type {op.type} calls an "
                "XlaCallModule op inside a branch or a loop of TensorFlow. What to do: save a "
                "signature that calls the module outside of it."
            )
        results = call_tf(_as_function(op, self._contents.definition))(*operands)
        return results if isinstance(results, (list, tuple)) else [results]

    def _holds_module(self, op: PyTree) -> bool:
        names = [value.func.name for value in op.node_def.attr.values() if value.HasField("func")]
        functions = self._contents.functions
        graphs = [functions[name] for name in names if name in functions]
        return any(inner.type == _MODULE for graph in graphs for inner in graph.get_operations())


def _as_function(op: PyTree, whole: PyTree) -> PyTree:
    """A TensorFlow function of one op; `whole` is the definition of its graph."""
    graph_def = tf.compat.v1.GraphDef()
    graph_def.versions.CopyFrom(whole.versions)
    graph_def.library.function.extend(_called_functions(op.node_def, whole.library))
    feeds = [f"operand{i}" for i in range(len(op.inputs))]
    node = graph_def.node.add()
    node.CopyFrom(op.node_def)
    node.name = "op"
    del node.input[:]
    node.input.extend(feeds)
    fetches = [f"op:{i}" for i in range(len(op.outputs))]

    def function(*tensors: PyTree) -> PyTree:
        fed = dict(zip((f"{name}:0" for name in feeds), tensors, strict=True))
        return tf.graph_util.import_graph_def(graph_def, fed, fetches, name="")

    function.__name__ = op.type
    return tf.function(function, autograph=False)  # a tape records calls, not imported ops


def _called_functions(node: PyTree, library: PyTree) -> list[PyTree]:
    """The functions of a library that a node calls, and those that these call."""
    by_name = {function.signature.name: function for function in library.function}
    found: dict[str, PyTree] = {}
    pending = [node]
    while pending:
        for value in pending.pop().attr.values():
            for named in (value.func, *value.list.func):
                if named.name in by_name and named.name not in found:
                    found[named.name] = by_name[named.name]
                    pending += by_name[named.name].node_def
    return list(found.values())
