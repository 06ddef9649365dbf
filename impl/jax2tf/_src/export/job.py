"""What a format is given to write."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import disk
from jax2tf._src.export.program import Program, program_of
from jax2tf._src.export.signatures import Signature
from jax2tf._src.util.typing import Option, PyTree


@dataclasses.dataclass
class Job:
    """What is to be written.

    Attributes:
      signatures: the functions.
      params: the parameters, as arrays.
      convert: options of `convert`, for the format.
      options: options of the format.
      metadata: what the file says of where it comes from.
      scratch: a folder that goes in the end.
      target: what to write, a path in a folder of its own.
      outputs: the names of the outputs by signature, once there is a program.
      complexes: the names of inputs and outputs that are complex, once there is a program.
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
        """The functions converted, over variables that have the parameters' memory."""
        program = program_of(self.signatures, self.params, {**self.convert, **options})
        for signature in self.signatures:
            outputs = program.functions[signature.name].get_concrete_function().structured_outputs
            self.outputs[signature.name] = list(outputs)
            of_inputs = {spec.name: spec.spec.dtype for spec in signature.inputs}
            of_both = {**of_inputs, **{name: output.dtype for name, output in outputs.items()}}
            self.complexes += [name for name, dtype in of_both.items() if dtype.is_complex]
        return program

    def saved_model(self) -> Path:
        """A SavedModel for a converter to read. The variables are gone when it is there."""
        folder = self.scratch / "saved_model"
        self.program().save(folder, with_gradients=False)
        # Graphs refer to themselves in cycles, and to the variables.
        gc.collect()
        return folder


# So much of a converter's error says what it is about; the rest of some is pages of MLIR.
_MOST_OF_ERROR = 600


@contextlib.contextmanager
def converting(name: str, job: Job) -> Iterator[None]:
    """Says which engine's converter it is that refuses the function.

    Raises:
      ExportError: the converter raises something.
    """
    try:
        yield
    # Each converter has errors of its own.
    except Exception as error:
        if disk.number_of(error) is not None:  # it is not for the function
            raise
        text = str(error).strip()
        has_bfloat16 = "bf16" in text
        if len(text) > _MOST_OF_ERROR:
            text = f"{text[:_MOST_OF_ERROR]} ..."
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
