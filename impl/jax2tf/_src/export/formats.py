"""The table of export formats: suffixes, engines, options and requirements."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from jax2tf._src.export import (
    destination,
    litert,
    obstacles,
    openvino,
    openvino_pairs,
    packages,
    savedmodel,
    tfjs,
)
from jax2tf._src.export.job import Job
from jax2tf._src.export.onnx import engine as onnx
from jax2tf._src.export.onnx import pairs as onnx_pairs
from jax2tf._src.export.serving import Ports
from jax2tf._src.export.tolerances import Precision
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import Option

Arrays = Mapping[str, np.ndarray]
# Runs a signature, given by name, on arrays by name.
Run = Callable[[str, Arrays], Arrays]


class Engine(Protocol):
    """The interface of the module that writes a format and runs it."""

    @property
    def OPTIONS(self) -> Mapping[str, Sequence[object] | None]:
        """The options of the format with their values; None stands for any value."""

    def write(self, job: Job) -> int:
        """Writes the file or folder `job.target`; returns the number of ops."""

    def add_metadata(self, target: Path, metadata: Mapping[str, str]) -> None:
        """Adds entries to the metadata of a written file or folder."""

    def load(self, target: Path, job: Job) -> Run:
        """Loads the file or folder into the engine; returns a function that runs it."""

    def precision(self, options: Mapping[str, Option]) -> Precision:
        """Returns the precision that the options allow."""


def _accept(_: object) -> None:
    """Refuses nothing."""


@dataclasses.dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
      name: the name of the format.
      suffix: the suffix of its paths.
      engine: the module that writes and runs it.
      convert: the options of `convert` for it.
      to_write: the modules that writing needs.
      to_run: the modules that running needs.
      has_several: whether a file holds several signatures.
      one_namespace: whether inputs and outputs need different names.
      beside: the suffixes of the files that are written beside the one at the path.
      data: the option by which the arrays stand in a file beside it; empty if there is none.
      check_options: refuses options that exclude or need each other.
      check_writer: refuses to begin if what writes the format is missing, where that is not always
        the same package.
      check_runner: refuses to begin if a program that runs the format is missing.
      obstacle: returns the reason why a path must not be replaced; empty if it may be.
      steps: returns the renames, from written files to their places, in an order in which files
        that belong together always fit each other.
      ports: returns the inputs and outputs of a file, for formats whose files servers read.
    """

    name: str
    suffix: str
    engine: Engine
    convert: Mapping[str, Option]
    to_write: Sequence[str] = ()
    to_run: Sequence[str] = ()
    has_several: bool = False
    one_namespace: bool = False
    beside: Sequence[str] = ()
    data: str = ""
    check_options: Callable[[Mapping[str, Option]], None] = _accept
    check_writer: Callable[[], None] = lambda: None
    check_runner: Callable[[], None] = lambda: None
    obstacle: Callable[[Path], str] = obstacles.of_file
    steps: Callable[[Sequence[Path], Sequence[Path]], destination.Steps] = destination.each
    ports: Callable[[Path], Ports] | None = None

    def files(
        self, target: Path, options: Mapping[str, Option] = MappingProxyType({})
    ) -> list[Path]:
        """The files or folders that are written for a target, the target last."""
        beside = [target.with_suffix(suffix) for suffix in self.beside]
        if options.get(self.data):
            beside.append(onnx_pairs.data_beside(target))
        return [*beside, target]

    def written(self, target: Path) -> list[Path]:
        """The files or folders that were written for a target, the target last."""
        return self.files(
            target, {self.data: self.data and onnx_pairs.data_beside(target).exists()}
        )


# Engines have no Assert op, and compute no gradients.
_FOR_ENGINES = {"polymorphic_checks": False, "with_gradient": False}

FORMATS: Mapping[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            *("savedmodel", "", savedmodel, {}, ("tensorflow",)),
            has_several=True,
            obstacle=obstacles.of_saved_model,
        ),
        Format(
            *("litert", ".tflite", litert, {"target": "litert", **_FOR_ENGINES}),
            has_several=True,
            check_options=litert.check_options,
            check_writer=litert.require_writer,
        ),
        Format(
            "onnx",
            ".onnx",
            onnx,
            {"target": onnx.TARGET, **_FOR_ENGINES},
            ("onnx", "onnx_ir"),
            ("onnxruntime",),
            one_namespace=True,
            data="external_data",
            obstacle=onnx_pairs.obstacle,
            steps=onnx_pairs.steps,
            ports=onnx.ports,
        ),
        Format(
            *(
                "openvino",
                ".xml",
                openvino,
                {"target": "openvino", **_FOR_ENGINES},
                ("tensorflow", "openvino"),
                ("openvino",),
            ),
            one_namespace=True,
            beside=(".bin",),
            obstacle=obstacles.of_openvino,
            steps=openvino_pairs.steps,
            ports=openvino.ports,
        ),
        Format(
            *(
                "tfjs",
                ".tfjs",
                tfjs,
                {"target": "tfjs", **_FOR_ENGINES},
                ("tensorflow", "tensorflowjs"),
            ),
            check_runner=tfjs.require_node,
            obstacle=obstacles.of_tfjs,
        ),
    )
}


def format_of(path: str | os.PathLike[str], name: str | None, is_folder: bool = False) -> Format:
    """The format that the caller names, or the format of the path's suffix.

    Args:
      path: the path of the export.
      name: the name of the format, or None.
      is_folder: whether the path is a folder in which the file has a name of its own.

    Raises:
      ValueError: no format has that name or suffix, or the engine cannot read the path's suffix.
    """
    if name is not None:
        name = option_checks.one_of(name, "jax2tf.export: format", FORMATS)
        return FORMATS[name] if is_folder else _readable(FORMATS[name], path)
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
    # Files that belong together have one name, and only their suffixes differ.
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
      TypeError: the format has no option of that name.
      ValueError: the option has no such value, or two options do not fit each other.
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
    chosen.check_options(options)


def check_packages(chosen: Format, with_running: bool) -> None:
    """Refuses to begin without the packages and programs that the format needs.

    Raises:
      MissingPackageError: one of them is not installed.
    """
    packages.require(chosen.to_write, f"the format {chosen.name!r}")
    chosen.check_writer()
    if with_running:
        packages.require(
            chosen.to_run,
            f"trying what was written as {chosen.name!r}",
            "pass verify=False to leave it untried",
        )
        chosen.check_runner()
