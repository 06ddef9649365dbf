"""The other side of a comparison: a file, or a graph of TensorFlow."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.job import Job
from jax2tf._src.export.signatures import Signature
from jax2tf._src.locate import bits, exactness, finding, matching
from jax2tf._src.locate.differences import Difference, with_names_of
from jax2tf._src.locate.files import Files, Outputs, feeds_of
from jax2tf._src.locate.finding import deviations
from jax2tf._src.locate.program import Program, Values, as_numpy
from jax2tf._src.locate.tensors import reader_of, run_with_tensors
from jax2tf._src.util.typing import PyTree

# A file that jax2tf writes anew is right if its outputs are so near to JAX's.
_RIGHT = 1e-3
# Each check takes away the tensors that were taken for a result by chance.
_CHECKS = 3
# Two runs of the same file may add in another order.
_SAME = 1e-5
# A file that lacks this share of the results, of at least so many, is one of another function; if
# its outputs are others, too, this share is enough.
_MOST, _SOME, _FEW = 0.75, 0.25, 4


@dataclasses.dataclass
class File:
    """A file of the user.

    Attributes:
      files: writes other files of its format.
      path: the file.
      program: the user's program.
      signature: the signature of the file.
      params: its parameters.
      written: the same program, if it was just written.
    """

    files: Files
    path: Path
    program: Program
    signature: Signature
    params: PyTree
    written: tuple[Path, Job] | None = None

    @property
    def feeds(self) -> Mapping[str, np.ndarray]:
        """The inputs by name."""
        return feeds_of(self.signature, self.program.inputs)

    @functools.cached_property
    def fresh(self) -> tuple[Path, Job]:
        """The same program, written anew."""
        return self.written or self.files.write(self.signature, self.params)

    @functools.cached_property
    def exact(self) -> File:
        """The same program with all bits, written anew; this one, unless it has fewer."""
        options = self.files.options
        if not bits.are_fewer(options):
            return self
        folder = Path(tempfile.mkdtemp(dir=self.files.folder))
        files = Files(self.files.format, bits.without(options), folder)
        path, job = files.write(self.signature, self.params)
        written = path, job
        return File(files, path, self.program, self.signature, self.params, written)

    @property
    def fresh_outputs(self) -> Outputs:
        """The outputs of the program written anew."""
        return self._fresh_run[0]

    @functools.cached_property
    def _fresh_run(self) -> tuple[Outputs, Outputs | None]:
        return self._run(*self.fresh)

    @functools.cached_property
    def _own_run(self) -> tuple[Outputs, Outputs | None]:
        job = self.files.job(self.signature, self.params, self.files.folder, self.path)
        job.outputs[self.signature.name] = list(self.program.names)
        return self._run(self.path, job)

    def _run(self, path: Path, job: Job) -> tuple[Outputs, Outputs | None]:
        """The outputs of a file, and its tensors; None if they take another run."""
        with_tensors = run_with_tensors(self.files.format.name)
        if with_tensors is not None:
            # A tensor that no output needs may be one that the engine cannot compute.
            with contextlib.suppress(ExportError):
                return with_tensors(path, self.feeds, job.outputs[self.signature.name])
        return self.files.run(path, job, self.feeds), None

    @functools.cached_property
    def fresh_is_right(self) -> bool:
        """Whether the program written anew gives what JAX gives."""
        reference = self.program.outputs(self.program.reference)
        return max(deviations(self.fresh_outputs, reference).values(), default=0.0) <= _RIGHT

    def is_changed(self, outputs: Outputs) -> bool:
        """Whether the file with these outputs is another one than jax2tf writes today."""
        if self.differences:
            return True
        far = deviations(outputs, self.fresh_outputs)
        return max(far.values(), default=0.0) > _SAME

    def outputs(self) -> Outputs:
        """The outputs of the file."""
        return self._own_run[0]

    @functools.cached_property
    def places(self) -> dict[jex_core.Var, matching.Place]:
        """Which tensor of the file each result is; empty if its tensors cannot be read."""
        reader = reader_of(self.files.format.name)
        if reader is None or not self.exact.fresh_is_right:
            return {}
        # Bits are taken from tensors that keep their names.
        tensors = self.exact._fresh_run[1] or reader.tensors(self.exact.fresh[0], self.feeds)
        found = matching.places(self.program, tensors)
        # The file written anew is right: a result that seems wrong there is another tensor.
        for _ in range(_CHECKS):
            values = matching.read(self.program, found, tensors)
            others = {s.variable for s in finding.compare(self.program, values).suspects}
            if not others:
                break
            found = {v: place for v, place in found.items() if v not in others}
        return found

    def own_values(self) -> Values:
        """The results that stand in the file itself."""
        reader = reader_of(self.files.format.name)
        if reader is None or not self.places:
            return {}
        try:
            tensors = self._own_run[1] or reader.tensors(self.path, self.feeds)
        # Each engine has errors of its own for a file that does not run.
        except Exception:
            if not self.differences:
                raise
            return {}
        named = with_names_of(self.fresh[0], self.path, self.files.format.name, tensors)
        return matching.read(self.program, self.places, named)

    def is_of_another(self, outputs: Outputs) -> bool:
        """Whether the file lacks most of what tells the results of the function.

        With other outputs, a smaller part is enough.
        """
        names = {place.name for place in self.places.values()}
        lacking = {name for each in self.differences if each.is_missing for name in each.tensors}
        most = _MOST if self.has_outputs_in(outputs) else _SOME
        return len(names) >= _FEW and len(names & lacking) > most * len(names)

    def has_outputs_in(self, outputs: Outputs) -> bool:
        """Whether outputs have the names and shapes of the function's."""
        wanted = self.program.outputs(self.program.reference)
        return all(n in outputs and outputs[n].shape == x.shape for n, x in wanted.items())

    def ends(self) -> dict[jex_core.Var, tuple[float, float]]:
        """The least and the largest number that the tensors of results hold, if of integers."""
        reader = reader_of(self.files.format.name)
        known = {} if reader is None else reader.ends(self.path)
        return {v: known[place.name] for v, place in self.places.items() if place.name in known}

    @functools.cached_property
    def differences(self) -> list[Difference]:
        """What the file has otherwise than the program written anew."""
        reader = reader_of(self.files.format.name)
        return [] if reader is None else reader.differences(self.path, self.fresh[0])

    def values(self) -> Values:
        """The results of the program, written anew with all of them as outputs."""
        wanted = self.program.readable()
        try:
            return self.files.values(self.program, self.signature, wanted)
        except ExportError:
            floats = [
                v for v in wanted if exactness.is_inexact(as_numpy(self.program.reference[v]).dtype)
            ]
            return self.files.values(self.program, self.signature, floats)
