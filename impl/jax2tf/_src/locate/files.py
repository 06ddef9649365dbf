"""Writes programs as files of one format, in a folder of their own, and runs files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.export import exporting
from jax2tf._src.export.formats import Format
from jax2tf._src.export.job import Job
from jax2tf._src.export.signatures import Input, Signature
from jax2tf._src.locate.program import Program, Values, is_key, numbered
from jax2tf._src.lowering.passes.keys import keys_of
from jax2tf._src.util.typing import Array, Option, PyTree

Outputs = dict[str, np.ndarray]


@dataclasses.dataclass
class Files:
    """Writes and runs files of one format.

    Attributes:
      format: the format.
      options: its options, as `export` takes them.
      folder: where files are written.
    """

    format: Format
    options: Mapping[str, Option]
    folder: Path

    def __post_init__(self) -> None:
        self._numbers = itertools.count()

    def write(self, signature: Signature, params: PyTree) -> tuple[Path, Job]:
        """Writes a signature as a file; the job tells how to run it."""
        folder = self.folder / str(next(self._numbers))
        (folder / "written").mkdir(parents=True)
        job = self.job(signature, params, folder, folder / "written" / f"m{self.format.suffix}")
        with _without_what_stands():
            self.format.engine.write(job)
        return job.target, job

    def job(self, signature: Signature, params: PyTree, folder: Path, target: Path) -> Job:
        """The export of a signature as a file."""
        return Job(
            signatures=(signature,),
            params=params,
            convert=exporting.convert_options(self.format, self.options),
            options=self.options,
            metadata={},
            scratch=folder,
            target=target,
        )

    def run(self, path: Path, job: Job, feeds: Mapping[str, np.ndarray]) -> Outputs:
        """The outputs of a file on inputs by name."""
        run = self.format.engine.load(path, job)
        return dict(run(job.signatures[0].name, feeds))

    def values(
        self, program: Program, signature: Signature, wanted: Sequence[jex_core.Var]
    ) -> Values:
        """Writes the program with these results as outputs, and runs the file."""
        names = dict(numbered(wanted))
        cut = returning(program, names, signature)
        path, job = self.write(cut, list(program.leaves[: program.n_params]))
        outputs = joined(self.run(path, job, feeds_of(cut, real_arrays(program.inputs))))
        return {v: outputs[name] for name, v in names.items() if name in outputs}


# Python 3.12 starts with 375 frozen objects of its own.
_OF_PYTHON = 1000


@contextlib.contextmanager
def _without_what_stands() -> Iterator[None]:
    """Garbage is collected only among objects that are made within.

    TensorFlow collects at each SavedModel, and would look at all that is imported. What somebody
    else has frozen stays so.
    """
    if gc.get_freeze_count() > _OF_PYTHON:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def feeds_of(signature: Signature, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs by name."""
    return {spec.name: np.asarray(a) for spec, a in zip(signature.inputs, arrays, strict=True)}


def returning(
    program: Program, names: Mapping[str, jex_core.Var], signature: Signature
) -> Signature:
    """The program with other outputs, as a signature of a list of parameters and the inputs."""
    closed = program.with_outputs(list(names.values()))
    inputs = [
        dataclasses.replace(spec, shape=array.shape)
        for spec, array in zip(signature.inputs, program.inputs, strict=True)
    ]
    return signature_of(closed, list(names), inputs, signature.name)


def signature_of(
    closed: jex_core.ClosedJaxpr, names: Sequence[str], inputs: Sequence[Input], name: str
) -> Signature:
    """A jaxpr as a signature of a list of parameters and of inputs.

    Most engines have no complex numbers: those of inputs and outputs are two arrays, which
    `real_arrays` makes and `joined` puts together. No engine has keys: inputs are their data.
    """
    function = jex_core.jaxpr_as_fun(closed)
    avals = closed.in_avals[len(closed.in_avals) - len(inputs) :]

    def named(params: Sequence[Array], *given: Array) -> dict[str, Array]:
        parts = iter(given)
        operands = [
            lax.complex(next(parts), next(parts)) if _is_complex(spec.dtype) else next(parts)
            for spec in inputs
        ]
        typed = [keys_of(jnp.asarray(x), aval) for x, aval in zip(operands, avals, strict=True)]
        results = zip(names, function(*(params or ()), *typed), strict=True)
        return {k: v for name, result in results for k, v in _parts(name, result)}

    split = tuple(part for spec in inputs for part in _real(spec))
    return Signature(name, named, split, jax.tree.structure((split, {})))


# What is behind the names of the real and of the imaginary part.
_RE, _IM = "_re", "_im"


def _is_complex(dtype: np.dtype) -> bool:
    return np.dtype(dtype).kind == "c"


def _real(spec: Input) -> list[Input]:
    """An input as inputs of real numbers."""
    if not _is_complex(spec.dtype):
        return [spec]
    dtype = np.zeros((), spec.dtype).real.dtype
    return [dataclasses.replace(spec, name=f"{spec.name}{end}", dtype=dtype) for end in (_RE, _IM)]


def _parts(name: str, result: Array) -> list[tuple[str, Array]]:
    """A result, or its two parts if it is complex, with names."""
    if not hasattr(result, "dtype") or not jnp.issubdtype(result.dtype, jnp.complexfloating):
        return [(name, result)]
    return [(f"{name}{_RE}", lax.real(result)), (f"{name}{_IM}", lax.imag(result))]


def real_arrays(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays, complex ones as their real and imaginary parts."""
    found: list[np.ndarray] = []
    for array in arrays:
        found += [array.real, array.imag] if _is_complex(array.dtype) else [array]
    return found


def real_program(
    signature: Signature, arrays: Sequence[np.ndarray]
) -> tuple[jex_core.ClosedJaxpr, list[str]]:
    """The program of a signature of `signature_of` without parameters, and its results' names."""
    made, shapes = jax.make_jaxpr(functools.partial(signature.function, None), return_shape=True)(
        *real_arrays(arrays)
    )
    # The order of a dict's leaves is that of its keys.
    return made, sorted(shapes)


def joined(outputs: Outputs) -> Outputs:
    """The outputs of a signature of `signature_of`, complex ones put together."""
    found = {}
    for name, array in outputs.items():
        whole = name.removesuffix(_RE)
        if name.endswith(_RE) and f"{whole}{_IM}" in outputs:
            found[whole] = array + 1j * outputs[f"{whole}{_IM}"]
        elif not name.endswith(_IM):
            found[name] = array
    return found


def of_one_equation(
    eqn: jex_core.JaxprEqn, operands: Sequence[Array]
) -> tuple[Signature, list[np.ndarray]]:
    """A program of one equation whose operands are inputs, and the inputs.

    Raises:
      TypeError: an operand is an array of keys, which no file has as an input.
    """
    variables = by_variable(eqn, operands)
    if any(map(is_key, variables.values())):
        raise TypeError("an operand is an array of keys")
    arrays = [np.asarray(x) for x in variables.values()]
    inputs = [Input(f"x{i}", f"x{i}", array.shape, array.dtype) for i, array in enumerate(arrays)]
    names = [f"y{i}" for i in range(len(eqn.outvars))]
    closed = closed_of(eqn, list(variables))
    signature = signature_of(closed, names, inputs, "serving_default")
    return signature, arrays


def closed_of(eqn: jex_core.JaxprEqn, variables: Sequence[jex_core.Var]) -> jex_core.ClosedJaxpr:
    """An equation as a program of its variables."""
    jaxpr = jex_core.Jaxpr(
        [], list(variables), eqn.outvars, [eqn], eqn.effects, debug_info=_OF_ONE_EQUATION
    )
    return jex_core.ClosedJaxpr(jaxpr, [])


_OF_ONE_EQUATION = jex_core.DebugInfo("jax2tf", "an equation", None, None)


def by_variable(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> dict[jex_core.Var, Array]:
    """The operands of an equation that are no literals."""
    pairs = zip(eqn.invars, operands, strict=True)
    return {v: x for v, x in pairs if isinstance(v, jex_core.Var)}
