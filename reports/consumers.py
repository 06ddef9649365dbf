"""reports/tables/consumers.md: what each engine that reads TensorFlow graphs takes.

It is made of the database and of the ledger's files of the engines, for the cells that runs of
`command` prove: of the dtypes and families of a model for inference, a sample that stays the same.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harnesses.engine.cells import CONSUMER_MODES, JAX_SIDE, Cell, sampled
from harnesses.engine.results import VERSIONS, row_of
from harnesses.harness import Harness
from limitations.check import LedgerIndex
from limitations.ledger import Limitation
from reports import rendering
from reports.results import Row

TABLE = "consumers.md"

FAMILIES = (
    "elementwise",
    "arrays",
    "reductions",
    "cumulative",
    "contractions",
    "convolution",
    "windows",
    "indexing",
    "scatter",
    "sorting",
    "control_flow",
)
DTYPES = ("float32", "int32")
SAMPLE = 250
# Of these, every harness of the families was run, not the sample alone.
WHOLE = ("litert", "onnx", "openvino", "tfjs")
# The environments of tox, and the engines that each has.
ENVIRONMENTS = {
    "consumers": tuple(mode for mode in CONSUMER_MODES if mode != "tfjs"),
    "tfjs": ("tfjs",),
}


def command(environment: str) -> str:
    """The command that proves the table for the engines of an environment."""
    parts = (
        "python -m harnesses run --lowering no_xla",
        *(f"--mode {mode}" for mode in ENVIRONMENTS[environment]),
        *(f"--family {family}" for family in FAMILIES),
        *(f"--dtype {dtype}" for dtype in DTYPES),
        f"--sample {SAMPLE}",
    )
    return " ".join(parts)


_Member = TypeVar("_Member")
_Key = TypeVar("_Key", bound=Hashable)

_NO_VERSIONS: Row = dict.fromkeys(VERSIONS)


@dataclass(frozen=True)
class Share:
    """How many of some cells pass."""

    passed: int
    cells: int

    def __str__(self) -> str:
        return f"{self.passed} of {self.cells} ({self.passed / self.cells:.1%})"

    @property
    def word(self) -> str:
        """yes, no, or a count."""
        if self.passed in (0, self.cells):
            return "yes" if self.passed else "no"
        return f"{self.passed} of {self.cells}"


@dataclass(frozen=True)
class PrimitiveRow:
    """A primitive in a dtype, and what each engine makes of it."""

    primitive: str
    dtype: str
    words: Sequence[str]


def is_of_engines(limitation: Limitation) -> bool:
    """Whether the limitation speaks of engines alone."""
    return bool(limitation.modes) and set(limitation.modes) <= set(CONSUMER_MODES)


def consumer_files(
    harnesses: Sequence[Harness], limitations: Sequence[Limitation]
) -> dict[str, str]:
    """The file of the table, by name."""
    # The table is the same whatever versions it is made on: what some lack counts for all.
    everywhere = [dataclasses.replace(entry, jax=None, tensorflow=None) for entry in limitations]
    index = LedgerIndex(everywhere)
    there_are = [h for h in harnesses if h.family in FAMILIES and h.dtype.name in DTYPES]
    whole = [h for h in there_are if not _jax_lacks(h, index)]
    sample = {h.name for h in sampled(there_are, SAMPLE)}
    asked = [h for h in whole if h.name in sample]
    passing = {mode: _passing(mode, whole, index) for mode in CONSUMER_MODES}
    of_whole = {mode: passing[mode] for mode in WHOLE}
    families = _grouped(asked, lambda harness: harness.family)
    shares = [(f, _shares(families[f], passing)) for f in FAMILIES if f in families]
    text = rendering.render(
        TABLE,
        engines=CONSUMER_MODES,
        dtypes=DTYPES,
        harnesses=len(asked),
        shares=[*shares, ("all", _shares(asked, passing))],
        whole=dict(zip(WHOLE, _shares(whole, of_whole), strict=True)),
        rows=_rows(asked, passing),
        limitations=_by_engine(filter(is_of_engines, limitations)),
        commands={name: command(name) for name in ENVIRONMENTS},
    )
    return {TABLE: text}


def _passing(mode: str, harnesses: Sequence[Harness], index: LedgerIndex) -> Mapping[str, bool]:
    """For each harness, by name, whether the engine gives JAX's result."""
    return {harness.name: not _matching(harness, mode, index) for harness in harnesses}


def _jax_lacks(harness: Harness, index: LedgerIndex) -> bool:
    entries = _matching(harness, CONSUMER_MODES[0], index)
    return any(entry.side == JAX_SIDE for entry in entries)


def _matching(harness: Harness, mode: str, index: LedgerIndex) -> list[Limitation]:
    return index.matching(row_of(Cell(harness, "cpu", "no_xla", mode), _NO_VERSIONS))


def _shares(
    harnesses: Iterable[Harness], passing: Mapping[str, Mapping[str, bool]]
) -> Sequence[Share]:
    names = [harness.name for harness in harnesses]
    return [Share(sum(of[name] for name in names), len(names)) for of in passing.values()]


def _rows(
    harnesses: Sequence[Harness], passing: Mapping[str, Mapping[str, bool]]
) -> list[PrimitiveRow]:
    groups = _grouped(harnesses, lambda harness: (harness.primitive, harness.dtype.name))
    return [
        PrimitiveRow(primitive, dtype, [share.word for share in _shares(members, passing)])
        for (primitive, dtype), members in sorted(groups.items())
    ]


def _by_engine(limitations: Iterable[Limitation]) -> list[tuple[str, list[Limitation]]]:
    """What fails in each engine, by reason and then by primitive."""
    groups = _grouped(limitations, lambda limitation: ", ".join(limitation.modes))
    return [
        (modes, sorted(members, key=lambda entry: (entry.reason, entry.primitive)))
        for modes, members in sorted(groups.items())
    ]


def _grouped(
    members: Iterable[_Member], key: Callable[[_Member], _Key]
) -> dict[_Key, list[_Member]]:
    groups: dict[_Key, list[_Member]] = collections.defaultdict(list)
    for member in members:
        groups[key(member)].append(member)
    return groups
