"""How far results that pass may be from JAX's: `tolerances.toml`, made of what runs saw.

A harness states how many ULPs the conditioning of its function allows. What is judged is often
nearer, and a change that takes it further away within that is a change all the same: a cell that
passes beyond the file's number is red. The file holds `MARGIN` times the largest error seen in the
cells of a primitive and a dtype on a device, and never less than `LEAST`, which is what harnesses
allow by default. It speaks of the modes and the lowering that every run has, on processors that
have the features of those that the runs were on: others add in another order.
"""

import collections
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tomlkit

from harnesses.cell.cells import modes_of
from harnesses.cell.names import DEFAULT_LOWERINGS, MODE_NAMES
from harnesses.cell.rows import Row
from harnesses.harness import DEFAULT_ULPS, Harness
from limitations import ledger
from limitations.ledger import TOLERANCES, LedgerError, has_features

MARGIN = 2
LEAST = DEFAULT_ULPS["float32"]

_HEADER = f"""\
How many ULPs results that pass may be from JAX's, where that is less than their harnesses allow:
{MARGIN} times the largest error that a run saw in cells of the primitive and dtype, and at least
{LEAST}. Written by `python -m limitations update`; limitations/tolerances.py says what it means."""

# A primitive and a dtype of its harnesses.
_Key = tuple[str, str]


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of one device.

    Attributes:
      device: cpu, gpu or tpu.
      processor: the features of the processors that it speaks of, as rows have them; None for all.
      ulps: the largest error that is allowed, by primitive and dtype.
    """

    device: str
    processor: str | None
    ulps: Mapping[_Key, float]

    def allowed(self, row: Row) -> float:
        """The largest error that the row's cell may have; infinite where nothing is said."""
        if row["device"] != self.device or not has_features(self.processor, row["processor"]):
            return math.inf
        return self.ulps.get(_key(row), math.inf) if _is_spoken_of(row) else math.inf


def load(folder: Path) -> list[Tolerances]:
    """The tolerances of an implementation's ledger, a device each; none where it has no file.

    Raises:
      LedgerError: for a file that holds anything else.
    """
    path = folder / f"{TOLERANCES}.toml"
    if not path.exists():
        return []
    return [_of_device(path, device, table) for device, table in ledger.read(path).items()]


def _of_device(path: Path, device: str, table: object) -> Tolerances:
    by_dtype = dict(table) if isinstance(table, dict) else {}
    processor = by_dtype.pop("processor", None)
    ulps = {}
    for dtype, of_primitives in by_dtype.items():
        for primitive, number in of_primitives.items() if isinstance(of_primitives, dict) else ():
            if not isinstance(number, int) or number < LEAST:
                raise LedgerError(
                    f"{path.name}: {device}.{dtype}: {primitive!r} should be a whole number of "
                    f"ULPs from {LEAST} on, got {number!r}"
                )
            ulps[primitive, dtype] = float(number)
    if not ulps:
        raise LedgerError(f"{path.name}: {device}: holds no table of a dtype with a number in it")
    return Tolerances(device, processor, ulps)


def whole_primitives(rows: Iterable[Row], harnesses: Iterable[Harness]) -> set[str]:
    """The primitives of which every cell ran, on each device that rows are of."""
    ran = {(row["harness"], row["device"], row["mode"]) for row in rows if _is_usual(row)}
    devices = {device for _, device, _ in ran}
    lowering = DEFAULT_LOWERINGS[0]
    lacking: dict[str, bool] = collections.defaultdict(bool)
    for harness in harnesses:
        modes = set(modes_of(harness, lowering)).intersection(MODE_NAMES)
        cells = {(harness.name, device, mode) for device in devices for mode in modes}
        lacking[harness.primitive] |= not cells <= ran
    return {primitive for primitive, lacks in lacking.items() if not lacks} if devices else set()


def tightened(
    tolerances: Sequence[Tolerances], rows: Iterable[Row], complete: Iterable[str]
) -> list[Tolerances]:
    """The tolerances that the rows call for, of the primitives of which all cells ran.

    No number grows: what is beyond it is red, and is mended or declared.

    Args:
      tolerances: those of before, a device each.
      rows: of runs; of each version of JAX that is to be allowed for.
      complete: the primitives.
    """
    whole = frozenset(complete)
    by_device: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row["outcome"] == "pass" and row["primitive"] in whole and _is_spoken_of(row):
            by_device[row["device"]].append(row)
    result = {each.device: each for each in tolerances}
    for device, of_device in by_device.items():
        before = result.get(device) or Tolerances(device, _features(of_device), {})
        after = _tightened(before, of_device)
        if after.ulps:
            result[device] = after
    return list(result.values())


def _tightened(before: Tolerances, rows: Iterable[Row]) -> Tolerances:
    errors: dict[_Key, float] = collections.defaultdict(float)
    stated: dict[_Key, float] = collections.defaultdict(float)
    for row in rows:
        key = _key(row)
        errors[key] = max(errors[key], row["ulps"])
        stated[key] = max(stated[key], row["tolerance"])
    ulps = dict(before.ulps)
    for key, error in errors.items():
        allowed = max(LEAST, math.ceil(MARGIN * error))
        if allowed < min(ulps.get(key, math.inf), stated[key]):
            ulps[key] = allowed
    return replace(before, ulps=ulps)


def _features(rows: Iterable[Row]) -> str | None:
    """The features of the processors that rows are of; None where none is known."""
    return " ".join(sorted({w for row in rows for w in (row["processor"] or "").split()})) or None


def write(folder: Path, tolerances: Sequence[Tolerances]) -> list[Path]:
    """Writes the file of an implementation's ledger anew; returns it if it changed."""
    path = folder / f"{TOLERANCES}.toml"
    if not tolerances:
        return []
    document = tomlkit.document()
    for line in _HEADER.splitlines():
        document.add(tomlkit.comment(line))
    for each in sorted(tolerances, key=lambda each: each.device):
        document.add(tomlkit.nl())
        document.add(each.device, _table(each))
    return [path] if ledger.replace(path, tomlkit.dumps(document)) else []


def _table(tolerances: Tolerances) -> tomlkit.items.Table:
    table = tomlkit.table()
    if tolerances.processor is not None:
        table.add("processor", tolerances.processor)
    by_dtype: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for (primitive, dtype), number in sorted(tolerances.ulps.items()):
        by_dtype[dtype][primitive] = int(number)
    for dtype in sorted(by_dtype):
        of_dtype = tomlkit.table()
        for primitive, number in by_dtype[dtype].items():
            of_dtype.add(tomlkit.key(primitive), number)
        table.add(dtype, of_dtype)
    return table


def _key(row: Row) -> _Key:
    return row["primitive"], row["dtype"]


def _is_usual(row: Row) -> bool:
    return row["lowering"] in DEFAULT_LOWERINGS and row["mode"] in MODE_NAMES


def _is_spoken_of(row: Row) -> bool:
    return _is_usual(row) and row["ulps"] is not None
