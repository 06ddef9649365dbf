"""Tries the uses of ops in the engine of a target, in processes that may end by one."""

from __future__ import annotations

import concurrent.futures
import fnmatch
import importlib.metadata
import sys
import threading
from collections.abc import Callable, Sequence

from harnesses.cell import origin
from harnesses.engine.consumers import EngineError
from harnesses.engine.consumers.service import Service, ServiceError
from harnesses.probes.catalogue import catalogue
from harnesses.probes.engines import engine_of
from harnesses.probes.names import DTYPES, ENGINES
from harnesses.probes.table import Table
from harnesses.probes.trial import ENDS

# A conversion that takes longer hangs.
_TIMEOUT = 120.0

Ask = tuple[str, str]


def chosen(target: str, patterns: Sequence[str], dtypes: Sequence[str]) -> list[Ask]:
    """The uses that are tried in a target, each with a dtype.

    Of `patterns` and `dtypes` each names some of them; all are chosen where it is empty.

    Raises:
      EngineError: a pattern is of no use.
    """
    probes = catalogue()
    for pattern in patterns:
        if not any(_is_meant(name, [pattern]) for name in probes):
            raise EngineError(f"--op {pattern}: the catalogue of ops has none of that name")
    return [
        (name, dtype)
        for name, probe in probes.items()
        if not patterns or _is_meant(name, patterns)
        for dtype in probe.dtypes
        if dtype in DTYPES.get(target, probe.dtypes) and (not dtypes or dtype in dtypes)
    ]


def probed(
    target: str, asked: Sequence[Ask], workers: int, progress: Callable[[], None] = lambda: None
) -> Table:
    """What the engine of a target makes of the uses that are asked for.

    Raises:
      EngineError: the engine is not installed.
    """
    engine_of(target)
    own = threading.local()
    services: list[Service] = []

    def ask(use_and_dtype: Ask) -> str | None:
        if not hasattr(own, "service"):
            own.service = Service("the engine's process", _command(target), _TIMEOUT)
            services.append(own.service)
        use, dtype = use_and_dtype
        try:
            return own.service.ask({"use": use, "dtype": dtype})
        except ServiceError as error:
            return ENDS if "ended with status" in str(error) else str(error)
        finally:
            progress()

    try:
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            outcomes = list(pool.map(ask, asked))
    finally:
        for service in services:
            service.close()
    return Table(_versions(target), _by_use(asked, outcomes), origin.now())


def _command(target: str) -> list[str]:
    return [sys.executable, "-m", f"{__package__}.worker", target]


def _by_use(asked: Sequence[Ask], outcomes: Sequence[str | None]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (use, dtype), outcome in zip(asked, outcomes, strict=True):
        if outcome is not None:
            found.setdefault(use, {})[dtype] = outcome
    return found


def _is_meant(name: str, patterns: Sequence[str]) -> bool:
    op = name.partition(":")[0]
    return any(fnmatch.fnmatch(name, p) or op == p for p in patterns)


def _versions(target: str) -> dict[str, str]:
    """The versions of the modules that were tried; TensorFlow's distribution has several names."""
    distributions = importlib.metadata.packages_distributions()
    return {
        module: importlib.metadata.version(distributions[module][0]) for module in ENGINES[target]
    }
