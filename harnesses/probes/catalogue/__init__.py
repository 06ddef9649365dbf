"""The uses of every op that graphs are made of."""

from __future__ import annotations

import functools
import itertools

from harnesses.probes.catalogue import (
    arrays,
    control_flow,
    elementwise,
    indexing,
    matrices,
    networks,
    reductions,
)
from harnesses.probes.probe import Probe

_MODULES = (elementwise, arrays, indexing, reductions, matrices, networks, control_flow)


class CatalogueError(ValueError):
    """The catalogue says a use twice, or has no plain use of an op."""


@functools.cache
def catalogue() -> dict[str, Probe]:
    """All uses, by name.

    Raises:
      CatalogueError: two uses have one name, or an op has special uses alone.
    """
    probes = list(itertools.chain.from_iterable(module.probes() for module in _MODULES))
    named = {probe.name: probe for probe in probes}
    if len(named) < len(probes):
        names = [probe.name for probe in probes]
        raise CatalogueError(f"used twice: {', '.join({n for n in names if names.count(n) > 1})}")
    special = {probe.op for probe in probes} - named.keys()
    if special:
        raise CatalogueError(f"without a plain use: {', '.join(sorted(special))}")
    return named
