"""The only module that touches private names of JAX or TensorFlow: one small thing each, with the
reason why no public name serves.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from jax import export
from jax._src import config as _jax_config
from jax._src import source_info_util as _source_info_util
from jax._src.interpreters import ad as _jax_ad
from jax._src.state import discharge as _discharge
from jax._src.state import types as _state_types
from jax.extend import core as jex_core
from tensorflow.compiler.mlir.stablehlo import stablehlo as _tf_stablehlo
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla as _tf_xla
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.compiler.xla.experimental import xla_sharding as _tf_xla_sharding
from tensorflow.python.eager import record as _tf_record
from tensorflow.python.framework import func_graph as _tf_func_graph
from tensorflow.python.framework import op_def_registry as _tf_op_def_registry
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.ops import control_flow_util as _tf_control_flow_util
from tensorflow.python.trackable import data_structures as _tf_data_structures

from jax2tf.errors import ConversionError

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
    return _jax_config.trace_context()


# What JAX names as the source of an operation is the first line outside of such folders: the caller
# of what call_tf made, and not call_tf itself.
_source_info_util.register_exclusion(str(pathlib.Path(__file__).parent / "call_tf"))


def user_source(eqn: jex_core.JaxprEqn) -> str:
    """`file:line (function)` of the user code that bound `eqn`; JAX prints it in its own errors."""
    return _source_info_util.summarize(eqn.source_info)


def name_stack(eqn: jex_core.JaxprEqn) -> str:
    """The named scopes and transformations around `eqn`, as JAX writes them into its HLO."""
    return str(eqn.source_info.name_stack)


def tape_may_record(tensors: list[Any]) -> bool:
    """Whether a GradientTape or ForwardAccumulator could record an operation on `tensors` now.

    Only TensorFlow's record module knows; without it each eager call would pay for a
    tf.custom_gradient that nobody watches.
    """
    return bool(_tf_record.should_record_backprop(tensors)) or bool(
        _tf_record.could_possibly_record()
    )


def tape_watches(tensors: list[Any]) -> bool:
    """Whether a GradientTape records an operation on `tensors` because of one of them."""
    return bool(_tf_record.should_record_backprop(tensors))


def nothing_recorded() -> contextlib.AbstractContextManager[None]:
    """A context in which no tape records; a public tape's stop_recording stops that tape alone."""
    return _tf_record.stop_recording()


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


def unwrap_module_container(leaf: Any) -> Any:
    """The plain dict, list or tuple inside a container that tf.Module wrapped on assignment.

    tf.Module's attribute tracking replaces them by private proxy types, which JAX's pytrees take
    for leaves. Anything else comes back as it is.
    """
    if not isinstance(leaf, _MODULE_CONTAINERS):
        return leaf
    plain = getattr(leaf, "__wrapped__", leaf)
    if isinstance(plain, dict):
        return dict(plain)
    if hasattr(plain, "_fields"):
        return plain
    return tuple(plain) if isinstance(plain, tuple) else list(plain)


def explicit_constraints(scope: export.SymbolicScope) -> tuple[str, ...]:
    """The constraints of a scope of dimension variables, as text; it only prints them."""
    return tuple(constraint.debug_str for constraint in scope._explicit_constraints)


def scan_arity(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many carry.

    JAX 0.12 tells it by a flat tree of a private class, earlier versions by two numbers.
    """
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts.vals), len(carry.vals)


def prng_impl(dtype: Any) -> Any:
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


def keep(op: Any) -> None:
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
    return _tf_stablehlo.get_current_version()


def xla_call_module_version() -> int:
    """The newest version of the XlaCallModule op that TensorFlow runs; no public name tells."""
    return _tf_xla.call_module_maximum_supported_version()


def is_implemented_by_jax(primitive: jex_core.Primitive) -> bool:
    """Whether the primitive has no implementation but JAX's own, which binds it again, or raises.

    JAX marks its own primitives by nothing but where their functions come from.
    """
    function = getattr(primitive.impl, "func", primitive.impl)  # opens a functools.partial
    return (getattr(function, "__module__", None) or "jaxlib").startswith(("jax._src", "jaxlib"))


def is_stateful_op(op: str) -> bool:
    """Whether TensorFlow keeps an op of this type although nobody uses its results.

    A node of a graph's inner function names its type alone, and only the registry knows more.
    """
    definition = _tf_op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def shardings_of(traced: Any) -> list[Any]:
    """What jax.jit was told of the shardings of arguments and results of the traced function.

    They are beside its jaxpr, and only a compiled function shows them by a public name.
    """
    return [*traced._params["in_shardings"], *traced._params["out_shardings"]]


def hlo_sharding(sharding: Any, rank: int) -> Any:
    """XLA's message for a jax.sharding.Sharding of an array of that rank.

    Public names tell the part of each device for sizes that are known, and a batch may not be.
    """
    proto = sharding._to_xla_hlo_sharding(rank).to_proto()
    return xla_data_pb2.OpSharding.FromString(proto.SerializeToString())


def xla_sharding(tensor: Any, proto: Any, unspecified_dims: Sequence[int] = ()) -> Any:
    """The tensor with an XlaSharding op behind it, which no public name makes."""
    sharding = _tf_xla_sharding.Sharding(proto=proto)
    dims = list(unspecified_dims)
    return sharding.apply_to_tensor(tensor, use_sharding_op=True, unspecified_dims=dims)


def tiled(tensor: Any, devices: np.ndarray) -> Any:
    """As `xla_sharding`, over the devices in an array with the tensor's number of dimensions."""
    return xla_sharding(tensor, _tf_xla_sharding.Sharding.tile(devices).proto)
