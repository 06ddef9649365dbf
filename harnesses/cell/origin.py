"""When figures were seen, and on which commit: two words that stand beside the versions.

    {"date": "2026-11-28", "commit": "7d40e7c"}

A commit that had changes when the run began is `7d40e7c, changed`. Where nothing says on which
commit something was seen, it is `unknown`, with the commit that brought the figures if that is
known: `unknown; kept since 7d40e7c`. The date is then the latest that is possible.
"""

import datetime
import functools
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harnesses.harness import place

KEYS = ("date", "commit")
UNKNOWN = "unknown"

# The name of a run's file begins with its day.
_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})-\d{6}-")


def now() -> dict[str, str]:
    """The origin of what this process sees."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
    }


@functools.cache
def commit(root: Path = place.ROOT) -> str:
    """The short hash of the checkout, with `, changed` if tracked files differ from it."""
    short = _git(root, "rev-parse", "--short", "HEAD")
    if not short:
        return UNKNOWN
    return f"{short}, changed" if _git(root, "status", "--porcelain", "-uno") else short


def of_run(path: Path, request: Mapping[str, Any] | None) -> dict[str, str]:
    """The origin of a run's rows: what its request says, or else the day in its file's name."""
    if request and "origin" in request:
        return dict(request["origin"])
    day = _DAY.match(path.resolve().name)
    return {"date": "-".join(day.groups()) if day else UNKNOWN, "commit": UNKNOWN}


def of(figures: Mapping[str, Any]) -> dict[str, str]:
    """The two words of a row or of figures; `unknown` where they are not there."""
    return {key: figures.get(key) or UNKNOWN for key in KEYS}


def _git(root: Path, *words: str) -> str:
    try:
        ran = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except FileNotFoundError:  # there is no git
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
