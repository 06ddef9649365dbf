"""Graphs: ops written below TensorFlow's Python, their names, the order of effects."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence

from jax2tf._src.compat.tapes import REGISTERED_GRADIENT_NAME
from jax2tf._src.util.lazy_imports import LazyModule, tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

_fingerprints = LazyModule("tensorflow.core.protobuf.fingerprint_pb2")
_tf_session = LazyModule("tensorflow.python.client.pywrap_tf_session")
_tf_context = LazyModule("tensorflow.python.eager.context")
_tf_record = LazyModule("tensorflow.python.eager.record")
_tf_func_graph = LazyModule("tensorflow.python.framework.func_graph")
_tf_op_def_registry = LazyModule("tensorflow.python.framework.op_def_registry")
_tf_ops = LazyModule("tensorflow.python.framework.ops")
_tf_control_flow = LazyModule("tensorflow.python.ops.control_flow_util_v2")
_tf_save_context = LazyModule("tensorflow.python.saved_model.save_context")
_tf_stack = LazyModule("tensorflow.python.util.tf_stack")


def with_derived_identifier(fingerprint: bytes) -> bytes:
    """The fingerprint of a SavedModel with an identifier that is made of its checksums.

    TensorFlow draws a random identifier, so that no two SavedModels have the same bytes. The class
    of the message is private.
    """
    message = _fingerprints.FingerprintDef.FromString(fingerprint)
    message.uuid = ""
    digest = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()
    message.uuid = str(int.from_bytes(digest[:16], "big"))
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def in_save_context() -> bool:
    """Whether tf.saved_model.save is tracing a function in this thread; no public name tells."""
    return bool(_tf_save_context.in_save_context())


def is_saving_gradient() -> bool:
    """Whether tf.saved_model.save is tracing the gradient that a tf.custom_gradient defined.

    It traces the function registered for the gradient, and only the graph's name tells.
    """
    return in_save_context() and _tf_ops.get_default_graph().name == REGISTERED_GRADIENT_NAME


def is_in_control_flow() -> bool:
    """Whether the graph under construction is a branch of tf.cond, or a part of tf.while_loop.

    Only the classes of such graphs tell, and they are private.
    """
    graph: tf.Graph = _tf_ops.get_default_graph()
    return isinstance(graph, _of_control_flow())


@cached
def _of_control_flow() -> tuple[type, ...]:
    kinds = _tf_control_flow
    return (kinds.CondBranchFuncGraph, kinds.WhileCondFuncGraph, kinds.WhileBodyFuncGraph)


def read_variables_of_control_flow() -> None:
    """Lets gradients under construction read the variables that their branch or loop reads.

    TensorFlow builds the gradient of tf.cond and tf.while_loop in a graph that takes tensors of the
    branch or the body. It fails at the handle of a variable, which is a tensor of no graph. The
    tensor that stands for the handle in the branch is a right one. TensorFlow has no public name
    for these graphs, and no way to say what stands for a tensor.
    """
    graph = _tf_ops.get_default_graph()
    while graph is not None:
        forward = getattr(graph, "_forward_graph", None)
        if forward is not None and not isinstance(graph.capture, functools.partial):
            graph.capture = functools.partial(_captured_by_forward, graph.capture, forward)
        graph = getattr(graph, "outer_graph", None)


def _captured_by_forward(
    capture: Callable[..., tf.Tensor],
    forward: tf.Graph,
    tensor: tf.Tensor,
    name: str | None = None,
    shape: PyTree = None,
) -> tf.Tensor:
    """Captures `tensor`, or what stands for it in the graph that is differentiated."""
    if tensor.dtype == tf.resource and not tf.is_symbolic_tensor(tensor):
        inside = _captured_as(forward, tensor)
        tensor = tensor if inside is None else inside
    return capture(tensor, name, shape)


def _captured_as(graph: tf.Graph | None, tensor: tf.Tensor) -> tf.Tensor | None:
    """The tensor that stands for a captured one in a graph; None if the graph does not capture it.

    A branch captures what stands for the tensor in the graph around it.
    """
    if not isinstance(graph, _tf_func_graph.FuncGraph):
        return None
    known = (tensor, _captured_as(graph.outer_graph, tensor))
    captures: Sequence[tuple[tf.Tensor, tf.Tensor]] = graph.captures
    return next((i for outside, i in captures if any(outside is each for each in known)), None)


def keep(op: tf.Operation) -> None:
    """Makes the function under construction run `op`, even if no result needs it.

    tf.function runs all ops with side effects, and no public name marks an op as one.
    """
    if isinstance(op.graph, _tf_func_graph.FuncGraph):
        op.graph.control_outputs.append(op)


def is_stateful_op(op: str) -> bool:
    """Whether TensorFlow keeps an op of this type although nobody uses its results.

    A node of a graph's inner function has only its type, and the registry of ops is private.
    """
    definition = op_definition(op)
    return definition is not None and bool(definition.is_stateful)


def op_definition(op: str) -> PyTree:
    """The OpDef of an op: its operands, results and attributes; no public name has it."""
    return _tf_op_def_registry.get(op)


def are_ops_observed() -> bool:
    """Whether each op calls back, as with tf.debugging.enable_check_numerics.

    No public name tells.
    """
    return bool(_tf_context.context().op_callbacks)


def writable_graph() -> tf.Graph | None:
    """The graph under construction, if `write_op` may write into it, else None.

    TensorFlow has to make the ops in graphs of TensorFlow 1 and their while loops and conds, in the
    gradient of a loop (which replaces operands as ops are made), and where a tape or a callback has
    to see each op.
    """
    graph: tf.Graph = _tf_ops.get_default_graph()
    if not _creates_ops_as_functions_do(graph.__class__) or _tf_record.could_possibly_record():
        return None
    if are_ops_observed():
        return None
    context = graph._get_control_flow_context()
    return graph if context is None or context.IsXLAContext() else None


@cached
def _creates_ops_as_functions_do(kind: type[tf.Graph]) -> bool:
    creates = _tf_func_graph.FuncGraph._create_op_internal
    return issubclass(kind, _tf_func_graph.FuncGraph) and kind._create_op_internal is creates


def stack_trace() -> object:
    """The current stack, for `write_op`."""
    return _tf_stack.extract_stack(stacklevel=2)


def set_attribute(op: tf.Operation, name: str, value: bytes) -> None:
    """Sets a serialised attribute of an op of a graph; publicly only a NodeDef can be changed."""
    op._set_attr(name, tf.compat.v1.AttrValue.FromString(value))


def write_op(
    graph: tf.Graph,
    op: str,
    operands: Sequence[tf.Tensor],
    attributes: Sequence[tuple[str, bytes]],
    stack: object,
) -> list[tf.Tensor]:
    """The results of a new op of a writable graph.

    This is Graph.create_op without its checks of the arguments, which take ten times as long.
    `operands` are tensors and lists of tensors, `attributes` are serialised, and errors of the op
    show `stack`.

    Raises:
      tf.errors.InvalidArgumentError: TensorFlow refuses the op.
    """

    def captured(tensor: tf.Tensor) -> tf.Tensor:
        return tensor if getattr(tensor, "graph", None) is graph else graph.capture(tensor)

    inputs = [list(map(captured, x)) if isinstance(x, list) else captured(x) for x in operands]
    flat = [t for x in inputs for t in (x if isinstance(x, list) else (x,))]
    name = graph.unique_name(op)
    with graph._c_graph.get() as c_graph:
        description = _tf_session.TF_NewOperation(c_graph, op, name)
    for x in inputs:
        if isinstance(x, list):
            _tf_session.TF_AddInputList(description, [t._as_tf_output() for t in x])
        else:
            _tf_session.TF_AddInput(description, x._as_tf_output())
    if graph._control_dependencies_stack:
        for control in graph._control_dependencies_for_inputs({t.op for t in flat}):
            _tf_session.TF_AddControlInput(description, control._c_op)
    for attribute, value in attributes:
        _tf_session.TF_SetAttrValueProto(description, attribute, value)
    c_op = _tf_session.TF_FinishOperation(description)
    _tf_session.TF_SetOpStackTrace(c_op, stack)
    written = _tf_ops.Operation._from_c_op(c_op=c_op, g=graph)
    # Set, because TensorFlow would fetch each of them from its C++ again.
    written._inputs_val = tuple(flat)
    if graph._get_control_flow_context() is not None:
        written._control_flow_post_processing(flat)
    graph._create_op_helper(written)
    return list(written.outputs)


# TensorFlow does not infer the shapes of a call's results if the call has this undocumented
# attribute. Otherwise it infers them through the function and its callees at each call, which takes
# a millisecond for a draw of random numbers.
NO_SHAPE_INFERENCE = "_disable_call_shape_inference"


@contextlib.contextmanager
def without_order_of_effects(graph: tf.Graph) -> Iterator[None]:
    """A context in which TensorFlow does not order effects in loops of a graph under construction.

    It would look for ops with effects, and add an op for each result of a loop's step. No public
    function says that there are none.
    """
    orders = graph._add_control_dependencies
    graph._add_control_dependencies = False
    try:
        yield
    finally:
        graph._add_control_dependencies = orders


def skip_order_of_effects(graph: tf.Graph) -> None:
    """Starts TensorFlow's search for effects at the first op that has any.

    At the end of a tf.function TensorFlow looks at each op for effects and orders them, which takes
    as long as writing the ops. The graph is the same with a later start. No public function says
    that ops have no effects.
    """
    search = getattr(graph, "experimental_acd_manager", None)
    if search is None:
        return
    operations = graph.get_operations()[search._n_operations :]
    without_effects = itertools.takewhile(lambda op: not _may_have_effects(op), operations)
    search._n_operations += len(list(without_effects))


def _may_have_effects(op: tf.Operation) -> bool:
    return op._is_stateful or any(x.dtype == tf.resource for x in op.outputs)


@contextlib.contextmanager
def name_scope(graph: tf.Graph, scope: str) -> Iterator[None]:
    """A context for ops of a graph under construction, whose names begin with `scope` and a slash.

    tf.name_scope takes five times as long, a tenth of the time of an op.
    """
    outer = graph._name_stack
    graph._name_stack = scope
    try:
        yield
    finally:
        graph._name_stack = outer


def clear_attribute(op: tf.Operation, name: str) -> None:
    """Removes an attribute from an op of a graph."""
    op._clear_attr(name)


def graphs_of_functions(graph: tf.Graph) -> dict[str, tf.Graph]:
    """The graphs of the functions that a graph calls, by name.

    The messages of a graph lack the shapes of results.
    """
    functions = graph.as_graph_def().library.function
    return {f.signature.name: graph._get_function(f.signature.name).graph for f in functions}
