"""What a format is given to write."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jax2tf.errors import ExportError
from jax2tf.export.program import Program, program_of
from jax2tf.export.signatures import Signature


@dataclasses.dataclass
class Job:
    """What is to be written.

    Attributes:
      signatures: the functions.
      params: the parameters, as arrays.
      constraints: polymorphic constraints of the caller's.
      convert: options of `convert`, for the format.
      options: options of the format.
      metadata: what the file says of where it comes from.
      scratch: a folder that goes in the end.
      target: what to write, a path in a folder of its own.
      outputs: the names of the outputs by signature, once there is a program.
    """

    signatures: Sequence[Signature]
    params: Any
    constraints: Any
    convert: Mapping[str, Any]
    options: Mapping[str, Any]
    metadata: Mapping[str, str]
    scratch: Path
    target: Path
    outputs: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def program(self, **options: Any) -> Program:
        """The functions converted, over variables that have the parameters' memory."""
        program = program_of(
            self.signatures, self.params, self.constraints, {**self.convert, **options}
        )
        for name, function in program.functions.items():
            self.outputs[name] = list(function.get_concrete_function().structured_outputs)
        return program

    def saved_model(self) -> Path:
        """A SavedModel for a converter to read. The variables are gone when it is there."""
        folder = self.scratch / "saved_model"
        self.program().save(folder, with_gradients=False)
        # Graphs refer to themselves in cycles, and to the variables.
        gc.collect()
        return folder


@contextlib.contextmanager
def converting(name: str) -> Iterator[None]:
    """Says which engine's converter it is that refuses the function.

    Raises:
      ExportError: the converter raises something.
    """
    try:
        yield
    # Each converter has errors of its own.
    except Exception as error:
        raise ExportError(
            f"jax2tf.export: {name} refuses the function: {type(error).__name__}: {error}. What to "
            "do: reports/tables/consumers.md says what each engine takes; choose another format, "
            "or change the function"
        ) from error
