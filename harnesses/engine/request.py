"""What a run is asked for, and of what code: what has to be the same where another goes on with it.

{"command": "python -m harnesses run --family special --shard 1/4", "cells": 780,
 "cells_of_all_shards": 3120, "asked": {...}, "versions": {"jax": "0.12.0", ...},
 "code": {"the judge": "1f2e...", ...}, "origin": {"date": "2026-11-28", "commit": "7d40e7c"}}
"""

import dataclasses
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harnesses.cell import origin
from harnesses.cell.journal import Request, ResultsError, request_of, stopped
from harnesses.cell.names import JAX_SIDE
from harnesses.engine import shards
from harnesses.engine.converters import module_of
from harnesses.engine.options import environment, run_command, selection
from harnesses.engine.versions import versions
from harnesses.harness import place
from limitations.ledger import all_files, folder_of


def request(options: Any, cells: int) -> Request:
    """The request of a run with these options, which make so many cells."""
    impl = None if options.side == JAX_SIDE else options.impl
    ledger = folder_of(impl, options.ledger)
    return {
        "command": run_command(options),
        "cells": cells,
        "cells_of_all_shards": _cells_of_all_shards(options) if options.shard else cells,
        "asked": _asked(options),
        "versions": versions(impl),
        "code": {
            "the judge": _digest(
                [
                    *(place.ROOT / "harnesses").rglob("*.py"),
                    *(place.ROOT / "limitations").glob("*.py"),
                    shards.FILE,
                ]
            ),
            "the ledger": _digest(all_files(ledger)),
            "the implementation": _digest(_files_of(impl)) if impl else "",
        },
        "origin": origin.now(),
    }


def _cells_of_all_shards(options: Any) -> int:
    """How many cells the run has that a shard is a part of."""
    return len(dataclasses.replace(selection(options), shard=None).cells())


def stopped_run(options: Any, folder: Path) -> Path:
    """The file of the run that these options ask to go on with.

    Raises:
      ResultsError: if there is none, or if it is another selection, other code or other versions.
    """
    if options.results is not None:
        path = Path(options.results)
        before = request_of(path)
        if before is None:
            raise ResultsError(
                f"--resume: {path} has no {path.stem}.run.json beside it, which says what its run "
                "was asked for. Begin a new run without --resume"
            )
    else:
        path, before = _newest(options, folder)
    _check_same(path, before, request(options, before["cells"]))
    return path


def _newest(options: Any, folder: Path) -> tuple[Path, Request]:
    runs = list(stopped(folder))
    if not runs:
        raise ResultsError(f"--resume: no run that stopped stands in {folder}")
    asked = _asked(options)
    for path, before in runs:
        if before["asked"] == asked:
            return path, before
    raise ResultsError(
        "--resume: no run that stopped was asked for these cells. "
        f"The newest that stopped goes on with: {runs[0][1]['command']} --resume"
    )


def _asked(options: Any) -> dict[str, Any]:
    """What decides which cells run and what comes of them, as it is read back from a file."""
    asked = {
        **dataclasses.asdict(selection(options)),
        "impl": options.impl,
        "ledger": options.ledger,
        "cell_timeout": options.cell_timeout,
        "environment": environment(),
    }
    return json.loads(json.dumps(asked))


def _check_same(path: Path, before: Request, now: Request) -> None:
    """Raises ResultsError if rows of the two requests do not belong into one file."""
    differing = differences(before, now, ("asked", "versions"))
    differing += [
        f"{what} has changed" for what in now["code"] if before["code"][what] != now["code"][what]
    ]
    if differing:
        raise ResultsError(
            f"--resume: {path} is of another run: {'; '.join(differing)}. "
            "Begin a new run without --resume"
        )


def differences(before: Request, now: Request, parts: Iterable[str]) -> list[str]:
    """In what two requests differ: `jax was '0.10.2' and is '0.12.0'`."""
    return [
        f"{key} was {before[part].get(key)!r} and is {now[part].get(key)!r}"
        for part in parts
        for key in before[part] | now[part]
        if before[part].get(key) != now[part].get(key)
    ]


def _files_of(module: str) -> Iterable[Path]:
    """The source of the package (or module) that the implementation is a part of."""
    spec = importlib.util.find_spec(module_of(module).partition(".")[0])
    assert spec is not None, "check_exists has found it"
    for folder in spec.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")
    if not spec.submodule_search_locations and spec.has_location and spec.origin:
        yield Path(spec.origin)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
