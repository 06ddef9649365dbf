"""TensorFlow's definitions of ops as graph/signatures.json holds them.

`python -m tests.impl.graph.definitions [OP ...]` writes the file anew, with more ops if some are
named.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tensorflow as tf

from jax2tf._src import compat
from jax2tf._src.graph import signatures


def definition(op: str) -> dict[str, Any]:
    """The entry of an op."""
    found = compat.graphs.op_definition(op)
    return {
        "operands": {x.name: _kind(x) for x in found.input_arg},
        "attributes": {x.name: _attribute(x) for x in found.attr},
        "results": {x.name: _kind(x) for x in found.output_arg},
    }


def _kind(argument: Any) -> str:
    """The attribute that holds the dtype or the dtypes, or the dtype; see `signatures`."""
    if argument.type_list_attr:
        return f"*{argument.type_list_attr}"
    dtype = argument.type_attr or tf.as_dtype(argument.type).name
    return f"{argument.number_attr}*{dtype}" if argument.number_attr else dtype


def _attribute(attribute: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": attribute.type}
    if attribute.HasField("default_value"):
        entry["default"] = _value(attribute.default_value)
    allowed = attribute.allowed_values.list
    if allowed.type:
        entry["allowed"] = [tf.as_dtype(x).name for x in allowed.type]
    if allowed.s:
        entry["allowed"] = [x.decode() for x in allowed.s]
    return entry


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(value.type).name
    if kind == "s":
        return value.s.decode()
    if kind == "shape":
        shape = value.shape
        return None if shape.unknown_rank else [None if d.size < 0 else d.size for d in shape.dim]
    if kind == "list":
        lists = value.list
        if lists.shape:
            raise NotImplementedError("a default list of shapes")
        types = [tf.as_dtype(x).name for x in lists.type]
        return [*types, *(x.decode() for x in lists.s), *lists.i, *lists.f, *lists.b]
    return getattr(value, kind)


def main(more: list[str]) -> None:
    known = signatures.FILE.read_text(encoding="utf-8") if signatures.FILE.exists() else "{}"
    entries = {op: definition(op) for op in sorted({*json.loads(known), *more})}
    lines = [f"  {json.dumps(op)}: {json.dumps(entry)}" for op, entry in entries.items()]
    signatures.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
