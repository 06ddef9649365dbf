"""The engines of the judge as targets of `convert`, and what is in their files."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import ai_edge_litert.schema_py_generated


def target_of(engine: str) -> str:
    """The name of the target for an engine of harnesses.engine.consumers."""
    return "tensorflow" if engine == "savedmodel" else engine


def litert_ops(path: pathlib.Path) -> Iterator[tuple[str, set[str]]]:
    """The ops of a LiteRT file with the dtypes of what they take and give."""
    schema = ai_edge_litert.schema_py_generated
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))
    ops, types = (
        {v: name for name, v in vars(enum).items() if isinstance(v, int)}
        for enum in (schema.BuiltinOperator, schema.TensorType)
    )
    for graph in model.subgraphs:
        for op in graph.operators:
            code = model.operatorCodes[op.opcodeIndex]
            tensors = [graph.tensors[i] for i in (*op.inputs, *op.outputs) if i >= 0]
            name = ops[max(code.builtinCode, code.deprecatedBuiltinCode)]
            yield name, {types[tensor.type] for tensor in tensors}
