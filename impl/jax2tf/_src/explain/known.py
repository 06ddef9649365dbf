"""Reads the ledger of limitations, which the package contains as data.

`python -m reports tables` writes the data.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterable

from jax2tf._src.explain.report import Limitation
from jax2tf._src.targets.target import Target
from jax2tf._src.util.lru import cached

FILE = importlib.resources.files("jax2tf._src.explain") / "limitations.json"

# A primitive and the dtypes of an equation's operands and results.
Use = tuple[str, frozenset[str]]


def touching(uses: Iterable[Use], target: Target) -> tuple[Limitation, ...]:
    """The limitations of a target that concern one of the uses."""
    used = list(uses)
    found = []
    for entry, where in _ledger():
        if target.name not in where and target.op_set not in where:
            continue
        if any(name == entry.primitive and dtypes & set(entry.dtypes) for name, dtypes in used):
            found.append(entry)
    return tuple(found)


def of_primitive(name: str, where: str) -> list[Limitation]:
    """The limitations of a primitive in an op set or an engine, for `gradient` or for `poly`."""
    return [entry for entry, places in _ledger() if entry.primitive == name and where in places]


@cached
def _ledger() -> list[tuple[Limitation, frozenset[str]]]:
    """Each limitation, with the names of the op sets or engines that have it."""
    return [
        (
            Limitation(e["primitive"], tuple(e["dtypes"]), e["expect"], e["reason"]),
            frozenset(e["where"]),
        )
        for e in json.loads(FILE.read_text(encoding="utf-8"))
    ]
