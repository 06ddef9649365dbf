"""What is supported of a primitive or a public function of JAX, by target and dtype.

The package contains the counts as data (`python -m reports support` writes them), and the ledger's
reasons. No function is traced and no engine is asked.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.resources
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from jax2tf._src.explain import known
from jax2tf._src.explain.report import Limitation
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.lru import cached

_T = TypeVar("_T", bound=Hashable)

FILE = importlib.resources.files("jax2tf._src.explain") / "support.json"

# The columns of the data that a target has, and under what its limitations stand in the ledger.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "xla": ("eager", "graph", "compiled"),
    "savedmodel": ("savedmodel",),
    "gradient": ("gradient",),
    "poly": ("poly",),
    **{name: (name,) for name in ("tensorflow", "litert", "onnx", "openvino", "tfjs", "coreml")},
    "stablehlo": ("stablehlo",),
}
# The columns that count rows of the engines' runs. The others count uses of which the ledger has no
# limitation; a run proved the ledger.
_OF_ROWS = frozenset({"savedmodel", "litert", "onnx", "openvino", "tfjs", "stablehlo"})
_WHERE = {"tensorflow": "no_xla"}
_OPS_ALONE = "not run: known is which ops coremltools converts, by reports/tables/ops.md"
# How people write the modules of JAX.
_PREFIXES = {
    "jnp.": "jax.numpy.",
    "lax.": "jax.lax.",
    "nn.": "jax.nn.",
    "jsp.": "jax.scipy.",
    "numpy.": "jax.numpy.",
    "scipy.": "jax.scipy.",
}
_FIXED = {
    ".": "not run",
    "x": "not stored: the engine has no arrays of this dtype",
    "j": "not in JAX: JAX itself does not compute it",
    "-": "no gradient: the dtype has none",
}


# What an answer begins with, the best first.
_ANSWERS = ("yes", "in part", "no", "no gradient", "not in JAX", "not stored", "not run")


@dataclasses.dataclass(frozen=True)
class Support:
    """What is known of one primitive and dtype in one column.

    Attributes:
      name: the primitive or function.
      dtype: its dtype.
      target: the name of the target, of `gradient`, of `poly` or of `stablehlo`.
      column: the mode, for a target that has several; else the target.
      passed, ran, asked: how many harnesses give JAX's result, how many ran, how many there are.
      words: what is said in place of a count; empty where there is one.
    """

    name: str
    dtype: str
    target: str
    column: str
    passed: int
    ran: int
    asked: int
    words: str

    @property
    def is_whole(self) -> bool:
        """Whether every harness that there is ran and gives JAX's result."""
        return not self.words and self.passed == self.asked

    def __str__(self) -> str:
        if self.words:
            return self.words
        if self.is_whole:
            return f"yes: {_uses_give(self.asked)} JAX's result"
        left = f"; {self.asked - self.ran} more did not run" if self.ran < self.asked else ""
        begin = "in part" if self.passed else "no"
        return f"{begin}: {self.passed} of {_uses_give(self.ran)} JAX's result{left}"


def answer(name: str, dtype: str | None = None, targets: Sequence[str] = ()) -> str:
    """What is supported of a primitive or function of JAX, in words.

    Args:
      name: of a primitive, as `cumsum`, or of a public function, as `jax.numpy.cumsum`.
      dtype: one dtype; None for all that are known of it.
      targets: some of `TARGETS`, or `savedmodel`, `gradient`, `poly`, `stablehlo`; empty for all.

    Returns:
      A line for each dtype and target; below, why, and what to do.

    Raises:
      ValueError: there is no such name, dtype or target. It names those that are near, or all.
    """
    known_name = _known_name(name)
    dtypes = [_known_dtype(known_name, dtype)] if dtype else list(_data()["uses"][known_name])
    for target in targets:
        if target not in _COLUMNS:
            raise ValueError(
                f"jax2tf: there is no target {target!r}; those are {', '.join(_COLUMNS)}"
            )
    found = [s for d in dtypes for t in targets or _COLUMNS for s in _supports(known_name, d, t)]
    if dtype and targets:
        return "\n".join(_told(known_name, dtypes[0], found))
    return "\n".join(_overview(known_name, found))


def _told(name: str, dtype: str, found: Sequence[Support]) -> list[str]:
    """The whole answer about one dtype: counts, when they were seen, why, and what to do."""
    lines = []
    for support in found:
        where = support.target if support.target == support.column else support.column
        lines.append(f"{name} of {dtype} in {where}: {support}")
        lines.append(f"  seen: {_seen(support.column)}")
    lines += [f"  why {reason}" for reason in _reasons(name, found)]
    for support in found:
        if not support.is_whole:
            lines += [f"  do: {remedy}" for remedy in _remedies(support)]
            break
    return lines


def _overview(name: str, found: Sequence[Support]) -> list[str]:
    """The answer about several dtypes: what each column takes, why not, and when it was seen.

    Columns with the same answer stand together.
    """
    columns = dict.fromkeys(support.column for support in found)
    answers = {
        column: tuple(_answers(s for s in found if s.column == column)) for column in columns
    }
    seen = {column: _seen(column) for column in columns}
    lines = [name]
    for words, same in _grouped_by(answers).items():
        lines += ["", f"  {', '.join(same)}", *(f"    {line}" for line in words)]
    reasons = _reasons(name, found)
    lines += ["", "Why", *(f"  {line}" for line in reasons)] if reasons else []
    lines += ["", "Seen", *(f"  {', '.join(s)}: {words}" for words, s in _grouped_by(seen).items())]
    return lines


def _answers(found: Iterable[Support]) -> list[str]:
    """A line for each answer, with the dtypes of which it is the answer, the best first."""
    dtypes: dict[str, list[str]] = {}
    for support in found:
        kind = support.words or ("yes" if support.is_whole else str(support))
        dtypes.setdefault(kind, []).append(support.dtype)
    kinds = sorted(dtypes, key=lambda kind: _ANSWERS.index(kind.partition(":")[0]))
    return [f"{kind}: {', '.join(dtypes[kind])}" for kind in kinds]


def _grouped_by(words: Mapping[str, _T]) -> dict[_T, list[str]]:
    """The keys by what they have, in their order."""
    groups: dict[_T, list[str]] = {}
    for key, value in words.items():
        groups.setdefault(value, []).append(key)
    return groups


def _reasons(name: str, found: Iterable[Support]) -> list[str]:
    """The ledger's reasons for what does not pass, each once, with the targets that have it."""
    targets: dict[str, dict[str, None]] = {}
    for support in found:
        if support.words or support.passed == support.ran:
            continue
        entries = _limitations(name, support)
        words = [f"{entry.reason} ({entry.expect})" for entry in entries]
        for reason in words or ["the row that is kept failed; no reason is declared"]:
            targets.setdefault(reason, {})[support.target] = None
    return [f"({', '.join(of)}): {reason}" for reason, of in targets.items()]


def _limitations(name: str, support: Support) -> list[Limitation]:
    where = _WHERE.get(support.target, support.target)
    return [entry for entry in known.of_primitive(name, where) if support.dtype in entry.dtypes]


def _remedies(support: Support) -> list[str]:
    """What to do where a dtype is not supported whole."""
    dtypes = [
        dtype
        for dtype in _data()["uses"][support.name]
        if all(s.is_whole for s in _supports(support.name, dtype, support.target))
    ]
    targets = [
        target
        for target in TARGETS
        if all(s.is_whole for s in _supports(support.name, support.dtype, target))
    ]
    remedies = []
    if dtypes:
        remedies.append(f"use a dtype that {support.target} takes whole: {', '.join(dtypes)}")
    if targets and support.target in TARGETS:
        remedies.append(f"use a target that takes {support.dtype} whole: {', '.join(targets)}")
    if support.dtype == "bfloat16" and support.words:
        remedies.append(
            "jax2tf.export(..., widen_bfloat16=True) computes in float32 what the function "
            "computes in bfloat16"
        )
    remedies.append(
        "python -m jax2tf explain MODULE:FUNCTION tells what your own function becomes; "
        "jax2tf.export runs the file and refuses results that are not JAX's"
    )
    return remedies


def _supports(name: str, dtype: str, target: str) -> list[Support]:
    data = _data()
    row = dict(zip(data["columns"], data["uses"][name][dtype].split(), strict=True))
    found = []
    for column in _COLUMNS[target]:
        word = row.get(column, ".")
        words = _FIXED.get(word, "") if column in row else _OPS_ALONE
        passed, ran, asked = (0, 0, 0) if words else _counts(word)
        found.append(Support(name, dtype, target, column, passed, ran, asked, words))
    return found


def _counts(word: str) -> tuple[int, int, int]:
    """How many pass, ran and are there: of `4`, `3/4` or `3/4/6`."""
    numbers = [int(number) for number in word.split("/")]
    return numbers[0], numbers[min(1, len(numbers) - 1)], numbers[-1]


def _seen(column: str) -> str:
    run = _data()["seen"].get(column)
    if not run:
        return "never; no row is kept"
    since = f"; {run['since']} harnesses came since" if run.get("since") else ""
    by = "by " if run["commit"].startswith("unknown;") else ""
    rule = "" if column in _OF_ROWS else "; a use without a declared limitation counts as right"
    return (
        f"{by}{run['date']}, JAX {run['jax']}, TensorFlow {run['tensorflow']}, "
        f"commit {run['commit']}{since}{rule}"
    )


def _known_name(name: str) -> str:
    uses = _data()["uses"]
    prefix = next((p for p in _PREFIXES if name.startswith(p)), "")
    names = (name, _PREFIXES.get(prefix, "") + name[len(prefix) :], f"jax.{name}")
    for candidate in names:
        if candidate in uses:
            return candidate
    near = difflib.get_close_matches(name, uses, 5, 0.6)
    last = name.rpartition(".")[2]
    near += [other for other in uses if other.rpartition(".")[2] == last and other not in near]
    if not near:
        by_last = {other.rpartition(".")[2]: other for other in uses}
        near = [by_last[word] for word in difflib.get_close_matches(last, by_last, 5, 0.6)]
    said = f"near are {', '.join(near[:8])}" if near else "python -m jax2tf supports --list has all"
    raise ValueError(f"jax2tf: no harness is of a primitive or function {name!r}; {said}")


def _known_dtype(name: str, dtype: str) -> str:
    uses = _data()["uses"]
    if dtype in uses[name]:
        return dtype
    every = sorted({other for of_dtypes in uses.values() for other in of_dtypes})
    if dtype not in every:
        raise ValueError(f"jax2tf: there is no dtype {dtype!r}; those are {', '.join(every)}")
    raise ValueError(
        f"jax2tf: no harness is of {name} of {dtype}; those are of {', '.join(uses[name])}"
    )


def names() -> list[str]:
    """All primitives and functions that are known."""
    return list(_data()["uses"])


def _uses_give(count: int) -> str:
    return f"{count} use gives" if count == 1 else f"{count} uses give"


@cached
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return data
