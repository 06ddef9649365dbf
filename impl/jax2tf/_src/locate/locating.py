"""`locate` finds the equation at which a file, or a graph, begins to differ from JAX."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.api.errors import MissingPackageError
from jax2tf._src.export import checkpoints, formats
from jax2tf._src.export.signatures import Signature, given_arrays, signatures_of
from jax2tf._src.export.verification import random_inputs, random_shapes
from jax2tf._src.locate import checks, files, graphs, searching
from jax2tf._src.locate.answer import Located
from jax2tf._src.locate.program import program_of
from jax2tf._src.locate.sides import File
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.lazy_imports import has_tensorflow, missing_tensorflow
from jax2tf._src.util.typing import Option, PyTree


def locate(
    fun: PyTree,
    params: PyTree,
    specs: PyTree,
    path_or_target: str | os.PathLike[str],
    inputs: PyTree = None,
    *,
    format: str | None = None,
    **options: Option,
) -> Located:
    """Finds the equation of a function at which a file, or a graph, begins to differ from JAX.

    JAX runs the function's equations one after the other; the other side runs on the same inputs,
    and gives the results of as many equations as can be read. An equation is wrong if its result
    is off by more than JAX makes of the other side's operands, up to what the primitive and the
    operands' last bits explain. The equation then runs by itself, in JAX, in float64, in
    TensorFlow and in the engine, which tells who is wrong.

    >>> import tempfile, jax2tf, jax.numpy as jnp
    >>> folder = tempfile.mkdtemp()
    >>> def model(params, x):
    ...     return {"y": jnp.tanh(x @ params["w"])}
    >>> params = {"w": jnp.eye(4, 3)}
    >>> _ = jax2tf.export(model, params, "b, 4", f"{folder}/model.onnx", progress=False)
    >>> found = locate(model, params, "b, 4", f"{folder}/model.onnx")
    >>> found.agrees, found.equation
    (True, None)
    >>> other = {"w": 2 * params["w"]}
    >>> found = locate(model, other, "b, 4", f"{folder}/model.onnx")
    >>> found.party.value, found.primitive
    ('the file', 'dot_general')

    Args:
      fun: `fun(params, *inputs)`, as `export` takes it; one function, not a dict of signatures.
      params: its parameters, as `export` takes them.
      specs: the specs of its inputs, as `export` takes them.
      path_or_target: a file or folder that `export` writes, for TensorFlow.js also the model.json
        in the folder; or "graph", "compiled", "eager" or "native", for what `convert` makes, run by
        TensorFlow in a graph, compiled by XLA, op by op, or as StableHLO; or a name of `TARGETS`,
        for the graph of that target in TensorFlow.
      inputs: the inputs to run, in the structure of the specs; by default random ones, as `export`
        makes them, or the first of `representative_data`.
      format: the format of a path with another suffix, as `export` takes it.
      **options: the options with which the file was exported, or those of `convert` for a graph.

    Returns:
      The answer, which prints itself: the equation, the user's line, by how much it is off, who is
      wrong, a program that shows it, a remedy. For a file with fewer bits (`quantize=`) it has a
      table of the layers, too: what each of them loses, and what is cut off in it.

    Raises:
      TypeError: a function, a spec or an option has another type.
      ValueError: the target is none, inputs do not fit the specs, the file has other inputs or
        outputs than the function, or the function gives other results each time JAX traces it.
      FileNotFoundError: there is no file at the path.
      jax2tf.MissingPackageError: the engine is not installed.
      jax2tf.ExportError: the file cannot be read, or does not run.
    """
    source = params
    with checks.named():
        if isinstance(params, str | bytes | os.PathLike):
            params = checkpoints.load(params)
        signature = checks.one_signature(signatures_of(fun, params, specs))
        options = {**options, **_representative(signature, options)}
        samples = _samples(signature, inputs, options)
        if isinstance(path_or_target, str) and path_or_target in (*graphs.MODES, *TARGETS):
            with checkpoints.explaining_names(source, params):
                return _in_graph(signature, params, samples, path_or_target, options)
        path, format = checks.folder_of_tfjs(checks.existing(path_or_target), format)
        chosen = formats.format_of(path, format)
        formats.check_options(chosen, options)
        formats.check_packages(chosen, with_running=True)
        checks.interface(path, chosen.name, signature)
    if chosen.name == "savedmodel":
        # Gradients change no result, and take most of the time.
        options = {"with_gradient": False, **options}
    signature = dataclasses.replace(signature, one_namespace=chosen.one_namespace)
    with tempfile.TemporaryDirectory() as folder, checkpoints.explaining_names(source, params):
        maker = files.Files(chosen, options, Path(folder))
        return searching.in_file(
            str(path),
            (
                File(maker, path, program_of(signature, params, arrays), signature, params)
                for arrays in samples
            ),
        )


def _in_graph(
    signature: Signature,
    params: PyTree,
    samples: Sequence[Sequence[np.ndarray]],
    mode: str,
    options: Mapping[str, Option],
) -> Located:
    if not has_tensorflow():
        raise _without_tensorflow(mode)
    sides = [
        graphs.Graph(program_of(signature, params, arrays), mode, options) for arrays in samples
    ]
    return searching.in_graph(mode, sides)


def _without_tensorflow(mode: str) -> MissingPackageError:
    return missing_tensorflow(f"jax2tf.locate: the target {mode!r}")


# Of representative inputs so many are run.
_REPRESENTATIVE = 3


def _representative(signature: Signature, options: Mapping[str, Option]) -> dict[str, Option]:
    """The option with representative inputs as leaves of the signature, as `export` has it."""
    name = "representative_data"
    return {name: given_arrays([signature], options[name], name)} if name in options else {}


def _samples(
    signature: Signature, inputs: PyTree, options: Mapping[str, PyTree]
) -> list[list[np.ndarray]]:
    """The inputs to try."""
    if inputs is not None:
        return [signature.arrays(inputs, "inputs")]
    if "representative_data" in options:
        return list(options["representative_data"][signature.name][:_REPRESENTATIVE])
    return [arrays for _, arrays in random_inputs(signature, random_shapes(signature))]
