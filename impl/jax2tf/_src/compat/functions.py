"""TensorFlow's functions: how they are made of a graph, called, and compiled by XLA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from jax2tf._src.util.lazy_imports import LazyModule, tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

_tf_context = LazyModule("tensorflow.python.eager.context")
_tf_execute = LazyModule("tensorflow.python.eager.execute")
_tf_atomic_function = LazyModule("tensorflow.python.eager.polymorphic_function.atomic_function")
_tf_func_graph = LazyModule("tensorflow.python.framework.func_graph")
_tf_ops = LazyModule("tensorflow.python.framework.ops")
_tf_control_flow_ops = LazyModule("tensorflow.python.ops.control_flow_ops")
_tf_control_flow_util = LazyModule("tensorflow.python.ops.control_flow_util")


def in_compiled_function() -> bool:
    """Whether the graph under construction is (inside) a tf.function with jit_compile=True.

    tf.function says so only through a control flow context of its graph.
    """
    return bool(_tf_control_flow_util.GraphOrParentsInXlaContext(_tf_ops.get_default_graph()))


@cached
def _xla_context() -> type:
    """The class of contexts of a graph for XLA in which called tf.functions are traced again."""
    kind = _tf_control_flow_ops.XLAControlFlowContext
    retraces = {"RequiresUniqueFunctionRetracing": lambda self: True}
    return type("_XlaContext", (kind,), retraces)


# Kept alive: caches of tf.functions, which outlive a graph, have the ids of contexts as keys.
_xla_contexts: list[PyTree] = []


@contextlib.contextmanager
def traced_anew_for_xla() -> Iterator[None]:
    """A context in which a graph for XLA gets traces of its own of the tf.functions that it calls.

    The gradient of tf.cond adds optional values to its branches unless the graph is inside a graph
    for XLA, which has no such values. An earlier trace of a tf.function is not inside, and
    TensorFlow would reuse it and add them.
    """
    context = _xla_context()()
    _xla_contexts.append(context)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


@contextlib.contextmanager
def function_graph(name: str, jit_compile: bool) -> Iterator[tf.Graph]:
    """An empty graph under construction for the ops of a function, which `function_of` makes.

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

    Only tf.function orders ops with effects and passes captured tensors.
    """
    if graph.captures or any(op._is_stateful for op in graph.get_operations()):
        return None
    name = f"__inference_{graph.name}_{_tf_ops.uid()}"
    attributes = {"_XlaMustCompile": True, "_noinline": True} if jit_compile else {}
    return _tf_atomic_function.from_func_graph(name, graph, attributes)


def call_options(*, is_optimized: bool = True) -> bytes:
    """The options of a call for optimizers and placement, as calls of tf.functions have them.

    Unless it `is_optimized`, Grappler does not rewrite the ops of the function.
    """
    options = bytes(_tf_context.context().function_call_options.as_attrs()["config_proto"])
    if is_optimized:
        return options
    config = tf.compat.v1.ConfigProto.FromString(options)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return bytes(config.SerializeToString())


def run_function(
    function: PyTree, args: Sequence[tf.Tensor], n_results: int, options: bytes
) -> list[tf.Tensor]:
    """The results of a function in eager mode, unseen by tapes; `options` are `call_options()`.

    A tf.function records the call for gradients, which takes a tenth of a millisecond.
    """
    attributes = ("executor_type", "", "config_proto", options)
    context = _tf_context.context()
    return list(_tf_execute.execute(function.name, n_results, list(args), attributes, context))


def eager_device() -> str:
    """The device of the enclosing tf.device in eager mode; empty without one."""
    return str(_tf_context.context().device_name or "")


def add_function(graph: tf.Graph, function: Callable[..., PyTree]) -> None:
    """Adds a function to the library of a graph that will call it."""
    graph._add_function_recursive(function)


def serialized_hlo(
    concrete: tf.types.experimental.ConcreteFunction,
    specs: Sequence[tf.TensorSpec],
    platform: str,
) -> bytes:
    """The HLO that TensorFlow compiles of a function for tensors of `specs`.

    The public experimental_get_compiler_ir draws a random number to find the device of eager ops.
    That advances the generator of tf.random.set_seed, and needs a seed if ops are deterministic.
    """
    return _tf_context.context().get_compiler_ir(
        device_name=tf.zeros([]).device,
        platform_name=platform,
        function_name=concrete.name,
        flat_args=list(specs),
        captured_inputs=concrete.captured_inputs,
        stage="hlo_serialized",
    )


def has_misfit_calls(graph: tf.Graph) -> bool:
    """Whether a graph, or a function that it calls, passes dtypes that the callee does not take.

    A signature of a SavedModel does not check its arguments before it runs.
    """
    calls = [
        (op.get_attr("f").name, op.get_attr("Tin"))
        for op in graph.get_operations()
        if op.type in _CALLS
    ]
    seen: set[str] = set()
    while calls:
        name, dtypes = calls.pop()
        definition = graph._get_function(name).cached_definition
        expected = [tf.as_dtype(argument.type) for argument in definition.signature.input_arg]
        if list(dtypes) != expected:
            return True
        if name not in seen:
            seen.add(name)
            calls += [
                (node.attr["f"].func.name, map(tf.as_dtype, node.attr["Tin"].list.type))
                for node in definition.node_def
                if node.op in _CALLS
            ]
    return False


_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
