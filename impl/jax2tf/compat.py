"""The only module that touches private names of JAX or TensorFlow: one small thing each, with the
reason why no public name serves.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import operator
import os
import pathlib
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import jax
import numpy as np
import tensorflow as tf
from jax import export
from jax._src import config as _jax_config
from jax._src import core as _jax_core
from jax._src import source_info_util as _source_info_util
from jax._src import util as _jax_util
from jax._src.interpreters import ad as _jax_ad
from jax._src.interpreters import mlir as _mlir
from jax._src.state import discharge as _discharge
from jax._src.state import types as _state_types
from tensorflow.compiler.mlir.stablehlo import stablehlo as _tf_stablehlo
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla as _tf_xla
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.client import pywrap_tf_session as _tf_session
from tensorflow.python.compiler.xla.experimental import xla_sharding as _tf_xla_sharding
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.eager import execute as _tf_execute
from tensorflow.python.eager import forwardprop_util as _tf_forwardprop_util
from tensorflow.python.eager import record as _tf_record
from tensorflow.python.eager.polymorphic_function import atomic_function as _tf_atomic_function
from tensorflow.python.framework import func_graph as _tf_func_graph
from tensorflow.python.framework import op_def_registry as _tf_op_def_registry
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.ops import control_flow_ops as _tf_control_flow_ops
from tensorflow.python.ops import control_flow_util as _tf_control_flow_util
from tensorflow.python.saved_model import save_context as _tf_save_context
from tensorflow.python.trackable import data_structures as _tf_data_structures
from tensorflow.python.util import tf_stack as _tf_stack

from jax2tf.errors import ConversionError
from jax2tf.typing import Param, PyTree

if TYPE_CHECKING:
    # Importing jax.extend takes JAX longer than this package takes for all that it imports at once.
    from jax.extend import core as jex_core

# The XLA ops have kernels on every device (compiled on demand), but TensorFlow exports them under
# no public name.
xla_ops = gen_xla_ops

# They take XLA's own messages (dimension numbers, precisions), serialised.
xla_data = xla_data_pb2

_MODULE_CONTAINERS = (
    _tf_data_structures._DictWrapper,
    _tf_data_structures.ListWrapper,
    _tf_data_structures._TupleWrapper,
)


def trace_context() -> Hashable:
    """The JAX configuration that changes what a trace gives (x64, default precision, ...).

    JAX keys its own jit cache with it; there is no public way to ask for the whole of it.
    """
    result: Hashable = _jax_config.trace_context()
    return result


def cached_weakly(kind: type) -> None:
    """Has JAX's caches of abstract evaluation refer weakly to params of exactly that type.

    They hold params of other types for the life of the process, unless thousands of others follow,
    and a param of ours holds a TensorFlow function with its graphs. JAX does this for jaxprs.
    """
    _jax_util.weakref_cache_key_types.add(kind)


# What JAX names as the source of an operation is the first line outside of such folders: a line of
# the user's, and not one of this package, which traces and calls.
_source_info_util.register_exclusion(str(pathlib.Path(__file__).parent) + os.sep)


def user_source(eqn: jex_core.JaxprEqn) -> str:
    """`file:line (function)` of the user code that bound `eqn`; JAX prints it in its own errors.

    Empty where no line of the user's did: of a function of JAX's that is converted as it is, of
    what a primitive is lowered to, of an equation that was made without a source.
    """
    return _source_info_util.summarize(eqn.source_info)


def name_stack(eqn: jex_core.JaxprEqn) -> str:
    """The named scopes and transformations around `eqn`, as JAX writes them into its HLO."""
    return str(eqn.source_info.name_stack)


def common_scopes(eqns: Sequence[jex_core.JaxprEqn]) -> int:
    """How many of the outermost scopes and transformations are around all of `eqns`."""
    stacks = [eqn.source_info.name_stack.stack for eqn in eqns]
    levels = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*stacks, strict=False))
    return len(list(levels))


def in_scopes(eqn: jex_core.JaxprEqn, scopes: slice) -> _source_info_util.SourceInfo:
    """The source information of `eqn`, in a part of its scopes and transformations alone."""
    return eqn.source_info.replace(name_stack=eqn.source_info.name_stack[scopes])


def bound_as(eqn: jex_core.JaxprEqn) -> contextlib.AbstractContextManager[None]:
    """A context in which what is bound has the source and the named scopes of `eqn`.

    For what an equation is rewritten to; JAX itself does this where it evaluates a jaxpr.
    """
    source = eqn.source_info
    return _source_info_util.user_context(source.traceback, name_stack=source.name_stack)


def tape_may_record(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape or ForwardAccumulator could record an operation on `tensors` now.

    Only TensorFlow's record module knows; without it each eager call would pay for a
    tf.custom_gradient that nobody watches.
    """
    return bool(_tf_record.should_record_backprop(tensors)) or bool(
        _tf_record.could_possibly_record()
    )


def tape_watches(tensors: list[tf.Tensor]) -> bool:
    """Whether a GradientTape records an operation on `tensors` because of one of them."""
    return bool(_tf_record.should_record_backprop(tensors))


def accumulator_watches(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a ForwardAccumulator has a tangent for one of them; only TensorFlow itself knows."""
    return bool(_tf_forwardprop_util.pack_tangents(list(tensors)).tangents)


def nothing_recorded() -> contextlib.AbstractContextManager[None]:
    """A context in which no tape records; a public tape's stop_recording stops that tape alone."""
    result: contextlib.AbstractContextManager[None] = _tf_record.stop_recording()
    return result


@contextlib.contextmanager
def recorded_again() -> Iterator[None]:
    """A context in which tapes record although they are inside `nothing_recorded`.

    TensorFlow stops them for a thread, also tapes that begin inside, which then give zeros.
    """
    was_stopped = _pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if was_stopped:
        _pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if was_stopped:
            _pywrap_tfe.TFE_Py_TapeSetStopOnThread()


def is_module_container(node: PyTree) -> bool:
    """Whether tf.Module wrapped this dict, list or tuple when it was assigned to an attribute.

    The attribute tracking of tf.Module replaces them by private proxy types.
    """
    return isinstance(node, _MODULE_CONTAINERS)


def unwrap_module_container(container: PyTree) -> PyTree:
    """The plain dict, list or tuple inside; what it contains may be wrapped again."""
    # A list has its elements itself, the others wrap what was assigned.
    return container.__wrapped__ if hasattr(container, "__wrapped__") else list(container)


class SavesVariableLists:
    """What a tf.Module inherits from, so that it has its lists of variables when it is restored.

    They are properties of tf.Module's class, which a SavedModel does not hold, and no public name
    adds something to what is saved. A checkpoint stays as it is.
    """

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: object
    ) -> dict[str, PyTree]:
        parent: PyTree = super()
        children: dict[str, PyTree] = parent._trackable_children(save_type, **kwargs)
        if save_type != "savedmodel":
            return children
        return {**{name: _saved_list(self, name) for name in _SAVED_LISTS}, **children}


_SAVED_LISTS = ("variables", "trainable_variables")

# TensorFlow asks several times for one save, and goes by the identity of what it gets.
_saved_lists: weakref.WeakKeyDictionary[PyTree, dict[str, PyTree]] = weakref.WeakKeyDictionary()


def _saved_list(module: PyTree, name: str) -> PyTree:
    lists = _saved_lists.setdefault(module, {})
    present = list(getattr(module, name))
    saved = lists.get(name, ())
    if name not in lists or len(saved) != len(present) or any(map(operator.is_not, saved, present)):
        lists[name] = _tf_data_structures.ListWrapper(present)
    return lists[name]


def _wrap_module_container(kind: type, plain: PyTree) -> PyTree:
    # While JAX compares trees, anything may stand in the place of what they contain.
    return kind(plain) if isinstance(plain, dict | list | tuple) else plain


class _Inside:
    """The key of what a wrapper wraps, which adds nothing to the path of a leaf."""

    def __str__(self) -> str:
        return ""


def register_module_containers() -> None:
    """Makes pytrees of JAX of the containers that tf.Module wraps.

    JAX has pytrees by their exact type, and these types have no public names. A type is registered
    once: JAX's own jax2tf does it when it is imported, and would fail if that was done before.
    """
    try:
        importlib.import_module("jax.experimental.jax2tf")
    except ModuleNotFoundError:
        for kind in _MODULE_CONTAINERS:
            _register_module_container(kind)


def _register_module_container(kind: type) -> None:
    """A node with one child, the plain container, which may be of any type that JAX knows."""

    def flatten(node: PyTree) -> tuple[tuple[PyTree], None]:
        return (unwrap_module_container(node),), None

    def flatten_with_keys(node: PyTree) -> tuple[tuple[tuple[_Inside, PyTree]], None]:
        return ((_Inside(), unwrap_module_container(node)),), None

    def unflatten(_: None, children: Iterable[PyTree]) -> PyTree:
        return _wrap_module_container(kind, *children)

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)


def explicit_constraints(scope: export.SymbolicScope) -> tuple[str, ...]:
    """The constraints of a scope of dimension variables, as text; it only prints them."""
    return tuple(constraint.debug_str for constraint in scope._explicit_constraints)


def scan_arity(params: dict[str, Param]) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many carry.

    JAX 0.12 tells it by a flat tree of a private class, earlier versions by two numbers.
    """
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts.vals), len(carry.vals)


def data_of_keys(keys: PyTree) -> np.ndarray:
    """The raw data of an array of typed PRNG keys.

    jax.random.key_data binds a primitive, which JAX cannot while it lowers a call of TensorFlow.
    """
    return np.asarray(keys._base_array)


def prng_impl(dtype: PyTree) -> PyTree:
    """The generator (seed, split, fold_in, random_bits) of a typed key's dtype.

    jax.random.key_impl names it only for an array of keys, and gives no functions.
    """
    return dtype._impl


def without_references(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """`jaxpr` with its mutable references (jax.new_ref) turned into values that are passed along.

    JAX does the same before it compiles; the transformation has no public name.

    Raises:
      ConversionError: a reference comes from outside of the function.
    """
    if any(isinstance(v.aval, _state_types.AbstractRef) for v in jaxpr.jaxpr.constvars):
        raise ConversionError(
            "jax2tf.convert: the function uses a mutable reference (jax.new_ref) that was made "
            "outside of it, and TensorFlow cannot write to that. Make the reference inside the "
            "function, or pass its value in and out"
        )
    if not any("Mutable" in type(e).__name__ or "Ref" in type(e).__name__ for e in jaxpr.effects):
        return jaxpr
    return _discharge.discharge_state(jaxpr)


def in_compiled_function() -> bool:
    """Whether the graph under construction is (inside) a tf.function with jit_compile=True.

    tf.function says so only through a control flow context of its graph.
    """
    return bool(_tf_control_flow_util.GraphOrParentsInXlaContext(_tf_ops.get_default_graph()))


class _XlaContext(_tf_control_flow_ops.XLAControlFlowContext):  # type: ignore[misc]
    """What says that a graph is for XLA; a tf.function called in it is traced anew for it."""

    def RequiresUniqueFunctionRetracing(self) -> bool:
        return True


# TensorFlow knows these by their ids, in caches of tf.functions that live longer than a graph.
_xla_contexts: list[_XlaContext] = []


@contextlib.contextmanager
def traced_anew_for_xla() -> Iterator[None]:
    """A context in which the tf.functions that a graph for XLA calls are traced for it alone.

    The gradient of tf.cond adds optional values to its branches unless their graph is inside of one
    for XLA, which has no such values. A tf.function that was traced elsewhere is not, and the one
    trace of it that TensorFlow keeps would get them.
    """
    context = _XlaContext()
    _xla_contexts.append(context)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


# What TensorFlow calls the functions that tf.custom_gradient registers.
REGISTERED_GRADIENT_NAME = "internal_grad_fn"


def in_save_context() -> bool:
    """Whether tf.saved_model.save is tracing something in this thread; no public name tells."""
    return bool(_tf_save_context.in_save_context())


def is_saving_gradient() -> bool:
    """Whether tf.saved_model.save is tracing the gradient that a tf.custom_gradient defined.

    It traces the function that is registered for the gradient: the graph's name is the one sign.
    """
    return in_save_context() and _tf_ops.get_default_graph().name == REGISTERED_GRADIENT_NAME


def record(
    name: str,
    outputs: Sequence[tf.Tensor],
    inputs: Sequence[tf.Tensor],
    backward: Callable[..., Sequence[tf.Tensor]],
) -> None:
    """Has the tapes and accumulators record an operation whose gradient is `backward`.

    tf.custom_gradient is the public way, and keeps every graph that it is used in.
    """
    _tf_record.record_operation(name, outputs, inputs, backward)


def forget_gradient(name: str) -> None:
    """Takes a gradient out of TensorFlow's registry, which has no public way to do so."""
    _tf_ops.gradient_registry._registry.pop(name, None)


def callback_name(params: dict[str, Param]) -> str:
    """The name of the function that a callback calls; empty where JAX hides or has none.

    The primitives of callbacks have params of private classes.
    """
    function = getattr(params.get("callback"), "callback_func", None)
    return getattr(function, "__name__", type(function).__name__) if function else ""


def keep(op: tf.Operation) -> None:
    """Has the function under construction run `op`, whatever its results need.

    tf.function keeps what has side effects, and has no public way to say that something has.
    """
    if isinstance(op.graph, _tf_func_graph.FuncGraph):
        op.graph.control_outputs.append(op)


# What JAX raises where a function with a derivative rule of the user's closes over a value that is
# differentiated; it is no more than an Exception.
ClosedOverError: type[Exception] = _jax_ad.CustomVJPException


def stablehlo_version() -> str:
    """The newest StableHLO that TensorFlow reads, as "1.13.7".

    TensorFlow says it only in the Python bindings of the StableHLO that it was built with.
    """
    result: str = _tf_stablehlo.get_current_version()
    return result


def xla_call_module_version() -> int:
    """The newest version of the XlaCallModule op that TensorFlow runs; no public name tells."""
    return int(_tf_xla.call_module_maximum_supported_version())


# `jax.random` draws with those of prng, which was elsewhere until JAX 0.10.1.
_MODULES_OF_PRIMITIVES = (
    "jax._src.callback",
    "jax._src.core",
    "jax._src.cudnn.scaled_matmul_stablehlo",
    "jax._src.debugging",
    "jax._src.export.shape_poly",
    "jax._src.lax.control_flow.conditionals",
    "jax._src.lax.control_flow.loops",
    "jax._src.lax.lax",
    "jax._src.lax.linalg",
    "jax._src.lax.parallel",
    "jax._src.lax.scaled_dot",
    "jax._src.pjit",
    "jax._src.prng",
    "jax._src.random",
    "jax._src.random.core",
    "jax._src.random.prng",
    "jax._src.shard_map",
)


def modules_of_primitives() -> Iterator[types.ModuleType]:
    """Modules that hold the primitives which jax.extend.core.primitives and jax.lax do not name."""
    for name in _MODULES_OF_PRIMITIVES:
        with contextlib.suppress(ModuleNotFoundError):
            yield importlib.import_module(name)


def is_implemented_by_jax(primitive: jex_core.Primitive) -> bool:
    """Whether the primitive has no implementation but JAX's own, which binds it again, or raises.

    JAX marks its own primitives by nothing but where their functions come from.
    """
    function = getattr(primitive.impl, "func", primitive.impl)  # opens a functools.partial
    return (getattr(function, "__module__", None) or "jaxlib").startswith(("jax._src", "jaxlib"))


def compiled_function(primitive: jex_core.Primitive) -> Callable[..., PyTree] | None:
    """The JAX function that JAX compiles `primitive` as, on every device; None where it has none.

    That is what jax.interpreters.mlir.lower_fun was given. It keeps the function in a closure, and
    the registry of lowerings has no public name.
    """
    entry = _mlir._lowerings.get(primitive)
    if entry is None or getattr(entry.rule, "__qualname__", "") != _LOWERED_FUNCTION:
        return None
    kept = inspect.getclosurevars(entry.rule).nonlocals
    function, several = kept["fun"], kept["multiple_results"]
    return function if several else lambda *args, **params: [function(*args, **params)]


_LOWERED_FUNCTION = _mlir.lower_fun(lambda: ()).__qualname__


def is_compiled_by_others(primitive: jex_core.Primitive) -> bool:
    """Whether another library has registered what JAX compiles `primitive` to.

    The registry has no public name, and says of a function no more than where it comes from.
    """
    lowerings = (_mlir._lowerings, *_mlir._platform_specific_lowerings.values())
    found = [known[primitive].rule for known in lowerings if primitive in known]
    return any(not _is_jax_own(rule) for rule in found)


def is_compiled_by_jax(primitive: jex_core.Primitive) -> bool:
    """Whether JAX itself has a lowering of `primitive`, for any device."""
    lowerings = (_mlir._lowerings, *_mlir._platform_specific_lowerings.values())
    return any(primitive in known and _is_jax_own(known[primitive].rule) for known in lowerings)


def _is_jax_own(function: Callable[..., PyTree]) -> bool:
    function = getattr(function, "func", function)  # opens a functools.partial
    return (getattr(function, "__module__", None) or "jaxlib").startswith(("jax.", "jaxlib"))


def pallas_interpreter(params: dict[str, Param]) -> Callable[..., PyTree] | None:
    """A JAX function that does what a pallas_call does in interpret mode; None in another mode.

    The interpreter that pallas_call(interpret=True) runs has no public name. It is there where a
    pallas_call is: importing pallas takes a second.
    """
    if params.get("interpret") is not True:
        return None
    from jax._src.pallas import hlo_interpreter

    given = {name: value for name, value in params.items() if name != "interpret"}
    return functools.partial(hlo_interpreter.pallas_call_hlo_interpret, **given)


def is_stateful_op(op: str) -> bool:
    """Whether TensorFlow keeps an op of this type although nobody uses its results.

    A node of a graph's inner function names its type alone, and only the registry knows more.
    """
    definition = op_definition(op)
    return definition is not None and bool(definition.is_stateful)


def op_definition(op: str) -> PyTree:
    """The OpDef of an op: its operands, results and attributes; no public name has it."""
    return _tf_op_def_registry.get(op)


def writable_graph() -> tf.Graph | None:
    """The graph under construction, if `write_op` may write into it, else None.

    TensorFlow makes the ops itself in a graph of its first version, in a while loop or a cond of
    that version, in the gradient of a loop (which replaces operands as ops are made), and where a
    tape has to see each op.
    """
    graph: tf.Graph = _tf_ops.get_default_graph()
    if not _creates_ops_as_functions_do(graph.__class__) or _tf_record.could_possibly_record():
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


@contextlib.contextmanager
def function_graph(name: str, jit_compile: bool) -> Iterator[tf.Graph]:
    """An empty graph, under construction, for the ops of a function; `function_of` makes it.

    tf.function spends a millisecond around each graph: on signatures, structures and side effects.
    """
    graph = _tf_func_graph.FuncGraph(name)
    with graph.as_default():
        if not jit_compile or in_compiled_function():
            yield graph
            return
        context = _tf_control_flow_ops.XLAControlFlowContext()
        context.Enter()
        try:
            yield graph
        finally:
            context.Exit()


def function_of(graph: tf.Graph, jit_compile: bool) -> tf.types.experimental.ConcreteFunction:
    """The function of a graph whose inputs and outputs are set; None if tf.function has to make it.

    That orders ops that have effects, and knows what a graph reads of the graphs around it.
    """
    if graph.captures or any(op._is_stateful for op in graph.get_operations()):
        return None
    name = f"__inference_{graph.name}_{_tf_ops.uid()}"
    attributes = {"_XlaMustCompile": True, "_noinline": True} if jit_compile else {}
    return _tf_atomic_function.from_func_graph(name, graph, attributes)


def call_options() -> bytes:
    """What a call in a graph says of optimizers and placement, as calls of tf.functions say it."""
    return bytes(_tf_context.context().function_call_options.as_attrs()["config_proto"])


def unoptimized_call_options() -> bytes:
    """As `call_options`, of a call whose ops are run as they stand in the function."""
    config = tf.compat.v1.ConfigProto.FromString(call_options())
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return bytes(config.SerializeToString())


def run_function(
    function: PyTree, args: Sequence[tf.Tensor], n_results: int, options: bytes
) -> list[tf.Tensor]:
    """The results of a function in eager mode, beside all tapes; `options` as of `call_options`.

    A tf.function, which records the call for gradients, takes a tenth of a millisecond more.
    """
    attributes = ("executor_type", "", "config_proto", options)
    context = _tf_context.context()
    return list(_tf_execute.execute(function.name, n_results, list(args), attributes, context))


def eager_device() -> str:
    """The device of the tf.device around an eager op; empty where there is none."""
    return str(_tf_context.context().device_name or "")


def add_function(graph: tf.Graph, function: Callable[..., PyTree]) -> None:
    """Makes a function known to a graph that is to call it."""
    graph._add_function_recursive(function)


def static_arguments(jitted: PyTree) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the arguments that jax.jit was told are static.

    A trace is made without them, and no public name of what jax.jit makes tells which they are.
    """
    return jitted._jit_info.static_argnums, jitted._jit_info.static_argnames


# jax.pmap gives a plain function. All that it gives have the same code.
_CODE_OF_PMAPPED = jax.pmap(lambda: None).__code__


def is_pmapped(fun: Callable[..., PyTree]) -> bool:
    """Whether jax.pmap made the function."""
    return getattr(fun, "__code__", None) is _CODE_OF_PMAPPED


def static_arguments_of_pmap(pmapped: Callable[..., PyTree]) -> tuple[int, ...]:
    """Positions of the arguments that jax.pmap was told are static.

    It keeps them in a function that the one that it gives closes over.
    """
    inner = inspect.getclosurevars(pmapped).nonlocals["infer_params"]
    results: tuple[int, ...] = inspect.getclosurevars(inner).nonlocals["static_broadcasted_tuple"]
    return results


def shardings_of(traced: jax.stages.Traced) -> list[jax.sharding.Sharding]:
    """What jax.jit was told of the shardings of arguments and results of the traced function.

    They are beside its jaxpr, and only a compiled function shows them by a public name.
    """
    return [*traced._params["in_shardings"], *traced._params["out_shardings"]]


def is_collective(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation speaks of an axis by its name; JAX says so by an effect of its own.

    An equation that calls a jaxpr has the effects of that jaxpr's equations.
    """
    return any(isinstance(effect, _jax_core.NamedAxisEffect) for effect in eqn.effects)


def groups_of_numbers() -> contextlib.AbstractContextManager[None]:
    """A context in which JAX writes groups of devices into modules as numbers.

    A newer JAX names axes of the mesh instead, which the StableHLO that TensorFlow reads cannot
    express. The option has a public name for the whole process alone.
    """
    state = getattr(_jax_config, "use_rgv3", None)
    return contextlib.nullcontext() if state is None else state(False)


def varies_over_a_mesh(aval: object) -> bool:
    """Whether the value differs between the devices of a mesh, or is one of a device's program."""
    kind = getattr(aval, "manual_axis_type", None)
    return kind is not None and bool(kind.varying)


def hlo_sharding(sharding: jax.sharding.Sharding, rank: int) -> PyTree:
    """XLA's message for a jax.sharding.Sharding of an array of that rank.

    Public names tell the part of each device for sizes that are known, and a batch may not be.
    """
    proto = sharding._to_xla_hlo_sharding(rank).to_proto()
    return xla_data_pb2.OpSharding.FromString(proto.SerializeToString())


def xla_sharding(
    tensor: tf.Tensor, proto: PyTree, unspecified_dims: Sequence[int] = ()
) -> tf.Tensor:
    """The tensor with an XlaSharding op behind it, which no public name makes."""
    sharding = _tf_xla_sharding.Sharding(proto=proto)
    dims = list(unspecified_dims)
    return sharding.apply_to_tensor(tensor, use_sharding_op=True, unspecified_dims=dims)


def tiled(tensor: tf.Tensor, devices: np.ndarray) -> tf.Tensor:
    """As `xla_sharding`, over the devices in an array with the tensor's number of dimensions."""
    return xla_sharding(tensor, _tf_xla_sharding.Sharding.tile(devices).proto)


def keras_layer_under_way() -> tf.keras.layers.Layer | None:
    """The outermost layer of Keras whose call is under way, or None.

    Keras keeps it for itself, in a module that is there where Keras was imported.
    """
    state = sys.modules.get("keras.src.backend.common.global_state")
    context = state and state.get_global_attribute("current_call_ctx")
    return context.entry_layer if context else None


def litert_schema() -> ModuleType:
    """The classes of the parts of a LiteRT file.

    TensorFlow has them for its own tools alone; the package ai-edge-litert, which has them as
    public ones, may not be there.
    """
    return importlib.import_module("tensorflow.lite.python.schema_py_generated")
