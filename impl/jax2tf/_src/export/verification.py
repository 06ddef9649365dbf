"""Runs an exported file in its engine and compares the results with those of JAX."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.errors import ExportError, VerificationError
from jax2tf._src.export import purity
from jax2tf._src.export.signatures import Input, Signature, refuse_unknown
from jax2tf._src.export.sizes import shapes_of, two_sizes
from jax2tf._src.export.tolerances import (
    Precision,
    deviation,
    largest_difference,
    measured,
    tolerance_of,
)
from jax2tf._src.tracing import functions
from jax2tf._src.tracing.functions import Function
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.typing import PyTree

# Random integers are from 0 to 3, so that most functions take them as indices too.
_INTEGERS = 4
# Inputs with more elements repeat their random numbers: NumPy draws float64, which takes twice the
# memory of the input and more time than a copy. The number is a prime, so that rows of any length
# differ.
_MAX_DRAWN = 1_000_003
# The progress line tells the size of random inputs of at least so many bytes.
_LARGE_BYTES = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class Trial:
    """Inputs of a signature and JAX's results for them.

    Attributes:
      signature: the signature.
      title: a description of the inputs, such as "random inputs, b=2".
      inputs: the inputs by name.
      results: JAX's results by name.
      paths: the path of each result in the function's tree of results.
    """

    signature: Signature
    title: str
    inputs: Mapping[str, np.ndarray]
    results: Mapping[str, np.ndarray]
    paths: Mapping[str, str]


# The shapes of all inputs of a signature, with a title.
TitledShapes: TypeAlias = tuple[str, list[tuple[int, ...]]]


def random_shapes(signature: Signature) -> list[TitledShapes]:
    """The shapes of random inputs, for two sizes of the open dimensions.

    Raises:
      ExportError: no two sizes were found that the constraints allow.
    """
    return [
        (", ".join(["random inputs", *(f"{n}={s}" for n, s in sizes.items())]), shapes)
        for sizes, shapes in ((s, shapes_of(signature, s)) for s in two_sizes(signature))
    ]


def random_inputs(
    signature: Signature, titled_shapes: Iterable[TitledShapes]
) -> list[tuple[str, list[np.ndarray]]]:
    """Random inputs of the shapes, with their titles.

    Floating-point numbers are normal, integers are from 0 to 3.
    """
    rng = np.random.default_rng(0)
    return [
        (title, [_random(rng, *pair) for pair in zip(signature.inputs, shapes, strict=True)])
        for title, shapes in titled_shapes
    ]


def cost(signatures: Iterable[Signature], shapes: Mapping[str, Iterable[TitledShapes]]) -> str:
    """A remark on the memory of the random inputs; empty if they are small.

    Args:
      signatures: the signatures.
      shapes: the shapes of their random inputs, by signature.
    """
    n_bytes = sum(
        math.prod(shape) * spec.dtype.itemsize
        for signature in signatures
        for _, of_inputs in shapes.get(signature.name, ())
        for spec, shape in zip(signature.inputs, of_inputs, strict=True)
    )
    if n_bytes < _LARGE_BYTES:
        return ""
    return f" with {n_bytes / 1e9:.1f} GB of random inputs (verify=False leaves this out)"


def _random(rng: np.random.Generator, spec: Input, shape: tuple[int, ...]) -> np.ndarray:
    if math.prod(shape) > _MAX_DRAWN:
        return np.resize(_random(rng, spec, (_MAX_DRAWN,)), shape)
    if jnp.issubdtype(spec.dtype, jnp.complexfloating):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(spec.dtype)
    if jnp.issubdtype(spec.dtype, jnp.floating):
        return np.asarray(rng.normal(size=shape)).astype(spec.dtype)
    high = 2 if spec.dtype == bool else _INTEGERS
    return np.asarray(rng.integers(0, high, shape)).astype(spec.dtype)


def trials_of(
    signature: Signature, params: PyTree, inputs: Iterable[tuple[str, list[np.ndarray]]]
) -> list[Trial]:
    """Runs JAX on titled inputs."""
    fun = jax.jit(Function(signature.function).callable())
    params = functions.without_opaque_leaves(
        () if params is None else params, functions.is_array_or_number
    )
    trials = []
    for title, arrays in inputs:
        args, kwargs = signature.arguments(arrays)
        remedy = ""
        try:
            # The call below takes this trace.
            fun.eval_shape(params, *args, **kwargs)
            remedy = _NOT_RUN
            results = functions.values(fun(params, *args, **kwargs))
        except Exception as error:
            error.add_note(_note(signature, params, title, args, kwargs) + remedy)
            raise
        leaves = jax.tree_util.tree_leaves_with_path(results)
        names = signature.output_names(results)
        trials.append(
            Trial(
                signature,
                title,
                {s.name: a for s, a in zip(signature.inputs, arrays, strict=True)},
                {n: _as_numpy(leaf) for n, (_, leaf) in zip(names, leaves, strict=True)},
                {n: jax.tree_util.keystr(p) for n, (p, _) in zip(names, leaves, strict=True)},
            )
        )
    return trials


_NOT_RUN = (
    ". JAX traced it, and did not compile or run it on this device. What to do: verify=False "
    "writes the file without running JAX"
)


def _note(
    signature: Signature,
    params: PyTree,
    title: str,
    args: tuple[PyTree, ...],
    kwargs: dict[str, PyTree],
) -> str:
    function = Function(signature.function)
    return (
        f"jax2tf.export({function.name}) called it in JAX with {title}: "
        f"{function.called_with((params, *args), kwargs)}. Inputs are made from specs, parameters "
        f"are what params holds or names{_of_variables(params)}"
    )


def _of_variables(params: PyTree) -> str:
    """What to do where a parameter is a variable of TensorFlow, as a model of Keras may have."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    paths = [
        jax.tree_util.keystr(p) for p, x in leaves if type(x).__module__.startswith("tensorflow")
    ]
    if not paths:
        return ""
    return (
        f". params{paths[0]} is a value of TensorFlow, and JAX takes arrays. What to do: give its "
        "array (x.numpy()); if it is of a model of Keras, start the program with "
        "KERAS_BACKEND=jax in its environment, so that the model computes in JAX"
    )


def _as_numpy(result: PyTree) -> np.ndarray:
    return compat.jaxprs.data_of_keys(result) if dtypes.is_key(result.dtype) else np.asarray(result)


def dtypes_of(params: PyTree) -> set[PyTree]:
    """The dtypes of the parameters that are arrays."""
    return {
        leaf.dtype for leaf in jax.tree.leaves(params) if isinstance(leaf, jax.Array | np.ndarray)
    }


_REMEDY = (
    "The path is left as it was. What to do: reports/tables/consumers.md says what each engine "
    "takes; verify=False leaves the file untried"
)

Tolerances: TypeAlias = float | Mapping[str, float] | None
Run = Callable[[str, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def tolerances_of(value: PyTree, names: Collection[str]) -> Tolerances:
    """The caller's tolerance, or one for each signature that has one.

    Raises:
      TypeError: a tolerance is not a real number.
      ValueError: a tolerance is negative or NaN, or there is no signature of a name.
    """
    where = "jax2tf.export: tolerance"
    if not isinstance(value, Mapping) or not value:
        return option_checks.tolerance(value, where)
    refuse_unknown(value, names, where)
    checked = {k: option_checks.tolerance(v, f"{where}[{k!r}]") for k, v in value.items()}
    return {name: tolerance for name, tolerance in checked.items() if tolerance is not None}


@dataclasses.dataclass(frozen=True)
class Judge:
    """Compares the results of an engine with those of JAX.

    Attributes:
      format: the name of the format.
      precision: the precision of the file.
      of_params: the dtypes of the parameters.
      tolerances: the caller's tolerances by signature, or one for all; None for the default.
    """

    format: str
    precision: Precision
    of_params: set[np.dtype]
    tolerances: Tolerances

    def differences(self, run: Run, trials: Sequence[Trial]) -> dict[str, dict[str, float]]:
        """The largest absolute difference of each output, by signature.

        Raises:
          VerificationError: the engine does not run the file, or a result is not near enough.
        """
        differences: dict[str, dict[str, float]] = {}
        for trial in trials:
            results = self._run(run, trial)
            of_outputs = differences.setdefault(trial.signature.name, {})
            for name, expected in trial.results.items():
                difference = self._difference(trial, name, results, expected)
                of_outputs[name] = max(difference, of_outputs.get(name, 0.0))
        return differences

    def loaded(self, load: Callable[[], Run]) -> Run:
        """Loads the file into its engine; returns the function that runs it.

        Raises:
          VerificationError: the engine does not load the file.
        """
        try:
            return load()
        except ExportError:
            raise
        # Each engine has errors of its own.
        except Exception as error:
            raise VerificationError(
                f"jax2tf.export: what was written as {self.format!r} does not load: "
                f"{type(error).__name__}: {error}. {_REMEDY}"
            ) from error

    def _run(self, run: Run, trial: Trial) -> Mapping[str, np.ndarray]:
        try:
            return run(trial.signature.name, trial.inputs)
        # Each engine has errors of its own.
        except Exception as error:
            raise VerificationError(
                f"jax2tf.export: what was written as {self.format!r} does not run "
                f"({_description(trial)}): {type(error).__name__}: {error}. {_REMEDY}",
                trial.signature.name,
            ) from error

    def _difference(
        self, trial: Trial, name: str, results: Mapping[str, np.ndarray], expected: np.ndarray
    ) -> float:
        where = f"output {name!r} (result{trial.paths[name]})"
        if name not in results:
            raise self._error(trial, name, f"has no {where}, but {', '.join(results) or 'none'}")
        actual = results[name]
        if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
            got, wanted = (f"{a.dtype}[{', '.join(map(str, a.shape))}]" for a in (actual, expected))
            raise self._error(trial, name, f"gives {where} as {got}, and JAX as {wanted}")
        tolerance = self._tolerance(trial, expected.dtype)
        far = deviation(actual, expected, self.precision)
        difference = largest_difference(actual, expected)
        if not far <= tolerance:
            raise self._error(
                trial,
                name,
                f"gives {where} otherwise than JAX: the "
                f"{measured(expected.dtype, self.precision)}, is {far:.3g}, and the tolerance "
                f"is {tolerance:.3g} (the largest difference is {difference:.3g})",
                far,
                tolerance,
            )
        return difference

    def refuse_impure(
        self, error: VerificationError, trials: Sequence[Trial], params: PyTree
    ) -> None:
        """Has JAX trace and run a function twice whose file gave other results.

        Raises:
          VerificationError: the two traces give different results.
        """
        for trial in trials:
            if trial.signature.name != error.signature:
                continue
            inputs = (trial.title, list(trial.inputs.values()))
            first, second = (trials_of(trial.signature, params, [inputs])[0] for _ in range(2))
            is_near = functools.partial(self._is_near, first)
            name = purity.differing_output(first.results, second.results, is_near)
            if name is not None:
                where = f"output {name!r} (result{first.paths[name]})"
                said = purity.said(
                    where, f" ({_description(trial)})", "The path is left as it was. "
                )
                raise VerificationError(
                    f"jax2tf.export: {said}", trial.signature.name, name
                ) from error

    def _is_near(self, trial: Trial, actual: np.ndarray, expected: np.ndarray) -> bool:
        far = deviation(actual, expected, self.precision)
        return far <= self._tolerance(trial, expected.dtype)

    def _tolerance(self, trial: Trial, dtype: np.dtype) -> float:
        given = self.tolerances
        if isinstance(given, Mapping):
            given = given.get(trial.signature.name)
        if given is not None:
            return given
        inputs = {array.dtype for array in trial.inputs.values()}
        outputs = {array.dtype for array in trial.results.values()}
        return tolerance_of(self.precision, self.of_params | inputs | outputs, dtype)

    def _error(
        self,
        trial: Trial,
        name: str,
        what: str,
        far: float | None = None,
        tolerance: float | None = None,
    ) -> VerificationError:
        return VerificationError(
            f"jax2tf.export: what was written as {self.format!r} {what} ({_description(trial)}). "
            "The path is left as it was. What to do: a tolerance that the function calls for, as "
            "tolerance=...; inputs that it is meant for, as verify=[inputs, ...]; or verify=False "
            "to look at the file",
            trial.signature.name,
            name,
            far,
            tolerance,
        )


def _description(trial: Trial) -> str:
    return f"signature {trial.signature.name!r}, {trial.title}"
