"""Stores the weights of an ONNX model in fewer bits, with ops that convert them to float32."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from jax2tf._src.export import packages
from jax2tf._src.export.weights import in_half_bytes, is_weight, quantized

if TYPE_CHECKING:
    import onnx

    from jax2tf._src.export.onnx.storage import Parts

# ONNX Runtime's own domain has MatMulNBits, a product with a matrix of 4 bits. ONNX itself has
# such integers from opset 21 on.
_DOMAIN = "com.microsoft"
# The number of rows of a column that share a scale.
_BLOCK = 32


def store(parts: Parts, kind: str) -> None:
    """Stores the weights of a model in fewer bits.

    Args:
      parts: a model with float32 weights, which is changed in place.
      kind: "float16"; "int8_weights"; or "int4", with 4 bits for the weights of products and 8 for
        others.
    """
    onnx = packages.import_package("onnx", "the format 'onnx'")
    _Graph(onnx, parts, kind).store()
    if any(node.domain == _DOMAIN for node in nodes(parts.proto.graph)):
        parts.proto.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those of its loops and branches. Other attributes give an empty graph."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from graphs(inner)


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the graphs of its loops and branches."""
    return (node for inner in graphs(graph) for node in inner.node)


@dataclasses.dataclass(frozen=True)
class _Reader:
    """A node that reads a weight, and the position of the weight in its inputs."""

    node: onnx.NodeProto
    place: int

    @property
    def is_product(self) -> bool:
        """Whether the node multiplies rows with the weight."""
        return self.node.op_type == "MatMul" and self.place == 1


class _Graph:
    """A graph, with the graphs of its loops, whose weights are stored in fewer bits."""

    def __init__(self, onnx: ModuleType, parts: Parts, kind: str) -> None:
        self._onnx = onnx
        self._parts = parts
        self._graph = parts.proto.graph
        self._kind = kind

    def store(self) -> None:
        """Stores each weight once, in a form that all its readers accept."""
        if self._kind == "int4":
            for graph in graphs(self._graph):
                self._split_products(graph)
        readers = self._readers()
        results = {value.name for graph in graphs(self._graph) for value in graph.output}
        for graph in list(graphs(self._graph)):
            for name, tensor in list(self._constants(graph)):
                weights = self._parts.array(tensor)
                if is_weight(weights) and name not in results:
                    self._store(graph, name, tensor, weights, readers[name])

    def _constants(self, graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
        for tensor in graph.initializer:
            yield tensor.name, tensor
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                yield node.output[0], node.attribute[0].t

    def _readers(self) -> Mapping[str, list[_Reader]]:
        readers = collections.defaultdict(list)
        for node in nodes(self._graph):
            for place, name in enumerate(node.input):
                readers[name].append(_Reader(node, place))
        return readers

    def _store(
        self,
        graph: onnx.GraphProto,
        name: str,
        tensor: onnx.TensorProto,
        weights: np.ndarray,
        readers: Sequence[_Reader],
    ) -> None:
        if self._kind == "float16":
            half = weights.astype(np.float16)
            if np.isfinite(half).all():
                self._replace(graph, name, tensor, {"half": half}, "Cast", to=1)
        elif self._kind == "int4" and weights.ndim == 2 and all(r.is_product for r in readers):
            self._as_products(graph, name, tensor, weights, readers)
        else:
            axis = _axis(readers, weights.ndim)
            scales, numbers = quantized(weights, 8, axis)
            arrays = {"integers": numbers, "scales": scales.reshape(-1)}
            self._replace(graph, name, tensor, arrays, "DequantizeLinear", axis=axis)

    def _replace(
        self,
        graph: onnx.GraphProto,
        name: str,
        tensor: onnx.TensorProto,
        arrays: Mapping[str, np.ndarray],
        op: str,
        **attributes: object,
    ) -> None:
        """Replaces a constant with an op on other constants."""
        names = self._add(graph, name, arrays)
        self._remove(graph, name, tensor)
        node = self._onnx.helper.make_node(op, names, [name], f"{name}/{op}", **attributes)
        graph.node.insert(0, node)

    def _as_products(
        self,
        graph: onnx.GraphProto,
        name: str,
        tensor: onnx.TensorProto,
        weights: np.ndarray,
        readers: Sequence[_Reader],
    ) -> None:
        """Replaces the products with a weight by ONNX Runtime's MatMulNBits."""
        rows, columns = weights.shape
        blocks = -(-rows // _BLOCK)
        padded = np.pad(weights, ((0, blocks * _BLOCK - rows), (0, 0)))
        scales, numbers = quantized(padded.T.reshape(-1, _BLOCK), 4, axis=0)
        # MatMulNBits subtracts 8 from the stored integers.
        packed = in_half_bytes(numbers + 8).reshape(columns, blocks, -1)
        names = self._add(graph, name, {"integers": packed, "scales": scales.reshape(-1)})
        self._remove(graph, name, tensor)
        attributes = {"K": rows, "N": columns, "bits": 4, "block_size": _BLOCK}
        for reader in readers:
            node = reader.node
            node.op_type, node.domain = "MatMulNBits", _DOMAIN
            node.input[:] = [node.input[0], *names]
            node.attribute.extend(
                self._onnx.helper.make_attribute(key, value) for key, value in attributes.items()
            )

    def _split_products(self, graph: onnx.GraphProto) -> None:
        """Makes each Gemm of our writer a MatMul and an Add: MatMulNBits has no bias everywhere."""
        for i, node in reversed(list(enumerate(graph.node))):
            if node.op_type == "Gemm":
                *operands, bias = node.input
                product = f"{node.output[0]}/product"
                inner = self._onnx.helper.make_node("MatMul", operands, [product], product)
                node.op_type = "Add"
                node.input[:] = [product, bias]
                graph.node.insert(i, inner)

    def _add(
        self, graph: onnx.GraphProto, name: str, arrays: Mapping[str, np.ndarray]
    ) -> list[str]:
        """Adds constants; returns their names."""
        named = {f"{name}/{part}": array for part, array in arrays.items()}
        graph.initializer.extend(self._parts.tensor(key, array) for key, array in named.items())
        return list(named)

    def _remove(self, graph: onnx.GraphProto, name: str, tensor: onnx.TensorProto) -> None:
        """Removes a constant."""
        if tensor.name == name and any(t is tensor for t in graph.initializer):
            graph.initializer.remove(tensor)
            self._parts.arrays.pop(name, None)
            return
        (node,) = (n for n in graph.node if list(n.output) == [name])
        graph.node.remove(node)


def _axis(readers: Sequence[_Reader], rank: int) -> int:
    """The axis of a weight whose indices have different scales."""
    ops = {reader.node.op_type for reader in readers}
    if ops <= {"Conv", "Gather", "GatherND"}:
        return 0
    return 1 if "ConvTranspose" in ops else rank - 1
