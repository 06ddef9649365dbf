"""Makes the biases of full-integer LiteRT files fit into 32 bits.

The scale of a bias is that of the activations times that of the weights. Where the weights of a
channel are zero or tiny, as those of a channel that training has switched off, litert-quantizer
clips the bias of that channel.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File
from jax2tf._src.export.litert_files.tensor_names import source_of

# The places of the activations, the weights and the bias among the inputs of an op.
_PLACES: Mapping[str, tuple[int, int, int]] = {
    "CONV_2D": (0, 1, 2),
    "DEPTHWISE_CONV_2D": (0, 1, 2),
    "FULLY_CONNECTED": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1, 3),
}
# The kernels add products to the bias: it has a quarter of the 32 bits' range.
_MOST = 2**29


def fit(file: File, floats: Mapping[str, np.ndarray]) -> None:
    """Gives weights a larger scale where the bias of their channel asks for it.

    Args:
      file: a file of integers, which is changed.
      floats: the constants as float32, by the name of the tensor.
    """
    for graph in file.model.subgraphs:
        for op in graph.operators:
            places = _PLACES.get(file.name_of(op))
            if places is not None and len(op.inputs) > places[2] and op.inputs[places[2]] >= 0:
                _fit_bias(file, graph, op, places, floats)


def _fit_bias(
    file: File,
    graph: Table,
    op: Table,
    places: tuple[int, int, int],
    floats: Mapping[str, np.ndarray],
) -> None:
    x, weights, bias = (graph.tensors[int(op.inputs[place])] for place in places)
    of_weights, of_bias = (floats.get(source_of(tensor)) for tensor in (weights, bias))
    if file.type_of(bias) != "INT32" or of_weights is None or of_bias is None:
        return
    (scale_of_x,) = map(float, x.quantization.scale)
    scales = np.asarray(weights.quantization.scale, np.float64)
    needed = np.abs(of_bias.astype(np.float64)) / (scale_of_x * _MOST)
    if scales.size == 1:
        needed = needed.max(keepdims=True)
    if (needed <= scales).all():
        return
    scales = np.maximum(scales, needed)
    axis = weights.quantization.quantizedDimension if scales.size > 1 else 0
    shape = [1] * of_weights.ndim
    shape[axis] = scales.size
    numbers = np.clip(np.rint(of_weights / scales.reshape(shape)), -127, 127).astype(np.int8)
    both = scale_of_x * scales
    # Another op that reads the same weights keeps its own.
    changed = {
        places[1]: _stored(file, graph, weights, numbers, scales),
        places[2]: _stored(file, graph, bias, np.rint(of_bias / both).astype(np.int32), both),
    }
    op.inputs = np.array([changed.get(i, int(x)) for i, x in enumerate(op.inputs)], np.int32)


def _stored(file: File, graph: Table, like: Table, array: np.ndarray, scales: np.ndarray) -> int:
    """Adds a constant like another, with other numbers; returns its index."""
    tensor = copy.copy(like)
    tensor.quantization = copy.copy(like.quantization)
    tensor.quantization.scale = scales.astype(np.float32)
    tensor.buffer = file.new_buffer(array.reshape(-1).view(np.uint8))
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1
