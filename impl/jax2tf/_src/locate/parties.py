"""Who is wrong about an equation: JAX, the lowering, the writer of the file, or the engine."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.api.errors import ConversionError
from jax2tf._src.locate import exactness, files, float64, graphs, texts
from jax2tf._src.locate.answer import Party
from jax2tf._src.locate.bits import Layer
from jax2tf._src.locate.files import Files
from jax2tf._src.locate.finding import Suspect
from jax2tf._src.locate.program import as_numpy, results_of
from jax2tf._src.targets.target import Target
from jax2tf._src.util.lazy_imports import has_tensorflow
from jax2tf._src.util.typing import Option

_ENGINES = {
    "savedmodel": "TensorFlow",
    "litert": "LiteRT",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO",
    "tfjs": "TensorFlow.js",
}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Who is wrong, how this is known, and what to do."""

    party: Party
    reason: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class Case:
    """One equation with the operands that it has on the other side.

    Attributes:
      eqn: the equation.
      suspect: its values.
      position: which of its results is wrong.
    """

    eqn: jex_core.JaxprEqn
    suspect: Suspect
    position: int

    @classmethod
    def of(cls, equations: Sequence[jex_core.JaxprEqn], suspect: Suspect) -> Case:
        eqn = equations[suspect.index]
        return cls(eqn, suspect, list(eqn.outvars).index(suspect.variable))

    def is_wrong(self, result: np.ndarray) -> bool:
        """Whether a result of this equation is off by more than is allowed."""
        expected = self.suspect.expected
        if result.shape != expected.shape:
            return True
        changes = exactness.conditioning(
            self.eqn, self.suspect.operands, self._every(), [0.0] * len(self.eqn.invars)
        )
        tolerance = exactness.allowed(self.eqn.primitive, expected)
        tolerance = tolerance + exactness.TIMES * changes[self.position]
        return exactness.ratio(result, expected, tolerance) > 1

    def _every(self) -> list[np.ndarray]:
        return [as_numpy(x) for x in results_of(self.eqn, self.suspect.operands)]


def of_changed_file(differences: Sequence[str]) -> Verdict:
    """The verdict on a file that jax2tf would write otherwise."""
    said = "; ".join(differences[:3]) or "its numbers differ there"
    return Verdict(
        Party.FILE,
        f"jax2tf writes this program today with the right result; in the file {said}",
        "the file was written from another program, other parameters, with other options or "
        "versions, or was changed since: export it again, and compare fun, params and options",
    )


def of_bits(layer: Layer) -> Verdict:
    """The verdict on a file whose fewer bits make an error above the tolerance."""
    return Verdict(
        Party.BITS,
        f"the file is right with all bits; with fewer, the layer of {layer.name} makes "
        f"{100 * layer.share:.0f}% of the outputs' error, and {100 * layer.saturated:.1f}% of its "
        "results are cut at the ends of their tensors",
        "leave the layers that lose most in a file of their own with all bits, give representative "
        "inputs that reach the values of these, take more bits (quantize='float16'), or a larger "
        "tolerance",
    )


def of_file(case: Case, maker: Files) -> Verdict:
    """The verdict on an equation of a file: it runs as a program of its own everywhere."""
    engine = _ENGINES[maker.format.name]
    jax_side = _of_jax(case)
    if jax_side is not None:
        return jax_side
    seen = {"JAX": case.suspect.expected}
    if has_tensorflow():
        result = _in_tensorflow(case, maker)
        if result is not None:
            seen["TensorFlow"] = result
            if case.is_wrong(result):
                return _lowering(case, seen)
    try:
        signature, arrays = files.of_one_equation(case.eqn, case.suspect.operands)
        path, job = maker.write(signature, None)
        feeds = files.feeds_of(signature, files.real_arrays(arrays))
        result = files.joined(maker.run(path, job, feeds))[f"y{case.position}"]
    except (TypeError, ConversionError) as error:
        return Verdict(Party.ENGINE, f"the equation as a file of its own: {error}", _other(engine))
    seen[engine] = result
    if not case.is_wrong(result):
        return Verdict(
            Party.OPTIMISER,
            f"{_values(case, seen)}: the equation is right in a file of its own, and wrong "
            "beside the others",
            f"ops are merged there by the converter or by {engine}: {_other(engine)}",
        )
    if maker.format.name == "onnx":
        result = _by_reference(path, feeds, case.position)
        if result is not None:
            seen["ONNX's reference"] = result
            if case.is_wrong(result):
                party = Party.WRITER if has_tensorflow() else Party.LOWERING
                return Verdict(
                    party,
                    f"{_values(case, seen)}: the ops that stand for it in the file are others",
                    "report the program below; until then leave this equation in another function",
                )
            return Verdict(
                Party.KERNEL,
                f"{_values(case, seen)}: the file is right by ONNX's definition of its ops",
                f"report the program below to {engine}; {_other(engine)}",
            )
    return Verdict(
        Party.ENGINE,
        f"{_values(case, seen)}: the same ops are right in TensorFlow",
        f"report the program below to {engine}; {_other(engine)}",
    )


def of_graph(case: Case, mode: str, options: Mapping[str, Option]) -> Verdict:
    """The verdict on an equation of a graph of TensorFlow."""
    jax_side = _of_jax(case)
    if jax_side is not None:
        return jax_side
    seen = {"JAX": case.suspect.expected}
    result = _graph_result(case, "eager", options)
    if result is not None:
        seen["TensorFlow, op by op"] = result
        if case.is_wrong(result):
            return _lowering(case, seen)
    result = _graph_result(case, mode, options)
    if result is not None:
        seen[f"TensorFlow, {mode}"] = result
        if case.is_wrong(result):
            return Verdict(
                Party.ENGINE,
                f"{_values(case, seen)}: the ops are right one by one",
                "XLA or TensorFlow's optimiser makes something else of them: report the program "
                "below, and take another of graph, compiled, eager",
            )
    return Verdict(
        Party.OPTIMISER,
        f"{_values(case, seen)}: the equation is right in a graph of its own",
        "TensorFlow merges it with others: try compiled in place of graph, or the other way round",
    )


def _lowering(case: Case, seen: Mapping[str, np.ndarray]) -> Verdict:
    return Verdict(
        Party.LOWERING,
        f"{_values(case, seen)}: TensorFlow's ops of this equation give another result",
        "report the program below to jax2tf; native_serialization=True of convert takes no rule "
        "of jax2tf's",
    )


def _other(engine: str) -> str:
    return f"another format than that of {engine}, or another function of JAX for the same, helps"


def _of_jax(case: Case) -> Verdict | None:
    """The verdict if JAX's own result is farther from the right one than the other side's."""
    wide = float64.results_of(case.eqn, case.suspect.operands)
    if wide is None:
        return None
    right = wide[case.position]
    at = texts.worst(case.suspect.actual, case.suspect.expected)
    own = exactness.error(case.suspect.expected, right)[at]
    other = exactness.error(case.suspect.actual, right)[at]
    if not own > other:
        return None
    seen = {
        "JAX": case.suspect.expected,
        "the other side": case.suspect.actual,
        "float64": right,
    }
    return Verdict(
        Party.JAX,
        f"{_values(case, seen)}: JAX is farther from the result in float64",
        "compute this equation in float64 in JAX, or take its result as one of several right ones "
        "(tolerance=...)",
    )


def _in_tensorflow(case: Case, maker: Files) -> np.ndarray | None:
    target: Target | str = maker.format.convert.get("target", "xla")
    return _graph_result(case, target if isinstance(target, str) else target.name, {})


def _graph_result(case: Case, mode: str, options: Mapping[str, Option]) -> np.ndarray | None:
    """The result of the equation in TensorFlow; None if it cannot be lowered without the others."""
    variables = files.by_variable(case.eqn, case.suspect.operands)
    closed = files.closed_of(case.eqn, list(variables))
    try:
        return graphs.run(closed, list(variables.values()), mode, options)[case.position]
    except ConversionError:
        return _real_result(case, mode, options)


def _real_result(case: Case, mode: str, options: Mapping[str, Option]) -> np.ndarray | None:
    """The same for a target without complex numbers: inputs and results are their parts."""
    try:
        signature, arrays = files.of_one_equation(case.eqn, case.suspect.operands)
        closed, names = files.real_program(signature, arrays)
        results = graphs.run(closed, files.real_arrays(arrays), mode, options)
    except (TypeError, ConversionError):
        return None
    return files.joined(dict(zip(names, results, strict=True)))[f"y{case.position}"]


def _by_reference(
    path: object, feeds: Mapping[str, np.ndarray], position: int
) -> np.ndarray | None:
    """The result by ONNX's own evaluator; None for ops that it does not have."""
    reference = importlib.import_module("onnx.reference")
    try:
        evaluator = reference.ReferenceEvaluator(str(path))
        given = {name: feeds[name] for name in evaluator.input_names}
        results = dict(zip(evaluator.output_names, evaluator.run(None, given), strict=True))
    # The evaluator has errors of many types for ops and dtypes that it does not have.
    except Exception:
        return None
    return np.asarray(files.joined(results)[f"y{position}"])


def _values(case: Case, seen: Mapping[str, np.ndarray]) -> str:
    """The element that is most wrong on all sides."""
    at = texts.worst(case.suspect.actual, case.suspect.expected)
    numbers = ", ".join(f"{name} {_number(array, at)}" for name, array in seen.items())
    file = _number(case.suspect.actual, at)
    return f"element {list(at)} is {file} there; {numbers}"


def _number(array: np.ndarray, at: tuple[int, ...]) -> str:
    value = array[at] if array.ndim == len(at) and array.size else array
    return (
        f"{value:.9g}"
        if exactness.is_inexact(array.dtype) and array.ndim == len(at)
        else str(value)
    )
