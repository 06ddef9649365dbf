"""How long a verification takes, measured beside each search of `python -m reports located`."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jax2tf._src.export import formats
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.export.verification import (
    Judge,
    dtypes_of,
    random_inputs,
    random_shapes,
    trials_of,
)
from jax2tf._src.locate.files import Files
from reports.benchmarks.located_models import Model

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Seconds:
    """How long something took.

    Attributes:
      passed: the seconds of a clock, which other work of the machine makes more.
      processor: the seconds of processors, with those of processes that were started and ended.
    """

    passed: float
    processor: float

    def middle(self, other: Seconds) -> Seconds:
        """The mean of two."""
        return Seconds(
            (self.passed + other.passed) / 2,
            (self.processor + other.processor) / 2,
        )


def timed(call: Callable[[], T]) -> tuple[T, Seconds]:
    """The result of a call, and how long it took."""
    start, before = time.perf_counter(), _processor()
    result = call()
    return result, Seconds(time.perf_counter() - start, _processor() - before)


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def verify(model: Model, path: Path, folder: Path) -> None:
    """Does with a file what `export` does after it wrote it, and what JAX does before.

    JAX traces, compiles and runs the function on random inputs of two sizes; the engine loads the
    file and runs it on them.
    """
    chosen = formats.format_of(path, None)
    (signature,) = (
        dataclasses.replace(each, one_namespace=chosen.one_namespace)
        for each in signatures_of(model.function, model.params, model.specs)
    )
    formats.check_packages(chosen, with_running=True)
    inputs = random_inputs(signature, random_shapes(signature))
    trials = trials_of(signature, model.params, inputs)
    job = Files(chosen, {}, folder).job(signature, model.params, folder, path)
    job.outputs[signature.name] = list(trials[0].results)
    of_params = dtypes_of(model.params)
    judge = Judge(chosen.name, chosen.engine.precision({}), of_params, None)
    judge.differences(judge.loaded(lambda: chosen.engine.load(path, job)), trials)
