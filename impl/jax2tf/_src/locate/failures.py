"""Says in the error of a failed verification where the file begins to differ from JAX."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from jax2tf._src.api.errors import VerificationError
from jax2tf._src.export.formats import Format
from jax2tf._src.export.job import Job
from jax2tf._src.export.verification import Trial
from jax2tf._src.locate import searching
from jax2tf._src.locate.answer import Located
from jax2tf._src.locate.files import Files
from jax2tf._src.locate.program import program_of
from jax2tf._src.locate.sides import File


def add_line(error: VerificationError, job: Job, chosen: Format, trials: Sequence[Trial]) -> None:
    """Looks for the equation, and adds it to the error.

    Args:
      error: the error, of one signature.
      job: the export, with its parameters; the file that was written still exists.
      chosen: the format.
      trials: the inputs that were run.
    """
    try:
        found = _found(error, job, chosen, trials)
    # The search runs converters and engines, whose errors must not hide the one that it is for.
    except Exception as other:
        error.add_note(f"jax2tf.locate did not find the line: {type(other).__name__}: {other}")
        return
    where = found.most_lost() or str(found).splitlines()[0].partition(": ")[2]
    error.locate(found, f"Where it begins (jax2tf.locate): {where}")
    error.add_note(str(found))


def _found(error: VerificationError, job: Job, chosen: Format, trials: Sequence[Trial]) -> Located:
    of_signature = [t for t in trials if t.signature.name == error.signature]
    with tempfile.TemporaryDirectory() as folder:
        maker = Files(chosen, job.options, Path(folder))
        sides = (
            File(
                maker,
                job.target,
                program_of(t.signature, job.params, list(t.inputs.values())),
                t.signature,
                job.params,
                (job.target, job),
            )
            for t in of_signature
        )
        return searching.in_file("the file", sides)
