"""Collectives and the device's number, for programs of one device."""

from __future__ import annotations

import numpy as np

from jax2tf._src.stablehlo.evaluator import Step, takes_sizes
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree


@reads("stablehlo.partition_id", "stablehlo.replica_id")
def _device(step: Step) -> Array:
    return np.zeros((), np.uint32)


@reads(
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_reduce",
    "stablehlo.reduce_scatter",
    "stablehlo.cross-replica-sum",
)
@takes_sizes
def _among_one(
    step: Step, *operands: Array, replica_groups: PyTree, **attributes: PyTree
) -> list[Array]:
    """Of one device, a collective returns what it gets."""
    groups = np.asarray(replica_groups)
    if groups.size and (groups.ndim != 2 or groups.shape[1] != 1):
        raise step.refused(
            f"it joins {groups.shape[-1]} devices",
            "export the model for one device: without a mesh, or with a mesh of one device",
        )
    return list(operands)


@reads("stablehlo.collective_permute")
def _collective_permute(
    step: Step, x: Array, *, source_target_pairs: PyTree, channel_handle: str = ""
) -> Array:
    pairs = {tuple(map(int, pair)) for pair in np.asarray(source_target_pairs)}
    if pairs - {(0, 0)}:
        raise step.refused("it joins several devices", "export the model for one device")
    return x if pairs else np.zeros(x.shape, x.dtype)


def _register_refused(name: str, reason: str, remedy: str) -> None:
    @reads(name)
    @takes_sizes
    def rule(step: Step, *operands: PyTree, **attributes: PyTree) -> list[PyTree]:
        raise step.refused(reason, remedy)


for _name in ("infeed", "outfeed", "send", "recv"):
    _register_refused(
        f"stablehlo.{_name}",
        "it exchanges data with the host while it runs",
        "write the model without callbacks, infeed and outfeed",
    )


for _name in ("async_start", "async_done"):
    _register_refused(
        f"stablehlo.{_name}",
        "it exchanges data between devices while others compute",
        "export the model for one device: without a mesh, or with a mesh of one device",
    )


@reads("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier")
def _placement(step: Step, x: Array, **attributes: PyTree) -> Array:
    """Where an array lies does not change it."""
    return x
