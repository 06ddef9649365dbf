"""Dtypes as tables name them: those that are often listed together by the name of their group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harnesses.harness import (
    ALL,
    COMPLEX,
    FLOAT8,
    FLOATS,
    INTEGERS,
    INTS,
    NARROW,
    UINTS,
    WITHOUT_TENSORFLOW,
)

# Short names for dtypes that are often listed together, the larger groups first.
DTYPE_GROUPS = {
    "common": ALL,
    "inexact": FLOATS + COMPLEX,
    "integer": INTEGERS,
    "floating": FLOATS,
    "complex": COMPLEX,
    "signed": INTS,
    "unsigned": UINTS,
    "float8": FLOAT8,
    "narrow": NARROW,
    "exotic": WITHOUT_TENSORFLOW,
}
TRIED = ALL + NARROW + WITHOUT_TENSORFLOW


def dtypes_text(names: Iterable[str], groups: Mapping[str, Sequence] = DTYPE_GROUPS) -> str:
    """Dtypes as text, those that make up a group by its name: `floating, int8, bool`."""
    left = set(names)
    words = []
    for group, dtypes in groups.items():
        members = {dtype.name for dtype in dtypes}
        if members <= left:
            words.append(group)
            left -= members
    known = [dtype.name for dtype in TRIED if dtype.name in left]
    return ", ".join([*words, *known, *sorted(left.difference(known))])


def legend() -> dict[str, str]:
    """The groups, each in the words of those after it."""
    after = dict(DTYPE_GROUPS)
    legend = {}
    for group, dtypes in DTYPE_GROUPS.items():
        del after[group]
        legend[group] = dtypes_text((dtype.name for dtype in dtypes), after)
    return legend
