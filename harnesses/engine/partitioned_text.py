"""What a StableHLO module says of a mesh: partitions, shardings and collectives, in program order.

A module for a mesh runs on as many devices as it has partitions. Where there are not so many, what
can be proved of it is what it says. Everything else of it (the arithmetic between the collectives)
the other modes run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

_SHARDY = "sdy."
_PARTITIONS = "mhlo.num_partitions"
# Attributes by which an argument, a result or an operation says how it is spread.
_SHARDINGS = ("sdy.sharding", "mhlo.sharding")
# Operations that speak of devices, beside those of Shardy.
_COLLECTIVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute"),
        *("partition_id", "recv", "reduce_scatter", "replica_id", "send"),
    )
)
# Custom calls by which GSPMD is told of shardings, and of where a program of each device begins.
_OF_GSPMD = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
_CALL = "stablehlo.custom_call"
# JAX and a converter may divide the same program into other functions.
_PASSES = "builtin.module(inline,symbol-dce,strip-debuginfo)"


@dataclass(frozen=True)
class PartitionedText:
    """What a module says of its mesh.

    Attributes:
      partitions: their number.
      partitioner: "shardy" or "gspmd", by which the shardings are to be read; "none" where there
        are none.
      arguments: the sharding of each argument, "" where there is none.
      results: the same for the results.
      operations: the meshes, constraints, programs of each device and collectives, in the order of
        the program.
    """

    partitions: int
    partitioner: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    operations: tuple[str, ...]

    def difference(self, expected: "PartitionedText") -> str | None:
        """The first thing that is not as in the other, in words; None where all is."""
        for name in ("partitions", "partitioner"):
            if getattr(self, name) != getattr(expected, name):
                return f"{name}: {getattr(self, name)}, not {getattr(expected, name)}"
        for name in ("arguments", "results", "operations"):
            found, wanted = getattr(self, name), getattr(expected, name)
            for i, (one, other) in enumerate(zip(found, wanted, strict=False)):
                if one != other:
                    return f"{name}[{i}]: {one or 'no sharding'}, not {other or 'no sharding'}"
            if len(found) != len(wanted):
                return f"{name}: there are {len(found)}, not {len(wanted)}"
        return None


def read(serialized: bytes, kept: Sequence[int]) -> PartitionedText:
    """What a serialised module says of its mesh.

    Args:
      serialized: a portable artifact of StableHLO.
      kept: which arguments to look at, by number; negative ones count from the last.
    """
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, serialized)
        passmanager.PassManager.parse(_PASSES).run(module.operation)
        attributes: Any = module.operation.attributes
        partitions = attributes[_PARTITIONS].value if _PARTITIONS in attributes else 1
        main = _main(module)
        arguments = _shardings(main, "arg_attrs", len(main.arguments))
        results = _shardings(main, "res_attrs", len(main.type.results))
        operations = tuple(map(_described, _of_meshes(module.operation)))
        kept_arguments = tuple(arguments[i] for i in kept)
        said = " ".join((*kept_arguments, *results, *operations))
        return PartitionedText(partitions, _partitioner(said), kept_arguments, results, operations)


def _main(module: ir.Module) -> Any:
    (main,) = (op for op in module.body.operations if str(op.name) == '"main"')
    return main


def _shardings(function: Any, name: str, count: int) -> tuple[str, ...]:
    if name not in function.attributes:
        return ("",) * count
    return tuple(_sharding(ir.DictAttr(each)) for each in function.attributes[name])


def _sharding(attributes: Any) -> str:
    return " ".join(f"{name}={attributes[name]}" for name in _SHARDINGS if name in attributes)


def _partitioner(said: str) -> str:
    if "sdy" in said:
        return "shardy"
    return "gspmd" if "mhlo.sharding" in said else "none"


def _of_meshes(operation: Any) -> Iterator[Any]:
    found: list[Any] = []

    def visit(op: Any) -> ir.WalkResult:
        if _is_of_meshes(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(found)


def _is_of_meshes(op: Any) -> bool:
    if op.name == _CALL:
        return op.attributes["call_target_name"].value in _OF_GSPMD
    return op.name in _COLLECTIVES or (op.name.startswith(_SHARDY) and op.name != "sdy.return")


def _described(op: Any) -> str:
    """An operation by its name, its attributes and the types of operands and results."""
    attributes = ", ".join(sorted(f"{name} = {op.attributes[name]}" for name in op.attributes))
    given = ", ".join(str(operand.type) for operand in op.operands)
    made = ", ".join(str(result.type) for result in op.results)
    how = f" by {combined}" if (combined := _combined_by(op)) else ""
    return f"{op.name} {{{attributes}}} ({given}) -> ({made}){how}"


def _combined_by(op: Any) -> str:
    """The operations by which a collective combines numbers: a sum differs from a maximum there."""
    if op.name not in _COLLECTIVES:
        return ""
    blocks = [block for region in op.regions for block in region.blocks]
    return ", ".join(inner.name for block in blocks for inner in block.operations)
