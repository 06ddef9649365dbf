"""Names of TensorFlow's graphs, devices and replicas that libraries ask, and what holds here.

There is one replica, no graph and, on JAX, always XLA.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tf_substrates.numpy import shapes
from tf_substrates.numpy.arrays.creation import tf_range
from tf_substrates.numpy.arrays.shaping import get_static_value
from tf_substrates.numpy.control_flow import vectorized_map
from tf_substrates.numpy.functions import stop_gradient
from tf_substrates.numpy.gradient_tape import UnconnectedGradients
from tf_substrates.numpy.modules import executing_eagerly as executes_eagerly
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.shapes import TensorShape
from tf_substrates.numpy.tensors import convert

JAX_MODE = False
if JAX_MODE:
    import jax


@export("distribute.ReplicaContext")
class ReplicaContext:
    """The one replica in which everything runs."""

    num_replicas_in_sync = 1

    def __init__(self, strategy: Any, replica_id_in_sync_group: Any):
        self.strategy = strategy
        self.replica_id_in_sync_group = replica_id_in_sync_group

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The value: there is nothing to reduce with."""
        return value


_REPLICA = ReplicaContext(None, 0)


@export("distribute.get_replica_context")
def get_replica_context() -> ReplicaContext:
    return _REPLICA


@export("distribute.has_strategy")
def has_strategy() -> bool:
    return False


@export("distribute.in_cross_replica_context")
def in_cross_replica_context() -> bool:
    return False


@export("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    """How replicas reduce."""

    SUM = "SUM"
    MEAN = "MEAN"


@export("Graph", "compat.v1.Graph")
class Graph:
    """A context of TensorFlow 1 in which ops become nodes. Here they run at once."""

    building_function = False
    seed = None

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        yield self

    def get_name_scope(self) -> str:
        return ""


_GRAPH = Graph()


@export("python.eager.context.eager_mode", "python.eager.context.graph_mode")
@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    """The one mode that there is, in which everything runs at once."""
    yield


@export("python.eager.context.executing_eagerly")
def executing_eagerly() -> bool:
    return executes_eagerly()


@export("compat.v1.get_default_graph", "python.framework.ops.get_default_graph")
def get_default_graph() -> Any:
    return _GRAPH


@export("compat.v1.placeholder_with_default")
def placeholder_with_default(input: Any, shape: Any, name: Any = None) -> Any:
    """The default: nothing is fed, as in TensorFlow's eager mode."""
    return convert(input)


@export("compat.v1.GraphDef")
class GraphDef:
    """A class to name in annotations: there are no graphs."""

    def __init__(self, **kwargs: Any):
        raise NotImplementedError(
            "tf.compat.v1.GraphDef: the substrates build no graphs. What to do: pass the Python"
            " function itself, which jax.jit compiles."
        )


@export("gradients")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: Any = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Any:
    """Derivatives along a graph, of which there is none: it raises, as eagerly in TensorFlow.

    Raises:
      RuntimeError: always.
    """
    raise RuntimeError(
        "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape"
        " instead. (On JAX also inside jax.jit and tf.function; or take jax.grad of the function.)"
    )


@export("hessians")
def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: Any = "hessians",
) -> Any:
    """Second derivatives along a graph: it raises, as eagerly in TensorFlow.

    Raises:
      RuntimeError: always.
    """
    raise RuntimeError(
        "tf.hessians is not supported when eager execution is enabled. Use two tapes of"
        " tf.GradientTape instead, the outer one for `jacobian`. (On JAX also inside jax.jit and"
        " tf.function; or take jax.hessian of the function.)"
    )


@export("xla.experimental.jit_scope")
@contextlib.contextmanager
def jit_scope(
    compile_ops: bool = True, separate_compiled_gradients: bool = False
) -> Iterator[None]:
    """A context in a graph, of which there is none: it raises, as eagerly in TensorFlow.

    Raises:
      RuntimeError: always, when it is entered.
    """
    raise RuntimeError(
        "xla.experimental.jit_scope is not supported when eager execution is enabled. Put what XLA"
        " is to compile into tf.function or, on JAX, jax.jit."
    )
    yield


@export("compat.v1.enable_control_flow_v2")
def enable_control_flow_v2() -> None:
    """Nothing: loops and branches are functions, as there."""


@export("compat.v1.global_variables_initializer")
def global_variables_initializer() -> None:
    """Nothing to run: variables have their values."""


PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
export("config.PhysicalDevice")(PhysicalDevice)


@export("config.list_physical_devices", "config.experimental.list_physical_devices")
def list_physical_devices(device_type: Any = None) -> list:
    """The processors: on JAX those of jax.devices, and always the CPU."""
    found = ["CPU", *(d.platform.upper() for d in jax.devices())] if JAX_MODE else ["CPU"]
    kinds = found[1:] if "CPU" in found[1:] else found
    counts: collections.Counter = collections.Counter()
    devices = []
    for kind in kinds:
        devices.append(PhysicalDevice(f"/physical_device:{kind}:{counts[kind]}", kind))
        counts[kind] += 1
    return [d for d in devices if device_type in (None, d.device_type)]


@export("python.framework.tensor_util.constant_value_as_shape")
def constant_value_as_shape(tensor: Any) -> TensorShape:
    """A shape that a tensor holds, with None for -1 and for what JAX traces.

    Raises:
      TypeError: it is a scalar.
    """
    known = get_static_value(tensor)
    if known is None:
        return TensorShape([None] * tensor.shape[0])
    return TensorShape([None if size == -1 else int(size) for size in np.asarray(known)])


_UTIL = "python.ops.control_flow_util"
export(f"{_UTIL}.ENABLE_CONTROL_FLOW_V2")(True)


@export(f"{_UTIL}.GraphOrParentsInXlaContext")
def in_xla_context(graph: Any) -> bool:
    """True on JAX, which compiles with XLA."""
    return JAX_MODE


@export(f"{_UTIL}.EnableControlFlowV2")
def control_flow_v2(graph: Any) -> bool:
    return True


@export("python.framework.tensor_util.try_evaluate_constant")
def try_evaluate_constant(tensor: Any) -> Any:
    return get_static_value(tensor)


@export("python.framework.tensor_util.constant_value")
def constant_value(tensor: Any, partial: bool = False) -> Any:
    return get_static_value(tensor)


@export("python.ops.array_ops.prevent_gradient")
def prevent_gradient(input: Any, message: str = "", name: Any = None) -> Any:
    """The value; asking for its derivative is refused on JAX."""
    return _refusing(convert(input), message) if JAX_MODE else stop_gradient(input)


def _refusing(value: Any, message: str) -> Any:
    identity = jax.custom_jvp(lambda x: x)

    @identity.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise LookupError(f"Gradient explicitly disabled. Reason: {message}")

    return identity(value)


@export("python.ops.parallel_for.control_flow_ops.pfor")
def pfor(
    loop_fn: Callable,
    iters: Any,
    fallback_to_while_loop: bool = True,
    parallel_iterations: Any = None,
    warn: bool = False,
) -> Any:
    """`loop_fn` of 0, 1, ... all at once, its results stacked."""
    return vectorized_map(loop_fn, tf_range(iters))


@export("python.ops.control_flow_case._case_helper")
def _case_helper(
    cond_fn: Callable,
    pred_fn_pairs: Any,
    default: Any,
    exclusive: bool,
    name: Any,
    allow_python_preds: bool = False,
    **cond_kwargs: Any,
) -> Any:
    """tf.case by way of another function for tf.cond."""
    pairs = list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    chosen = default
    for predicate, action in reversed(pairs):
        chosen = functools.partial(cond_fn, predicate, action, chosen)
    return chosen()


@export("python.framework.tensor_shape.as_shape")
def as_shape(shape: Any) -> TensorShape:
    return shapes.as_shape(shape)


@export("python.framework.tensor_shape.unknown_shape")
def unknown_shape(rank: Any = None, **kwargs: Any) -> TensorShape:
    return shapes.unknown_shape(kwargs.get("ndims", rank))


@export("config.experimental.tensor_float_32_execution_enabled")
def tensor_float_32_execution_enabled() -> bool:
    """False: how exact products are is the substrate's choice, and JAX's default is float32."""
    return False


class _VariableScope:
    caching_device = None
    reuse = False

    def set_caching_device(self, caching_device: Any) -> None:
        """Nothing: variables are where their values are."""


_SCOPE = _VariableScope()


@export("compat.v1.variable_scope")
class variable_scope:
    """A context that names variables as in TensorFlow 1, of which there are none here."""

    def __init__(
        self,
        name_or_scope: Any,
        default_name: Any = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: Any = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ):
        self._scope = _SCOPE

    def __enter__(self) -> Any:
        return self._scope

    def __exit__(self, *error: object) -> None:
        """Nothing to leave."""


@export("compat.v1.get_variable_scope")
def get_variable_scope() -> Any:
    return _SCOPE


@export("compat.v1.make_template")
def make_template(
    name_: Any,
    func_: Callable,
    create_scope_now_: bool = False,
    unique_name_: Any = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Callable:
    """The function: it makes no variables that could be shared."""
    return functools.partial(func_, **kwargs)
