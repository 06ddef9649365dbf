"""Of graphs: ops that are written below TensorFlow's Python, names, the order of effects."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence

import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session as _tf_session
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.eager import record as _tf_record
from tensorflow.python.framework import func_graph as _tf_func_graph
from tensorflow.python.framework import op_def_registry as _tf_op_def_registry
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.ops import control_flow_util_v2 as _tf_control_flow
from tensorflow.python.saved_model import save_context as _tf_save_context
from tensorflow.python.util import tf_stack as _tf_stack

from jax2tf._src.compat.tapes import REGISTERED_GRADIENT_NAME
from jax2tf._src.util.typing import PyTree


def in_save_context() -> bool:
    """Whether tf.saved_model.save is tracing something in this thread; no public name tells."""
    return bool(_tf_save_context.in_save_context())


def is_saving_gradient() -> bool:
    """Whether tf.saved_model.save is tracing the gradient that a tf.custom_gradient defined.

    It traces the function that is registered for the gradient: the graph's name is the one sign.
    """
    return in_save_context() and _tf_ops.get_default_graph().name == REGISTERED_GRADIENT_NAME


def is_in_control_flow() -> bool:
    """Whether the graph under construction is a branch of tf.cond, or a part of tf.while_loop.

    Only the classes of such graphs tell.
    """
    graph: tf.Graph = _tf_ops.get_default_graph()
    return isinstance(graph, _CONTROL_FLOW)


_CONTROL_FLOW = (
    _tf_control_flow.CondBranchFuncGraph,
    _tf_control_flow.WhileCondFuncGraph,
    _tf_control_flow.WhileBodyFuncGraph,
)


def keep(op: tf.Operation) -> None:
    """Has the function under construction run `op`, whatever its results need.

    tf.function keeps what has side effects, and has no public way to say that something has.
    """
    if isinstance(op.graph, _tf_func_graph.FuncGraph):
        op.graph.control_outputs.append(op)


def is_stateful_op(op: str) -> bool:
    """Whether TensorFlow keeps an op of this type although nobody uses its results.

    A node of a graph's inner function names its type alone, and only the registry knows more.
    """
    definition = op_definition(op)
    return definition is not None and bool(definition.is_stateful)


def op_definition(op: str) -> PyTree:
    """The OpDef of an op: its operands, results and attributes; no public name has it."""
    return _tf_op_def_registry.get(op)


def are_ops_observed() -> bool:
    """Whether something is called back for each op, as tf.debugging.enable_check_numerics has it.

    No public name tells.
    """
    return bool(_tf_context.context().op_callbacks)


def writable_graph() -> tf.Graph | None:
    """The graph under construction, if `write_op` may write into it, else None.

    TensorFlow makes the ops itself in a graph of its first version, in a while loop or a cond of
    that version, in the gradient of a loop (which replaces operands as ops are made), and where a
    tape or a callback has to see each op.
    """
    graph: tf.Graph = _tf_ops.get_default_graph()
    if not _creates_ops_as_functions_do(graph.__class__) or _tf_record.could_possibly_record():
        return None
    if are_ops_observed():
        return None
    context = graph._get_control_flow_context()
    return graph if context is None or context.IsXLAContext() else None


@functools.cache
def _creates_ops_as_functions_do(kind: type[tf.Graph]) -> bool:
    creates = _tf_func_graph.FuncGraph._create_op_internal
    return issubclass(kind, _tf_func_graph.FuncGraph) and kind._create_op_internal is creates


def stack_trace() -> object:
    """Where the program is, for `write_op`."""
    return _tf_stack.extract_stack(stacklevel=2)


def set_attribute(op: tf.Operation, name: str, value: bytes) -> None:
    """Gives an op of a graph an attribute, serialised; only a NodeDef has a public way to it."""
    op._set_attr(name, tf.compat.v1.AttrValue.FromString(value))


def write_op(
    graph: tf.Graph,
    op: str,
    operands: Sequence[tf.Tensor],
    attributes: Sequence[tuple[str, bytes]],
    stack: object,
) -> list[tf.Tensor]:
    """The results of a new op of a graph that is writable.

    This is what Graph.create_op does, without what it asks of all that it is given: that takes ten
    times as long. `operands` are tensors and lists of tensors, `attributes` serialised; `stack`
    is said where the op fails.

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
    # TensorFlow would ask its C++ for each of them again.
    written._inputs_val = tuple(flat)
    if graph._get_control_flow_context() is not None:
        written._control_flow_post_processing(flat)
    graph._create_op_helper(written)
    results: list[tf.Tensor] = written.outputs
    return results


# The attribute of a call whose results have no shapes until they are set. Without it TensorFlow
# infers them through the function and all that it calls, at each call: a millisecond for a draw of
# random numbers. No public text names it.
NO_SHAPE_INFERENCE = "_disable_call_shape_inference"


@contextlib.contextmanager
def without_order_of_effects(graph: tf.Graph) -> Iterator[None]:
    """A context in which loops of a graph under construction have no ops with effects to order.

    TensorFlow would look for such ops, and give each result of a loop's step an op of its own. No
    public function of its says that there are none.
    """
    orders = graph._add_control_dependencies
    graph._add_control_dependencies = False
    try:
        yield
    finally:
        graph._add_control_dependencies = orders


def skip_order_of_effects(graph: tf.Graph) -> None:
    """Spares a function under construction the search for effects up to its first op that has any.

    Where a tf.function ends, TensorFlow looks at each of its ops for effects, and puts those in
    order. That takes as long as to write the ops. The search begins later: the graph is the same.
    No public function of its says that ops have none.
    """
    search = getattr(graph, "experimental_acd_manager", None)
    if search is None:
        return
    found = map(_may_have_effects, graph.get_operations()[search._n_operations :])
    search._n_operations += len(
        list(itertools.takewhile(lambda has_effects: not has_effects, found))
    )


def _may_have_effects(op: tf.Operation) -> bool:
    return op._is_stateful or any(x.dtype == tf.resource for x in op.outputs)


@contextlib.contextmanager
def name_scope(graph: tf.Graph, scope: str) -> Iterator[None]:
    """A context for ops of a graph under construction, whose names begin with `scope` and a slash.

    tf.name_scope does the same in five times the time, which is a tenth of what an op takes.
    """
    outer = graph._name_stack
    graph._name_stack = scope
    try:
        yield
    finally:
        graph._name_stack = outer


def clear_attribute(op: tf.Operation, name: str) -> None:
    """Takes an attribute from an op of a graph."""
    op._clear_attr(name)
