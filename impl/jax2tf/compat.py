"""The only module that touches private names of JAX or TensorFlow: one small thing each, with the
reason why no public name serves.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jax._src import config as _jax_config
from jax._src import source_info_util as _source_info_util
from jax.extend import core as jex_core
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.python.eager import record as _tf_record
from tensorflow.python.trackable import data_structures as _tf_data_structures

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


def scan_arity(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many carry.

    JAX 0.12 tells it by a flat tree of a private class, earlier versions by two numbers.
    """
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts.vals), len(carry.vals)
