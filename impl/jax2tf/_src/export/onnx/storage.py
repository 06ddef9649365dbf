"""Stores a model of ONNX without a copy of its large arrays, in one file or with a file beside it.

A file of protobuf holds less than 2 GB. The arrays of a larger model stand in a second file,
`m.onnx.data` beside `m.onnx`, which names it ("external data").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.onnx.pairs import data_beside, up_to_page

# Arrays of fewer bytes stay in the model, which shape inference reads.
_LARGE = 1 << 14
# Protobuf refuses files of 2 GB. The verification adds metadata, for which 4 kB stay free.
_MAX_FILE = 2**31 - 4096
# The fields of protobuf, with the wire type of what has a length.
_GRAPH, _INITIALIZER, _RAW_DATA = (number << 3 | 2 for number in (7, 5, 9))


@dataclasses.dataclass
class Parts:
    """A model and its large arrays.

    Attributes:
      proto: the model; the initialisers of large arrays have no data.
      arrays: the large arrays by the name of their initialiser.
    """

    proto: onnx.ModelProto
    arrays: dict[str, np.ndarray]

    def array(self, tensor: onnx.TensorProto) -> np.ndarray:
        """The array of an initialiser or of another tensor of the model."""
        array = self.arrays.get(tensor.name)
        return onnx.numpy_helper.to_array(tensor) if array is None else array

    def tensor(self, name: str, array: np.ndarray) -> onnx.TensorProto:
        """A tensor for an array that becomes a part of the model."""
        if array.nbytes < _LARGE or _is_packed(ir.DataType.from_numpy(array.dtype)):
            return onnx.numpy_helper.from_array(array, name)
        self.arrays[name] = array
        return onnx.TensorProto(
            name=name,
            dims=array.shape,
            data_type=onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
        )


def parts_of(model: ir.Model) -> Parts:
    """The parts of a model, whose large initialisers lose their arrays."""
    arrays = {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        assert tensor is not None
        if tensor.nbytes >= _LARGE and not _is_packed(tensor.dtype):
            arrays[name] = tensor.numpy()
            value.const_value = ir.ExternalTensor(
                "", None, None, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=name
            )
    proto = ir.to_proto(model)
    for tensor in proto.graph.initializer:
        if tensor.name in arrays:
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
    return Parts(proto, arrays)


def _is_packed(dtype: ir.DataType) -> bool:
    """Whether ONNX stores several elements in a byte, where NumPy takes a byte for each."""
    return dtype.bitwidth < 8


def check(parts: Parts) -> None:
    """Refuses a model that is not right; its large arrays are not read.

    Raises:
      onnx.checker.ValidationError, onnx.shape_inference.InferenceError: it is not right.
    """
    checked = onnx.ModelProto()
    checked.CopyFrom(parts.proto)
    for tensor in _taken(checked.graph, parts.arrays):
        kind = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        checked.graph.input.append(kind)
    onnx.checker.check_model(checked, full_check=True)


def content_of(model: ir.Model) -> bytes:
    """The content of a file with all arrays in it.

    Raises:
      onnx.checker.ValidationError, onnx.shape_inference.InferenceError: the model is not right.
    """
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def write(parts: Parts, target: Path, external: bool | None) -> None:
    """Writes a model.

    Args:
      parts: the model, which loses its large initialisers.
      target: the file; a file of the arrays stands beside it.
      external: whether the large arrays, if there are any, stand in a file of their own. None lets
        them where one file cannot hold them.

    Raises:
      ExportError: one file cannot hold them, and `external` is False.
    """
    size = sum(array.nbytes for array in parts.arrays.values()) + parts.proto.ByteSize()
    if external is False and size >= _MAX_FILE:
        raise ExportError(
            f"jax2tf.export: the model has {size / 2**30:.1f} GB, and one file of ONNX holds less "
            "than 2 GB. What to do: leave external_data=False out, so that the parameters stand "
            f"in {data_beside(target).name} beside the file"
        )
    if parts.arrays and (external or size >= _MAX_FILE):
        _write_beside(parts, target)
    else:
        _write_whole(parts, target)


def _write_beside(parts: Parts, target: Path) -> None:
    place = 0
    with data_beside(target).open("wb") as file:
        for tensor in parts.proto.graph.initializer:
            array = parts.arrays.get(tensor.name)
            if array is None:
                continue
            start = up_to_page(place)
            file.write(bytes(start - place))
            tensor.data_location = onnx.TensorProto.EXTERNAL
            described = {
                "location": data_beside(target).name,
                "offset": str(start),
                "length": str(array.nbytes),
            }
            for key, value in described.items():
                tensor.external_data.add(key=key, value=value)
            place = start + file.write(_bytes(array))
    target.write_bytes(_serialized(parts.proto))


def _write_whole(parts: Parts, target: Path) -> None:
    """Writes one file; what protobuf writes, with the large initialisers last."""
    graph = parts.proto.graph
    large = _taken(graph, parts.arrays)
    entries = [_entry(tensor, parts.arrays[tensor.name]) for tensor in large]
    inner = _serialized(graph)
    parts.proto.ClearField("graph")
    length = len(inner) + sum(len(start) + array.nbytes for start, array in entries)
    with target.open("wb") as file:
        file.write(_serialized(parts.proto) + bytes([_GRAPH]) + _varint(length) + inner)
        for start, array in entries:
            file.write(start)
            file.write(_bytes(array))


def _entry(tensor: onnx.TensorProto, array: np.ndarray) -> tuple[bytes, np.ndarray]:
    """An initialiser as a field of the graph, up to the bytes of the array."""
    start = _serialized(tensor) + bytes([_RAW_DATA]) + _varint(array.nbytes)
    return bytes([_INITIALIZER]) + _varint(len(start) + array.nbytes) + start, array


def _taken(graph: onnx.GraphProto, names: Mapping[str, np.ndarray]) -> list[onnx.TensorProto]:
    """The initialisers of these names, which are taken out of the graph."""
    large: list[onnx.TensorProto] = []
    others: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        (large if tensor.name in names else others).append(_copied(tensor))
    _set(graph, others)
    return large


def _copied(tensor: onnx.TensorProto) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    return copy


def _set(graph: onnx.GraphProto, tensors: Iterable[onnx.TensorProto]) -> None:
    del graph.initializer[:]
    graph.initializer.extend(tensors)


def _serialized(
    message: onnx.ModelProto | onnx.GraphProto | onnx.TensorProto,
) -> bytes:
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F)
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
