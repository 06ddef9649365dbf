"""Reads the ledger: entries of TOML files as `Limitation`s that know which rows they match."""

import fnmatch
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harnesses.cell.names import (
    ASKED_MODES,
    CALL_TF_MODES,
    CONSUMER_MODES,
    DEFAULT_IMPLEMENTATION,
    DEVICES,
    DIRECT,
    GRADIENT,
    GROUPS,
    JAX_SIDE,
    LOWERINGS,
    MODE_NAMES,
    SAVED_GRADIENT,
    SUBSTRATE_LOWERINGS,
    SUBSTRATE_MODES,
    TAPE_MODES,
    TRANSFORMED_MODES,
)
from harnesses.cell.rows import PARAMS_SEPARATOR, PROCESSOR_FEATURES, Row
from harnesses.harness import CALL_TF, CONVERT, SUBSTRATES, place

FOLDER = Path(__file__).parent
# Primitives of JAX that no harness asks about, with the reason; no file of limitations.
UNCOVERED = "uncovered"
GAPS = "gaps"
# Of TensorFlow's public symbols, those that the substrates lack, or that no harness asks about.
SYMBOLS = "symbols"
# How far results that pass may be from JAX's; see limitations/tolerances.py.
TOLERANCES = "tolerances"
_NO_LIMITATIONS = frozenset({UNCOVERED, GAPS, SYMBOLS, TOLERANCES})

EXPECTATIONS = ("error", "mismatch", "crash", "timeout")
PHASES = ("trace", "lower", "run")
SIDES = ("tensorflow", JAX_SIDE)
# What an entry may say for several modes.
_TOGETHER = {**GROUPS, GRADIENT: (*GROUPS[GRADIENT], SAVED_GRADIENT)}


# Files that are of no family stand in a folder of their kind.
_DIRECTIONS = "directions"
KINDS: Mapping[str, Collection[str]] = {
    "engines": CONSUMER_MODES,
    "devices": DEVICES,
    "lowerings": LOWERINGS,
    _DIRECTIONS: (CALL_TF, SUBSTRATES),
}


class LedgerError(ValueError):
    """An entry that is malformed; the message names file, entry and key."""


@dataclass(frozen=True)
class Limitation:
    """One entry: the cells that it matches, and how it expects them to fail."""

    where: str  # its id, such as "elementwise#3": the file and the number of the entry, from 1
    primitive: tuple[str, ...]
    expect: str
    reason: str
    harness: tuple[str, ...] = ()  # globs of names
    params: Mapping[str, str] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    lowerings: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    x64: bool | None = None
    jax: str | None = None
    tensorflow: str | None = None
    processor: str | None = None  # features that it has, and "!feature" for one that it has not
    side: str = "tensorflow"
    phase: str | None = None
    exception: str | None = None
    message: str | None = None
    ulps: float | None = None
    note: str | None = None
    link: str | None = None

    @property
    def family(self) -> str:
        """The name of the file that holds the entry."""
        return self.where.rpartition("#")[0]

    @property
    def expectation(self) -> tuple:
        """What is expected of a matching cell; equal for entries that expect the same."""
        return self.expect, self.phase, self.exception, self.message, self.ulps

    def matches(self, row: Row) -> bool:
        """Whether the entry speaks of the row's cell, whatever came of it.

        An entry of the side "tensorflow" does not speak of cells that JAX itself cannot run.
        """
        return (
            row["primitive"] in self.primitive
            and (self.side == JAX_SIDE or (row["mode"] != JAX_SIDE and row["phase"] != "trace"))
            and (not self.dtypes or row["dtype"] in self.dtypes)
            and (not self.devices or row["device"] in self.devices)
            and (not self.lowerings or row["lowering"] in self.lowerings)
            and self._matches_mode(row["mode"])
            and (self.x64 is None or row["x64"] == self.x64)
            and self.names(row["harness"])
            and self._matches_params(row)
            and self.holds_for(row)
        )

    def holds_for(self, versions: Row) -> bool:
        """Whether the entry speaks of the versions of JAX and TensorFlow that the row names, and of
        its processor.
        """
        return (
            _contains(self.jax, versions["jax"])
            and _contains(self.tensorflow, versions["tensorflow"])
            and has_features(self.processor, versions["processor"])
        )

    def explains(self, row: Row) -> bool:
        """Whether the row's cell is matched and failed as the entry expects."""
        return self.matches(row) and self.expects(row)

    def expects(self, row: Row) -> bool:
        """Whether the row's outcome is the expected one."""
        return (
            row["outcome"] == self.expect
            and self.phase in (None, row["phase"])
            and self.exception in (None, row["exception"])
            and (self.message is None or re.search(self.message, row["message"] or "") is not None)
            and (self.ulps is None or (row["ulps"] is not None and row["ulps"] <= self.ulps))
        )

    def names(self, name: str) -> bool:
        """Whether the entry may speak of a harness of that name."""
        return not self.harness or matches_glob(name, self.harness)

    def _matches_mode(self, mode: str) -> bool:
        # What holds for a harness need not hold for its gradient, nor in another engine: that has
        # to be said.
        if not self.modes:
            asked = TRANSFORMED_MODES if self.side == JAX_SIDE else ASKED_MODES
            return mode not in (*asked, *TAPE_MODES)
        return mode in self.modes or any(mode in _TOGETHER.get(name, ()) for name in self.modes)

    def _matches_params(self, row: Row) -> bool:
        present = row["params"].split(PARAMS_SEPARATOR) if self.params else ()
        return all(f"{key}={value}" in present for key, value in self.params.items())


def folder_of(impl: str | None, given: str | Path | None = None) -> Path:
    """The folder of an implementation's ledger: the one given, or its own in `place.LEDGERS`.

    Where it has none there, the one that the judge brought along.

    One that nobody has begun is not there, and its ledger is empty.
    """
    if given is not None:
        return Path(given)
    if impl in (None, DEFAULT_IMPLEMENTATION):
        return FOLDER
    own, shipped = place.LEDGERS / str(impl), FOLDER / str(impl)
    return shipped if shipped.is_dir() and not own.is_dir() else own


def load(
    folder: Path | None = None,
    direction: str = CONVERT,
    *,
    families: Iterable[str] | None = None,
) -> list[Limitation]:
    """The limitations of all families of a direction, or of the given ones.

    Raises:
      LedgerError: for an entry that is malformed, has an unknown key, or lacks a reason.
    """
    wanted = None if families is None else set(families)
    limitations: list[Limitation] = []
    for path in files(folder or FOLDER, direction):
        if wanted is None or path.stem in wanted:
            limitations += load_file(path)
    return limitations


def files(folder: Path, direction: str) -> list[Path]:
    """The files of a direction's limitations, by name."""
    if direction != CONVERT:
        path = path_of(folder, direction)
        return [path] if path.exists() else []
    found = [path for path in all_files(folder) if path.parent.name != _DIRECTIONS]
    return sorted((p for p in found if p.stem not in _NO_LIMITATIONS), key=lambda path: path.stem)


def all_files(folder: Path) -> list[Path]:
    """The files of a ledger, those included that hold no limitations."""
    places = (folder, *(folder / kind for kind in KINDS))
    return sorted(path for place in places for path in place.glob("*.toml"))


def path_of(folder: Path, name: str) -> Path:
    """Where the file of a family, or of an engine, device, lowering or direction stands."""
    kind = next((kind for kind, names in KINDS.items() if name in names), "")
    return folder / kind / f"{name}.toml"


def file_of(row: Row) -> str:
    """The name of the file for what a cell calls for: its family's, or that of its engine."""
    is_own = row["mode"] in CONSUMER_MODES and row["phase"] != "trace"
    return row["mode"] if is_own else row["family"]


def load_file(path: Path) -> list[Limitation]:
    """The limitations of one file; raises as `load` does."""
    entries = _read(path, "limitation")
    return [_limitation(path, number, entry) for number, entry in enumerate(entries, start=1)]


def load_uncovered(folder: Path | None = None) -> dict[str, str]:
    """The reason for each primitive and function that no harness covers, from `uncovered.toml`."""
    path = (folder or FOLDER) / f"{UNCOVERED}.toml"
    reasons: dict[str, str] = {}
    for number, entry in enumerate(_read(path, "uncovered") if path.exists() else [], start=1):
        refuse = _Refusal(path, number)
        names = [*entry.get("primitives", ()), *entry.get("functions", ())]
        for key, given in (("primitives", names), ("reason", entry.get("reason"))):
            if not given:
                raise refuse(key, "is missing or empty")
        reasons |= dict.fromkeys(names, entry["reason"])
    return reasons


@dataclass(frozen=True)
class GapReason:
    """Why some gaps of the database stay: those whose primitive and words match a glob of each."""

    primitives: tuple[str, ...]
    gaps: tuple[str, ...]
    reason: str

    def explains(self, primitive: str, gap: str) -> bool:
        """Whether it speaks of that gap of that primitive."""
        return matches_glob(primitive, self.primitives) and matches_glob(gap, self.gaps)


def load_gap_reasons(folder: Path | None = None) -> list[GapReason]:
    """The reasons for what `python -m harnesses gaps` may leave out, from `gaps.toml`.

    Raises:
      LedgerError: for an entry that lacks a key.
    """
    path = (folder or FOLDER) / f"{GAPS}.toml"
    reasons = []
    for number, entry in enumerate(_read(path, "gap") if path.exists() else [], start=1):
        for key in ("primitives", "gaps", "reason"):
            if not entry.get(key):
                raise _Refusal(path, number)(key, "is missing or empty")
        reasons.append(GapReason(tuple(entry["primitives"]), tuple(entry["gaps"]), entry["reason"]))
    return reasons


@dataclass(frozen=True)
class SymbolReason:
    """Why public symbols of TensorFlow, those that match a glob, are "absent" or "unasked"."""

    kind: str
    symbols: tuple[str, ...]
    reason: str

    def explains(self, kind: str, symbol: str) -> bool:
        """Whether it speaks of a symbol that is absent or unasked."""
        return kind == self.kind and matches_glob(symbol, self.symbols)


def load_symbol_reasons(folder: Path | None = None) -> list[SymbolReason]:
    """The reasons for symbols that the substrates lack, or no harness asks about.

    Raises:
      LedgerError: for an entry that lacks a key.
    """
    path = (folder or FOLDER) / f"{SYMBOLS}.toml"
    reasons = []
    for kind in ("absent", "unasked"):
        entries = _read(path, "absent", "unasked", of=kind) if path.exists() else []
        for number, entry in enumerate(entries, start=1):
            for key in ("symbols", "reason"):
                if not entry.get(key):
                    raise _Refusal(path, number)(key, "is missing or empty")
            reasons.append(SymbolReason(kind, tuple(entry["symbols"]), entry["reason"]))
    return reasons


def matches_glob(text: str, globs: Iterable[str]) -> bool:
    """Whether a text matches one of the globs, in the case of its letters too."""
    return any(fnmatch.fnmatchcase(text, glob) for glob in globs)


def read(path: Path) -> dict[str, Any]:
    """What a TOML file of a ledger holds.

    Raises:
      LedgerError: it is no TOML, no text in UTF-8, or no file.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise LedgerError(f"{path.name}: {error}") from error


def replace(path: Path, text: str) -> bool:
    """Writes a file of a ledger beside it and renames it; whether that changed it."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return True


def _read(path: Path, *tables: str, of: str | None = None) -> list[dict[str, Any]]:
    """The entries of a file that holds these tables alone: of its only table, or of one of them."""
    contents = read(path)
    if set(contents) - set(tables):
        unknown = ", ".join(sorted(set(contents) - set(tables)))
        held = " and ".join(f"[[{table}]]" for table in tables)
        raise LedgerError(f"{path.name}: {unknown}: a file holds {held} tables alone")
    table = of or tables[0]
    entries = contents.get(table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise LedgerError(f"{path.name}: {table}: expected [[{table}]] tables, got {entries!r:.80}")
    return entries


@dataclass(frozen=True)
class _Refusal:
    """Makes the error for a key of an entry."""

    path: Path
    number: int

    def __call__(self, key: str, problem: str) -> LedgerError:
        return LedgerError(f"{self.path.name}: entry {self.number}: {key!r} {problem}")


def _limitation(path: Path, number: int, entry: dict[str, Any]) -> Limitation:
    refuse = _Refusal(path, number)
    for key, value in entry.items():
        if key not in KEYS:
            raise refuse(key, f"is no key of a limitation; those are {', '.join(KEYS)}")
        problem = KEYS[key](value)
        if problem is not None:
            raise refuse(key, problem)
    for key in ("primitive", "expect", "reason"):
        if key not in entry:
            raise refuse(key, "is missing")
    _refuse_contradictions(entry, refuse)
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    for key in ("primitive", "harness"):
        if isinstance(entry.get(key), str):
            fields[key] = (entry[key],)
    fields["params"] = {key: str(value) for key, value in entry.get("params", {}).items()}
    return Limitation(where=f"{path.stem}#{number}", **fields)


def _refuse_contradictions(entry: dict[str, Any], refuse: _Refusal) -> None:
    expect = entry["expect"]
    for key in ("phase", "exception"):
        if expect == "error" and key not in entry:
            raise refuse(key, "is missing: an error is declared with its phase and type")
        if expect != "error" and key in entry:
            raise refuse(key, f"belongs to an error, but expect = {expect!r}")
    if expect != "mismatch" and "ulps" in entry:
        raise refuse("ulps", f"belongs to a mismatch, but expect = {expect!r}")
    if expect == "mismatch" and not {"ulps", "message"} & set(entry):
        raise refuse("ulps", "is missing: a mismatch is declared with its ulps or a message")
    if entry.get("ulps") == math.inf and "note" not in entry:
        raise refuse("note", "is missing: ulps = inf needs to say why no number bounds the error")
    jax_fails = entry.get("phase") == "trace"
    if expect == "error" and jax_fails != (entry.get("side") == JAX_SIDE):
        raise refuse("side", "and phase disagree: what JAX itself refuses has the phase 'trace'")


Validator = Callable[[Any], str | None]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be a text that is not empty"


def _texts(value: Any) -> str | None:
    if isinstance(value, list):
        return None if value and not any(map(_text, value)) else "must not be empty"
    return _text(value)


def _one_of(known: Iterable[str]) -> Validator:
    known = tuple(known)

    def validate(value: Any) -> str | None:
        return None if value in known else f"is {value!r}, not one of {', '.join(known)}"

    return validate


def _list_of(validate: Validator) -> Validator:
    def validate_all(value: Any) -> str | None:
        if not isinstance(value, list) or not value:
            return "must be a list that is not empty"
        return next((problem for problem in map(validate, value) if problem is not None), None)

    return validate_all


def _dtype(value: Any) -> str | None:
    known = isinstance(value, str) and (value == "bool" or hasattr(jnp, value))
    return None if known else f"names {value!r}, which is no dtype of JAX"


def _specifier(value: Any) -> str | None:
    try:
        SpecifierSet(value)
    except (InvalidSpecifier, TypeError, AttributeError):
        return f"is {value!r}, no version specifier such as '>=0.12'"
    return None


def _features(value: Any) -> str | None:
    words = value.split() if isinstance(value, str) else []
    if words and all(word.removeprefix("!") in PROCESSOR_FEATURES for word in words):
        return None
    known = ", ".join(PROCESSOR_FEATURES)
    return f"is {value!r}, no list of features such as 'avx512f !avx512_bf16'; known are {known}"


def _pattern(value: Any) -> str | None:
    try:
        re.compile(value)
    except (re.error, TypeError) as error:
        return f"is no regular expression: {error}"
    return _text(value)


def _of_type(kind: type | tuple[type, ...], name: str) -> Validator:
    return lambda value: None if isinstance(value, kind) else f"must be {name}"


def _number_of_ulps(value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return None if is_number else f"must be a number from 0 on, got {value!r}"


KEYS: Mapping[str, Validator] = {
    "primitive": _texts,
    "harness": _texts,
    "params": _of_type(dict, "a table"),
    "dtypes": _list_of(_dtype),
    "devices": _list_of(_one_of(DEVICES)),
    "lowerings": _list_of(_one_of((*LOWERINGS, CALL_TF, *SUBSTRATE_LOWERINGS, DIRECT))),
    "modes": _list_of(
        _one_of(
            (
                *(*MODE_NAMES, *GROUPS, *ASKED_MODES, *CALL_TF_MODES, *SUBSTRATE_MODES),
                *(*TAPE_MODES, DIRECT),
            )
        )
    ),
    "x64": _of_type(bool, "true or false"),
    "jax": _specifier,
    "tensorflow": _specifier,
    "processor": _features,
    "side": _one_of(SIDES),
    "expect": _one_of(EXPECTATIONS),
    "phase": _one_of(PHASES),
    "exception": _text,
    "message": _pattern,
    "ulps": _number_of_ulps,
    "reason": _text,
    "note": _text,
    "link": _text,
}


def _contains(specifier: str | None, version: str | None) -> bool:
    if specifier is None:
        return True
    return version is not None and SpecifierSet(specifier).contains(version, prereleases=True)


def has_features(features: str | None, processor: str | None) -> bool:
    """Whether a processor has the features, and lacks each that has a "!" before it."""
    if features is None:
        return True
    if processor is None:
        return False
    present = processor.split()
    return all((w.removeprefix("!") in present) != w.startswith("!") for w in features.split())
