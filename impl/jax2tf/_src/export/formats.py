"""The formats that an export is written in: by which suffix each is chosen, and what it needs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np

from jax2tf._src.export import (
    litert,
    onnx,
    openvino,
    openvino_pairs,
    packages,
    placing,
    savedmodel,
    standing,
    tfjs,
)
from jax2tf._src.export.job import Job
from jax2tf._src.export.measures import Precision
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import Option

Arrays = Mapping[str, np.ndarray]
# Runs a signature on arrays by name.
Run = Callable[[str, Arrays], Arrays]


class Engine(Protocol):
    """What a module of a format has."""

    # Options of the format, each with the values that it takes; None where any may come.
    OPTIONS: Mapping[str, Sequence[object] | None]

    def write(self, job: Job) -> int:
        """Writes the file or folder `job.target`; returns the number of ops."""

    def load(self, target: Path, job: Job) -> Run:
        """What runs the signatures of what was written, in the format's engine."""

    def precision(self, options: Mapping[str, Option]) -> Precision:
        """How exact the results are that the options allow for."""


@dataclasses.dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
      name: what it is called.
      suffix: of a path in this format.
      engine: writes and runs it.
      convert: options of `convert`.
      to_write: modules that writing needs.
      to_run: modules that running needs.
      has_several: whether it holds several signatures.
      one_namespace: whether an output may not have the name of an input.
      beside: suffixes of the files that belong to the one at the path.
      obstacle: why what stands at a path is not to be replaced; empty if it may be.
      steps: of files that belong together, what to put where so that they always fit each other:
        from what was written and where it goes.
    """

    name: str
    suffix: str
    engine: ModuleType
    convert: Mapping[str, Option]
    to_write: Sequence[str] = ()
    to_run: Sequence[str] = ()
    has_several: bool = False
    one_namespace: bool = False
    beside: Sequence[str] = ()
    obstacle: Callable[[Path], str] = standing.of_file
    steps: Callable[[Sequence[Path], Sequence[Path]], placing.Steps] = placing.each

    def files(self, target: Path) -> list[Path]:
        """All that is written for a target, the target last."""
        return [*(target.with_suffix(suffix) for suffix in self.beside), target]


# Engines have no Assert, and differentiate nothing.
_FOR_ENGINES = {"polymorphic_checks": False, "with_gradient": False}

FORMATS: Mapping[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            *("savedmodel", "", savedmodel, {}),
            has_several=True,
            obstacle=standing.of_saved_model,
        ),
        Format("litert", ".tflite", litert, {"target": "litert", **_FOR_ENGINES}, has_several=True),
        Format(
            "onnx",
            ".onnx",
            onnx,
            {"target": onnx.TARGET, **_FOR_ENGINES},
            ("tf2onnx", "onnx"),
            ("onnxruntime",),
            one_namespace=True,
        ),
        Format(
            *(
                "openvino",
                ".xml",
                openvino,
                {"target": "openvino", **_FOR_ENGINES},
                ("openvino",),
                ("openvino",),
            ),
            one_namespace=True,
            beside=(".bin",),
            obstacle=standing.of_openvino,
            steps=openvino_pairs.steps,
        ),
        Format(
            *("tfjs", ".tfjs", tfjs, {"target": "tfjs", **_FOR_ENGINES}, ("tensorflowjs",)),
            obstacle=standing.of_tfjs,
        ),
    )
}


def format_of(path: str | os.PathLike[str], name: str | None) -> Format:
    """The format that the caller names, or the one of the path's suffix.

    Raises:
      ValueError: there is none of that name or suffix, or the engine reads no other suffix.
    """
    if name is not None:
        name = option_checks.one_of(name, "jax2tf.export: format", FORMATS)
        return _readable(FORMATS[name], path)
    suffix = Path(path).suffix
    for entry in FORMATS.values():
        if suffix == entry.suffix:
            return entry
    known = ", ".join(f"{entry.suffix or '(none)'}: {entry.name}" for entry in FORMATS.values())
    raise ValueError(
        f"jax2tf.export: no format has the suffix {suffix!r} of {os.fspath(path)!r} ({known}). "
        "What to do: give one of these, or the format by name, such as format='savedmodel'"
    )


def _readable(chosen: Format, path: str | os.PathLike[str]) -> Format:
    # Files that belong together have one name, and are told from each other by their suffixes.
    if chosen.beside and Path(path).suffix != chosen.suffix:
        raise ValueError(
            f"jax2tf.export: a path of the format {chosen.name!r} should end in {chosen.suffix}, "
            f"which its engine looks for; got {os.fspath(path)!r}. What to do: give "
            f"{os.fspath(Path(path).with_suffix(chosen.suffix))!r}"
        )
    return chosen


def check_options(chosen: Format, options: Mapping[str, Option]) -> None:
    """Refuses options that the format does not have.

    Raises:
      TypeError: it has no option of that name.
      ValueError: the option has no such value.
    """
    known = chosen.engine.OPTIONS
    for name, value in options.items():
        if name not in known:
            others = [f.name for f in FORMATS.values() if name in f.engine.OPTIONS]
            of_others = f"; it is one of {', '.join(others)}" if others else ""
            raise TypeError(
                f"jax2tf.export: the format {chosen.name!r} has no option {name!r}{of_others}. Its "
                f"options are {', '.join(known)}"
            )
        values = known[name]
        if values is not None:
            where = f"jax2tf.export: the option {name!r} of the format {chosen.name!r}"
            option_checks.one_of(value, where, values)
    for engine in (litert, onnx):
        if chosen.engine is engine:
            engine.check_options(options)


def check_packages(chosen: Format, with_running: bool) -> None:
    """Refuses to begin without what the format needs.

    Raises:
      MissingPackageError: it is not installed.
    """
    packages.require(chosen.to_write, f"the format {chosen.name!r}")
    if with_running:
        packages.require(
            chosen.to_run,
            f"trying what was written as {chosen.name!r}",
            "pass verify=False to leave it untried",
        )
        if chosen.engine is tfjs:
            tfjs.require_node()
