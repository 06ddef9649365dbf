"""XLA in TensorFlow: its ops, its messages, and the versions that it reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo as _tf_stablehlo
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla as _tf_xla
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.python.compiler.xla.experimental import xla_sharding as _tf_xla_sharding

from jax2tf._src.util.typing import PyTree

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
