"""XLA in TensorFlow: its ops, its messages, and the versions that it reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jax2tf._src.util.lazy_imports import LazyModule, tf
from jax2tf._src.util.typing import PyTree

_tf_stablehlo = LazyModule("tensorflow.compiler.mlir.stablehlo.stablehlo")
gen_xla_ops = LazyModule("tensorflow.compiler.tf2xla.ops.gen_xla_ops")
_tf_xla = LazyModule("tensorflow.compiler.tf2xla.python.xla")
xla_data_pb2 = LazyModule("tensorflow.compiler.xla.xla_data_pb2")
_tf_xla_sharding = LazyModule("tensorflow.python.compiler.xla.experimental.xla_sharding")

# The XLA ops have kernels on every device (compiled on demand), but no public names in TensorFlow.
xla_ops = gen_xla_ops


# The ops take XLA's own messages (dimension numbers, precisions), serialised.
xla_data = xla_data_pb2


def stablehlo_version() -> str:
    """The newest StableHLO that TensorFlow reads, as "1.13.7".

    Only the Python bindings of the StableHLO that TensorFlow was built with tell.
    """
    return str(_tf_stablehlo.get_current_version())


def xla_call_module_version() -> int:
    """The newest version of the XlaCallModule op that TensorFlow runs; no public name tells."""
    return int(_tf_xla.call_module_maximum_supported_version())


def xla_sharding(
    tensor: tf.Tensor, proto: PyTree, unspecified_dims: Sequence[int] = ()
) -> tf.Tensor:
    """The result of an XlaSharding op on the tensor, which no public name makes."""
    sharding = _tf_xla_sharding.Sharding(proto=proto)
    dims = list(unspecified_dims)
    return sharding.apply_to_tensor(tensor, use_sharding_op=True, unspecified_dims=dims)


def tiled(tensor: tf.Tensor, devices: np.ndarray) -> tf.Tensor:
    """Like `xla_sharding`, over the devices in an array of the tensor's rank."""
    return xla_sharding(tensor, _tf_xla_sharding.Sharding.tile(devices).proto)
