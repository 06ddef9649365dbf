"""Times of contenders that take turns: a machine drifts, and a ratio within a round does not."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from harnesses.cell import origin
from harnesses.engine.versions import versions as engine_versions

# A time is measured over enough calls to fill this; one call of a small program is all noise.
SECONDS_A_MEASUREMENT = 0.05

Call = Callable[[], Any]


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles of a sample."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, sample: list[float]) -> Quartiles:
        return cls(*statistics.quantiles(sample, n=4, method="inclusive"))


@dataclass(frozen=True)
class Paired:
    """Seconds of each contender, and the ratio of each other to the first in the same round."""

    seconds: Mapping[str, Quartiles]
    ratios: Mapping[str, Quartiles]


def paired(rounds: int, measurements: Mapping[str, Callable[[], float]]) -> Paired:
    """Takes every measurement once a round, in rotating order, and relates all to the first."""
    names = list(measurements)
    base, *others = names
    taken: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        for name in _rotated(names, i):
            taken[name].append(measurements[name]())
    ratios = {
        name: [t / r for t, r in zip(taken[name], taken[base], strict=True)] for name in others
    }
    return Paired(*({name: Quartiles.of(s) for name, s in d.items()} for d in (taken, ratios)))


def _rotated(names: list[str], by: int) -> list[str]:
    by %= len(names)
    return names[by:] + names[:by]


def fresh(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function as another object, so that no cache knows it."""
    return lambda *args: fun(*args)


def cold(call: Call) -> float:
    """Seconds of one call without anything that JAX has cached."""
    jax.clear_caches()
    return _seconds(call)


def repeated(call: Call) -> Callable[[], float]:
    """A measurement of seconds a call, over as many calls as fill SECONDS_A_MEASUREMENT."""
    call()
    count = max(1, round(SECONDS_A_MEASUREMENT / _seconds(call)))
    return lambda: _seconds(lambda: [call() for _ in range(count)]) / count


def _seconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def circumstances(impl: str | None) -> dict[str, Any]:
    """Under what figures are measured: versions, date and commit, cores and load."""
    return engine_versions(impl) | origin.now() | machine()


def machine() -> dict[str, int]:
    """The cores that the process may use, and the load: it stretches seconds, ratios less."""
    return {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[1])}
