"""Bytes and text of StableHLO modules as programs.

Portable artifacts (jax.export, SavedModels) hold VHLO, the versioned form of StableHLO; jaxlib
brings every version that it knows up to its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jax2tf._src.api.errors import LoadError
from jax2tf._src.stablehlo import attributes
from jax2tf._src.stablehlo.program import (
    Function,
    Op,
    Program,
    Region,
    TensorType,
    Type,
    captures_of,
)
from jax2tf._src.util.typing import PyTree

# Bytecode names its writer in its first bytes.
_HEADER = 64
_DIALECTS = ("stablehlo", "chlo", "vhlo", "func")
_VHLO_TO_STABLEHLO = (
    "builtin.module(vhlo-to-version{{target={version}}},vhlo-legalize-to-stablehlo)"
)


def program_of_artifact(artifact: bytes, origin: str) -> Program:
    """The program of a portable artifact or of MLIR bytecode.

    Raises:
      LoadError: the bytes are cut, of a newer version, or no module.
    """
    with mlir.make_ir_context() as context:
        try:
            module = stablehlo.deserialize_portable_artifact(context, artifact)
        except Exception as error:
            raise _unreadable(origin, error, _writer_of(artifact)) from error
        if module is None:
            raise _unreadable(origin, "the bytes are no module", _writer_of(artifact))
        return _Reader().program(module)


def program_of_text(text: str, origin: str) -> Program:
    """The program of a module as text, of StableHLO, CHLO and func, or of VHLO.

    Raises:
      LoadError: the text is no module of these dialects.
    """
    with mlir.make_ir_context():
        try:
            if "!quant." in text:  # jaxlib knows the types only after it ran the passes of VHLO
                _to_stablehlo(ir.Module.parse("module {}"))
            module = ir.Module.parse(text)
            if "vhlo." in text:
                _to_stablehlo(module)
        except ir.MLIRError as error:
            raise _of_another_dialect(text, error) or _unreadable(origin, error) from error
        return _Reader().program(module)


def _to_stablehlo(module: ir.Module) -> None:
    stablehlo.register_stablehlo_passes()
    version = stablehlo.get_current_version()
    passes = passmanager.PassManager.parse(_VHLO_TO_STABLEHLO.format(version=version))
    passes.run(module.operation)


def _writer_of(artifact: bytes) -> str:
    """What bytecode says about its writer, as in "It was written by StableHLO_v1.18.0." """
    name = re.search(rb"StableHLO_v[\d.]+", artifact[:_HEADER])
    return f" It was written by {name[0].decode()}." if name else ""


def _of_another_dialect(text: str, error: ir.MLIRError) -> LoadError | None:
    """The error for text that stops at an op of a dialect that this reader does not know."""
    found = re.search(r'"-":(\d+):(\d+)', str(error))
    if found is None:
        return None
    line, column = map(int, found.groups())
    # MLIR stops before the name of an op, or behind one in quotes.
    of_line = re.finditer(r"\b[a-z]\w*\.\w[\w.]*", text.splitlines()[line - 1])
    names = [m[0] for m in of_line if column - 1 == m.start() or column - 2 == m.end()]
    op = next(iter(names), None)
    if op is None or op.partition(".")[0] in _DIALECTS:
        return None
    return LoadError(
        f"jax2tf.load: cannot read the op {op}: its dialect is none of {', '.join(_DIALECTS)}. It "
        f"stands at line {line}, column {column}. What to do: write the module as StableHLO, with "
        "the tool that made it."
    )


def _unreadable(origin: str, error: object, writer: str = "") -> LoadError:
    reader = stablehlo.get_current_version()
    reason = str(error).strip().splitlines()[:3]
    return LoadError(
        f"jax2tf.load: {origin} is no StableHLO module that this jaxlib reads: "
        f"{' '.join(reason)}.{writer} This jaxlib reads versions up to {reader}. What to do: "
        "install a newer jaxlib if the file is of a newer version; otherwise write the file again."
    )


class _Reader:
    """Reads one module: gives each value a number and notes which op makes it."""

    def __init__(self) -> None:
        self._numbers: dict[PyTree, int] = {}
        self._definitions: dict[int, Op] = {}

    def program(self, module: ir.Module) -> Program:
        functions = {}
        for operation in module.body.operations:
            if operation.operation.name == "func.func":
                function = self._function(operation)
                functions[function.name] = function
        return Program(functions, self._definitions)

    def _function(self, operation: PyTree) -> Function:
        name = ir.StringAttr(operation.attributes["sym_name"]).value
        kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        region = operation.regions[0]
        if len(region.blocks) != 1:
            what = "no body" if len(region.blocks) == 0 else "branches between blocks"
            raise LoadError(
                f"jax2tf.load: cannot read the function {name}: it has {what}. What to do: write "
                "the model as one module of StableHLO."
            )
        try:
            types = tuple(attributes.type_of(result) for result in kind.results)
            return Function(name, self._region(region), types)
        except LookupError as error:
            raise LoadError(
                f"jax2tf.load: cannot read the function {name}: {error.args[0]}. What to do: write "
                "it with tensors of a known rank and of dtypes that JAX has."
            ) from error

    def _region(self, region: PyTree) -> Region:
        block = region.blocks[0]
        arguments = tuple(map(self._new, block.arguments))
        types = tuple(attributes.type_of(argument.type) for argument in block.arguments)
        ops: list[Op] = []
        results: tuple[int, ...] = ()
        for operation in block.operations:
            inner = operation.operation
            if inner.name in ("stablehlo.return", "func.return"):
                results = tuple(self._numbers[value] for value in inner.operands)
                continue
            ops.append(self._op(inner))
        captures = captures_of(arguments, ops, results)
        return Region(arguments, types, tuple(ops), results, captures)

    def _new(self, value: PyTree) -> int:
        number = self._numbers[value] = len(self._numbers)
        return number

    def _op(self, operation: PyTree) -> Op:
        place = str(operation.location)
        location = _location(place)
        try:
            op = Op(
                operation.name,
                tuple(self._numbers[value] for value in operation.operands),
                _types(operation.operands),
                tuple(map(self._new, operation.results)),
                _types(operation.results),
                dict(_attributes(operation)),
                tuple(self._region(region) for region in operation.regions),
                location,
                _primitive(place),
            )
        except LookupError as error:
            where = f" It stands at {location}." if location else ""
            raise LoadError(
                f"jax2tf.load: cannot read the op {operation.name}: {error.args[0]}.{where}"
            ) from error
        self._definitions.update(dict.fromkeys(op.results, op))
        return op


def _types(values: Iterable[PyTree]) -> tuple[Type, ...]:
    return tuple(attributes.type_of(value.type) for value in values)


def _attributes(operation: PyTree) -> Iterator[tuple[str, PyTree]]:
    if operation.name == "stablehlo.constant":
        yield "value", _constant(operation)
        return
    for name in operation.attributes:
        yield name, attributes.attribute(operation.attributes[name])


def _constant(operation: PyTree) -> PyTree:
    tensor = attributes.type_of(operation.results[0].type)
    assert isinstance(tensor, TensorType)
    if tensor.dtype.kind == "c":  # MLIR's Python objects have no attribute of complex numbers
        return attributes.elements_of_text(operation.get_asm(), tensor)
    return attributes.attribute(operation.attributes["value"])


def _location(text: str) -> str:
    """The first file and line that a location names, or its name."""
    if match := re.search(r'"([^"]+)":(\d+):\d+', text):
        return f"line {match[2]}" if match[1] == "-" else f"{match[1]}:{match[2]}"
    if match := re.search(r'loc\("([^"]+)"', text):
        return f"{match[1]!r}"
    return ""


def _primitive(text: str) -> str:
    """The last part of the name that a location starts with, as in `loc("jit(f)/lgamma"(...))`."""
    match = re.match(r'loc\("([^"]+)"\(', text)
    return match[1].rstrip(":").rpartition("/")[2] if match else ""
