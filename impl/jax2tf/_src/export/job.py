"""`Job` holds all that a format needs to write a file, and converts the functions."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import disk
from jax2tf._src.export.signatures import Signature
from jax2tf._src.util.typing import Option, PyTree

if TYPE_CHECKING:
    from jax2tf._src.export.program import Program

# The errors by which a writer of ours refuses a function; its other errors are mistakes in it.
REFUSALS = (NotImplementedError, ExportError)


@dataclasses.dataclass
class Job:
    """An export under way.

    Attributes:
      signatures: the functions.
      params: the parameters, as arrays.
      convert: the options of `convert` for the format.
      options: the options of the format.
      metadata: versions and source, to be stored in the file.
      scratch: a temporary folder.
      target: the path to write, in a folder of its own.
      outputs: the names of the outputs by signature; `program` fills it.
      complexes: the names of complex inputs and outputs; `program` fills it.
    """

    signatures: Sequence[Signature]
    params: PyTree
    convert: Mapping[str, Option]
    options: Mapping[str, Option]
    metadata: Mapping[str, str]
    scratch: Path
    target: Path
    outputs: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    complexes: list[str] = dataclasses.field(default_factory=list)

    def program(self, **options: Option) -> Program:
        """The converted functions, with variables that share the parameters' memory."""
        # It imports tf.Module.
        programs = importlib.import_module("jax2tf._src.export.program")
        program: Program = programs.program_of(
            self.signatures, self.params, {**self.convert, **options}
        )
        for signature in self.signatures:
            outputs = program.functions[signature.name].get_concrete_function().structured_outputs
            self.outputs[signature.name] = list(outputs)
            of_inputs = {spec.name: spec.spec.dtype for spec in signature.inputs}
            of_both = {**of_inputs, **{name: output.dtype for name, output in outputs.items()}}
            self.complexes += [name for name, dtype in of_both.items() if dtype.is_complex]
        return program

    def saved_model(self) -> Path:
        """Writes a SavedModel for a converter to read, and frees the memory of the variables."""
        folder = self.scratch / "saved_model"
        self.program().save(folder, with_gradients=False)
        # Graphs are in reference cycles, and hold the variables.
        gc.collect()
        return folder


# Some converters print pages of MLIR after the first lines of an error.
_MAX_ERROR_LENGTH = 600


@contextlib.contextmanager
def converting(
    name: str, job: Job, refusals: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Names the converter in any error that it raises.

    Args:
      name: the name of the converter.
      job: the export.
      refusals: the errors by which it refuses a function; others are mistakes in it.

    Raises:
      ExportError: the converter raises an error.
    """
    try:
        yield
    # Each converter has its own exception types.
    except Exception as error:
        if disk.errno_of(error) is not None:  # the function is not the cause
            raise
        text = str(error).strip()
        if not isinstance(error, refusals):
            raise ExportError(
                f"jax2tf.export: {name} failed, which is a mistake in jax2tf and not in your "
                f"function: {type(error).__name__}: {text[:_MAX_ERROR_LENGTH]}. What to do: report "
                "it with this traceback; another format, or another version of the ops (opset=) "
                "where the format has that option, may take the function"
            ) from error
        has_bfloat16 = "bf16" in text
        if len(text) > _MAX_ERROR_LENGTH:
            text = f"{text[:_MAX_ERROR_LENGTH]} ..."
        remedy = (
            "reports/tables/consumers.md says what each engine takes; choose another format, or "
            "change the function"
        )
        if has_bfloat16:
            remedy = "pass widen_bfloat16=True, which computes in float32 what is bfloat16"
        if job.complexes:
            remedy = (
                f"{', '.join(job.complexes)} is complex, and engines take and give real numbers: "
                "take and return the parts, y.real and y.imag"
            )
        raise ExportError(
            f"jax2tf.export: {name} refuses the function: {type(error).__name__}: {text}. What to "
            f"do: {remedy}"
        ) from error
