"""`export` writes a JAX function as a file or folder of an engine, and runs the result there."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from jax2tf._src.api.errors import VerificationError
from jax2tf._src.export import (
    calibration,
    checkpoints,
    destination,
    disk,
    formats,
    origin,
    progress,
    widening,
)
from jax2tf._src.export import serving as places
from jax2tf._src.export.constraints import with_constraints
from jax2tf._src.export.formats import Format
from jax2tf._src.export.job import Job
from jax2tf._src.export.result import ExportResult
from jax2tf._src.export.signatures import (
    Signature,
    given_arrays,
    refuse_several,
    signatures_of,
    verification_ways,
)
from jax2tf._src.export.verification import (
    Judge,
    TitledShapes,
    Trial,
    cost,
    dtypes_of,
    random_inputs,
    random_shapes,
    tolerances_of,
    trials_of,
)
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import Option, PyTree


def export(
    fun: PyTree,
    params: PyTree,
    specs: PyTree,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    polymorphic_constraints: Sequence[str] | jax_export.SymbolicScope = (),
    verify: PyTree = True,
    tolerance: float | Mapping[str, float] | None = None,
    overwrite: bool = False,
    progress: bool = True,
    widen_bfloat16: bool = False,
    locate: bool = True,
    serving: bool | int = False,
    **options: Option,
) -> ExportResult:
    """Writes a JAX function as a file or folder of an engine, and verifies the results there.

    >>> import tempfile, jax.numpy as jnp
    >>> folder = tempfile.mkdtemp()
    >>> def model(params, x):
    ...     return {"y": jnp.tanh(x @ params["w"])}
    >>> result = export(model, {"w": jnp.ones([4, 3])}, "b, 4", f"{folder}/model.tflite")
    >>> result.format, result.signatures
    ('litert', {'serving_default': {'x': 'float32[b, 4]'}})
    >>> result.differences["serving_default"]["y"] < 1e-6
    True

    Files of ONNX and of LiteRT need no TensorFlow, except for functions that call TensorFlow
    (`call_tf`). Where TensorFlow is installed, its converter writes the files of LiteRT. All other
    formats need it.

    The file or folder is written beside `path`, and renamed after it was verified. So `path` is
    always complete, even if the process is killed.

    Args:
      fun: `fun(params, *inputs)`, as `convert` takes it; or a dict of several signatures that share
        the parameters, {name: (function, specs)}, for SavedModels and LiteRT.
      params: a pytree of arrays; the path of a checkpoint (an Orbax folder, .safetensors or .npz),
        in which a "/" in a name makes a dict in a dict; or None for functions of only inputs.
      specs: one spec for one input, a tuple or list with a pytree of specs for each, or a dict of
        these by the name of the parameter. A spec is an array, a jax.ShapeDtypeStruct, a
        tf.TensorSpec, or a text such as "b, 224, 224, 3" (float32) or "b, 10:int32". Names stand
        for open dimensions, as in `convert`; each None of a tf.TensorSpec is an open dimension,
        too. `specs` is None if `fun` is a dict.
      path: the file or folder to write. Its suffix selects the format: no suffix for a SavedModel
        (a folder), .tflite, .onnx, .xml (OpenVINO, with a .bin beside it), .tfjs (a folder).
      format: "savedmodel", "litert", "onnx", "openvino" or "tfjs", for a path with another suffix.
        The suffix of OpenVINO is always .xml.
      polymorphic_constraints: assumptions about open dimensions, as `convert` takes them. Each
        holds for the signatures that have its dimensions.
      verify: whether to run the file with random inputs (normal numbers, integers from 0 to 3) for
        two sizes of the open dimensions; or a list of inputs to run instead, each in the structure
        of the specs. For several signatures a dict of lists, in which True stands for random inputs
        and False for a signature that is not run. With quantize="int8" the first two representative
        inputs are run.
      tolerance: the largest deviation of an output from JAX's: the largest difference in units of
        JAX's largest element, or for integers the share of elements that differ. In files of 8-bit
        numbers it is the root mean square of the difference, in units of the root mean square of
        JAX's result. The default depends on the least exact of parameters, inputs and outputs: 1e-4
        for float32, 1e-9 for float64, 0.01 for float16, 0.05 for bfloat16. It is 0 for integers,
        0.01 for float16 weights, 0.1 for 8-bit and 0.3 for 4-bit weights, and 0.2 for 8-bit weights
        and activations. For several signatures also a dict {name: tolerance}; the others have the
        default.
      overwrite: whether to replace an existing file, or a folder that holds only a model of the
        format.
      progress: whether to report slow steps on stderr.
      widen_bfloat16: whether inputs, outputs and computations of bfloat16 become float32, because
        no engine's file holds bfloat16. The results are compared with JAX's in bfloat16, with the
        tolerance of bfloat16.
      locate: whether an error of the verification says at which equation the file begins to differ,
        from which line it comes and who is wrong, as `locate` does.
      serving: whether `path` is a folder of versions as servers read it: `path/1`, `path/2`, the
        next one for True, or a number. For the formats "savedmodel" (TensorFlow Serving; the inputs
        of the verification become warm-up requests), "onnx" and "openvino" (Triton, with a
        config.pbtxt, and OpenVINO Model Server). Give `format=`, except for a SavedModel.
      **options: the options of the format. SavedModel: trainable (as in `Module`), with_gradient,
        saved_gradient_order, enable_xla (as in `convert`). LiteRT: quantize ("dynamic", "float16",
        "int8", "int4"), representative_data (inputs for "int8", each in the structure of the specs;
        for several signatures a dict of lists), integer_io (int8 inputs and outputs). ONNX:
        opset (18 to the newest of the installed ONNX Runtime; by default 21), quantize ("float16",
        "int8_weights", "int4"), external_data (whether the arrays stand in a file
        `model.onnx.data` beside the model; by default from 2 GB on).
        OpenVINO: compress_to_fp16, quantize ("int8_weights", "int4"). TensorFlow.js: quantize
        ("float16", "uint16", "uint8").
        All engines: assume_finite (as in `convert`; True for int8). All formats:
        value_checks (as in `convert`).

    Returns:
      A report: format, signatures, size, number of ops, largest difference by output.

    Raises:
      TypeError: the format has no such option, a function or a spec has another type, or there are
        more or fewer specs than inputs.
      ValueError: a spec, an option or the path cannot be read, a spec is of a static argument of
        jax.jit, or no signature has the dimensions of a constraint.
      FileExistsError: the path exists, and `overwrite` is False or it is not a model of the format.
      jax2tf.MissingPackageError: the engine, or the library of the checkpoint, is not installed.
      jax2tf.ConversionError: a part of the function has no lowering.
      jax2tf.ExportError: the format cannot hold the function, or the converter refuses it.
      jax2tf.VerificationError: the file does not run, or its results differ from JAX's.
    """
    target = option_checks.path(path, "jax2tf.export: path", "model.tflite")
    option_checks.switches(
        "jax2tf.export",
        overwrite=overwrite,
        progress=progress,
        widen_bfloat16=widen_bfloat16,
        locate=locate,
    )
    options = {name: value for name, value in options.items() if value is not None}
    is_served = not isinstance(serving, bool | np.bool_) or bool(serving)
    chosen = formats.format_of(target, format, is_folder=is_served)
    formats.check_options(chosen, options)
    place = places.place_of(target, serving, chosen.name, chosen.suffix, verify, overwrite)
    if place is None:
        destination.refuse_existing(chosen.files(target, options), overwrite, chosen.obstacle)
    else:
        obstacle = places.obstacle if place.file else chosen.obstacle
        destination.refuse_existing([place.folder], overwrite, obstacle)
        target = place.folder / place.file
    formats.check_packages(chosen, with_running=verify is not False)
    step = _steps(target, progress)
    source = params
    if isinstance(params, str | bytes | os.PathLike):
        with step("reading the checkpoint"):
            params = checkpoints.load(params)
    signatures = tuple(
        dataclasses.replace(signature, one_namespace=chosen.one_namespace)
        for signature in with_constraints(
            signatures_of(fun, params, specs), polymorphic_constraints
        )
    )
    tolerances = tolerances_of(tolerance, [signature.name for signature in signatures])
    if not chosen.has_several:
        refuse_several(signatures, chosen.name)
    if "representative_data" in options:
        data = given_arrays(signatures, options["representative_data"], "representative_data")
        calibration.refuse_without_ranges(signatures, data)
        options = {**options, "representative_data": data}
    ways = verification_ways(signatures, verify)
    is_random = "representative_data" not in options
    shapes = {s.name: random_shapes(s) for s in signatures if ways[s.name] is True and is_random}
    with (
        step(f"running JAX{cost(signatures, shapes)}"),
        checkpoints.explaining_names(source, params),
    ):
        trials = _trials(signatures, params, ways, options, shapes)
    if "representative_data" in options:
        calibration.refuse_results_without_ranges(trials)
    elif options.get("quantize") == "dynamic":
        calibration.refuse_weights_without_ranges(params)
    of_params = dtypes_of(params)
    if widen_bfloat16:
        of_params.add(jnp.dtype(jnp.bfloat16))
        signatures, params, trials, options = _widened(signatures, params, trials, options)
    judge = Judge(chosen.name, chosen.engine.precision(options), of_params, tolerances)
    top = target if place is None else place.folder
    with disk.writing(top), destination.beside(top) as folder:
        job = Job(
            signatures=signatures,
            params=params,
            convert=convert_options(chosen, options),
            options=options,
            metadata=origin.metadata_of(signatures, (*chosen.to_write, *chosen.to_run)),
            scratch=folder,
            target=folder / "written" / target.relative_to(top.parent),
        )
        job.target.parent.mkdir(parents=True)
        # Parameters of a checkpoint free their memory before the engine loads the file.
        del params
        with step(f"converting to {chosen.name}"):
            ops = chosen.engine.write(job)
        job.params = None
        differences: Mapping[str, Mapping[str, float]] = {}
        if trials:
            with step(f"running in {chosen.name}"):
                try:
                    run = judge.loaded(lambda: chosen.engine.load(job.target, job))
                    differences = judge.differences(run, trials)
                except VerificationError as error:
                    if error.output is not None:
                        job.params = _params_again(source, widen_bfloat16)
                        judge.refuse_impure(error, trials, job.params)
                        if locate:
                            with step("looking for the line"):
                                # It imports this module.
                                failures = importlib.import_module("jax2tf._src.locate.failures")
                                failures.add_line(error, job, chosen, trials)
                    raise
            chosen.engine.add_metadata(job.target, origin.said(differences))
        written = chosen.written(job.target)
        if place is None:
            targets = [target.with_name(file.name) for file in written]
            destination.refuse_existing(targets, overwrite, chosen.obstacle)
            steps = chosen.steps(written, targets)
        else:
            steps = _version(place, job, chosen, trials)
            destination.refuse_existing([top], overwrite, obstacle)
        size = sum(map(_size, written))
        destination.put(steps)
    return ExportResult(
        target,
        chosen.name,
        {s.name: {i.name: str(i).partition(": ")[2] for i in s.inputs} for s in signatures},
        size,
        ops,
        differences,
        tuple(f"{trial.signature.name}: {trial.title}" for trial in trials),
    )


def _version(
    place: places.Place, job: Job, chosen: Format, trials: Sequence[Trial]
) -> destination.Steps:
    """Writes what servers want beside the model; returns the renames."""
    if chosen.ports is None:
        requests = [(trial.signature.name, trial.inputs) for trial in trials]
        places.write_warm_up(job.target, place.base.name, requests)
        return [(job.target, place.folder)]
    text = places.config(place.base.name, chosen.name, chosen.ports(job.target))
    more = places.config_step(place, job.scratch / places.CONFIG, text)
    # A server that watches the folder reads the description when the version appears.
    return [*more, (job.target.parent, place.folder)]


def _params_again(source: PyTree, is_widened: bool) -> PyTree:
    """The parameters, which were given back before the file was run.

    Args:
      source: the parameters, or the path of their checkpoint.
      is_widened: whether bfloat16 became float32.
    """
    is_path = isinstance(source, str | bytes | os.PathLike)
    params = checkpoints.load(source) if is_path else source
    return widening.widened(params) if is_widened else params


def _widened(
    signatures: Sequence[Signature],
    params: PyTree,
    trials: Sequence[Trial],
    options: Mapping[str, Option],
) -> tuple[tuple[Signature, ...], PyTree, list[Trial], dict[str, PyTree]]:
    """The arguments with float32 in place of bfloat16."""
    by_name = {s.name: widening.widened_signature(s, params) for s in signatures}
    wide_trials = [
        dataclasses.replace(
            trial,
            signature=by_name[trial.signature.name],
            inputs=widening.widened(trial.inputs),
            results=widening.widened(trial.results),
        )
        for trial in trials
    ]
    wide_options = dict(options)
    if "representative_data" in options:
        wide_options["representative_data"] = widening.widened(options["representative_data"])
    return tuple(by_name.values()), widening.widened(params), wide_trials, wide_options


def convert_options(chosen: Format, options: Mapping[str, Option]) -> Mapping[str, Option]:
    """The options of `convert` for a format.

    A graph for int8 assumes finite numbers, because integers are.
    """
    if "assume_finite" not in chosen.engine.OPTIONS:
        return chosen.convert
    of_engine = {**chosen.convert, "value_checks": options.get("value_checks", "raise")}
    if options.get("quantize") == "int8":
        target = TARGETS[chosen.convert["target"]].for_integers()
        is_finite = options.get("assume_finite", True)
        return {**of_engine, "target": dataclasses.replace(target, assume_finite=is_finite)}
    return {**of_engine, "assume_finite": options.get("assume_finite", False)}


def _steps(target: Path, shown: bool) -> progress.Step:
    return progress.steps(f"jax2tf.export {target.name}", shown)


def _trials(
    signatures: Sequence[Signature],
    params: PyTree,
    ways: Mapping[str, bool | list[list[np.ndarray]]],
    options: Mapping[str, Option],
    shapes: Mapping[str, Iterable[TitledShapes]],
) -> list[Trial]:
    """Runs JAX on the inputs with which the file is verified; `shapes` are those of random ones."""
    inputs: dict[str, list[tuple[str, list[np.ndarray]]]] = {}
    for signature in signatures:
        name, way = signature.name, ways[signature.name]
        if isinstance(way, list):
            inputs[name] = _titled("given input", way)
        elif way and "representative_data" in options:
            inputs[name] = _titled("representative input", options["representative_data"][name][:2])
        elif way:
            inputs[name] = random_inputs(signature, shapes[name])
    return [trial for s in signatures for trial in trials_of(s, params, inputs.get(s.name, ()))]


def _titled(title: str, samples: Iterable[list[np.ndarray]]) -> list[tuple[str, list[np.ndarray]]]:
    return [(f"{title} {i}", sample) for i, sample in enumerate(samples)]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
