"""Names of tensors that no other tensor of the file has, which litert-quantizer asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File

# The first word of the names in graphs of signatures, and in those of loops and branches.
OWN, INNER = "own", "inner"


def name_of(kind: str, graph: int, tensor: int) -> str:
    """The name of a tensor by its graph and its place there."""
    return f"{kind}/{graph}/{tensor}/"


def source_of(tensor: Table) -> str:
    """The name of the tensor from which litert-quantizer made one; its own if it was there."""
    found = re.match(rf"({OWN}|{INNER})/\d+/\d+/", tensor.name.decode())
    assert found, tensor.name
    return found[0]


def rename(file: File) -> dict[str, bytes]:
    """Gives each tensor a name of its own; returns the old names by the new ones."""
    own = {signature.subgraphIndex for signature in file.model.signatureDefs}
    names: dict[str, bytes] = {}
    for g, graph in enumerate(file.model.subgraphs):
        for t, tensor in enumerate(graph.tensors):
            name = name_of(OWN if g in own else INNER, g, t)
            names[name], tensor.name = tensor.name, name.encode()
    return names


def restore(file: File, names: Mapping[str, bytes]) -> None:
    """Gives tensors their old names, with the ending that litert-quantizer gave to new ones."""
    for graph in file.model.subgraphs:
        for tensor in graph.tensors:
            source = source_of(tensor)
            tensor.name = names[source] + tensor.name[len(source) :]
