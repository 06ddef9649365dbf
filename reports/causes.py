"""Why cells failed, in words that cells with the same cause share."""

from __future__ import annotations

import re
import textwrap

from reports.results import Row

_LONGEST = 90
# Places in files, names of primitives, numbers that stand alone.
_VARYING = re.compile(r"(?:/[\w.-]+)+(?::\d+)*:?|(?<=primitive )'[^']*'|(?<!\w)\d+(?:[.,:]\d+)*\b")


def cause_of(row: Row) -> str:
    """`NotFoundError: Could not find device for node`; of what is no error, the outcome alone."""
    if row["outcome"] != "error":
        return row["outcome"]
    return f"{row['exception']}: {words_of(row)}".strip()


def words_of(row: Row) -> str:
    """The message of a row, as far as a cause is told by it; the same of its own words."""
    message = _VARYING.sub("...", row["message"] or "")
    return textwrap.shorten(message, _LONGEST, placeholder="")
