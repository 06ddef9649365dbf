"""Full-integer LiteRT files by litert-quantizer, which needs no TensorFlow.

Its calibration follows the ranges of samples by a moving average and so cuts off numbers that the
samples have. Here the range of a tensor is that of all samples, as in TensorFlow's converter.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import warnings
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.litert_files import biases, islands, tensor_names, weights
from jax2tf._src.export.litert_files.ends import Ends
from jax2tf._src.export.litert_files.file import File
from jax2tf._src.export.litert_files.tensor_names import INNER, OWN, name_of, source_of
from jax2tf._src.export.tflite import versions
from jax2tf._src.util.typing import PyTree

# The name of a signature, and an array for each of its inputs.
Sample = tuple[str, Mapping[str, np.ndarray]]
# The smallest and the largest number of each tensor, by `tensor_names.name_of`.
Ranges = Mapping[str, Mapping[str, np.ndarray]]


def ranges_of(content: bytes, samples: Iterable[Sample]) -> Ranges:
    """The ranges of the tensors that the signatures of a file compute.

    Args:
      content: the content of a file of float32.
      samples: inputs of the signatures.

    Raises:
      ExportError: a tensor holds NaN or an infinity for a sample.
    """
    computed = _computed(File(content))
    interpreter = _interpreter(content)
    ranges = {
        name_of(OWN, graph, index): {"min": np.array([np.inf]), "max": np.array([-np.inf])}
        for tensors in computed.values()
        for graph, index, _ in tensors
    }
    seen: dict[str, int] = collections.Counter()
    for signature, arrays in samples:
        _run(interpreter, signature, arrays, seen[signature])
        for graph, index, name in computed[signature]:
            array = interpreter.get_tensor(index, graph)
            if not np.isfinite(array).all():
                raise _not_finite(array, name, signature, seen[signature])
            known = ranges[name_of(OWN, graph, index)]
            known["min"] = np.minimum(known["min"], array.min(initial=np.inf))
            known["max"] = np.maximum(known["max"], array.max(initial=-np.inf))
        seen[signature] += 1
    # A tensor without elements has any range.
    nothing = {"min": np.zeros(1), "max": np.zeros(1)}
    return {name: r if r["min"] <= r["max"] else nothing for name, r in ranges.items()}


def quantized(content: bytes, ranges: Ranges, *, integer_io: bool) -> tuple[bytes, int]:
    """The content of a file whose tensors are integers of 8 bits, and the number of its ops.

    Args:
      content: the content of a file of float32.
      ranges: the ranges of its tensors, by `ranges_of`.
      integer_io: whether inputs and outputs are integers too.
    """
    file = File(content)
    if not ranges:
        return content, file.count_ops()
    names = tensor_names.rename(file)
    ends = Ends.taken_from(file)
    constants = _constants(file)
    floats = {*_floats(file, constants, ranges)}
    recipes = [*_with_one_scale(file)]
    changed = islands.disguise(file, floats)
    quantizer = _quantizer(file.content(), integer_io, floats, recipes)
    with _without_advice():
        result = quantizer.quantize(ranges, enable_progress_bar=False, enable_progress_report=False)
    file = File(bytes(result.quantized_model))
    ends.put(file, ranges, "INT8" if integer_io else "FLOAT32")
    biases.fit(file, constants)
    islands.undisguise(file, changed)
    islands.remove(file, ranges)
    tensor_names.restore(file, names)
    _set_versions(file)
    # Loops and branches compute with float32.
    return weights.stored(file.content(), "dynamic")


def _computed(file: File) -> dict[str, list[tuple[int, int, str]]]:
    """By signature: graph, index and name of each tensor of float32 that is computed and read."""
    computed = {}
    for signature in file.model.signatureDefs:
        graph = file.model.subgraphs[signature.subgraphIndex]
        # LiteRT keeps no results of a loop that nothing reads.
        read = {int(i) for op in graph.operators for i in op.inputs} | {*map(int, graph.outputs)}
        computed[signature.signatureKey.decode()] = [
            (signature.subgraphIndex, index, tensor.name.decode())
            for index, tensor in enumerate(graph.tensors)
            if index in read and file.type_of(tensor) == "FLOAT32" and file.bytes_of(tensor) is None
        ]
    return computed


def _interpreter(content: bytes) -> PyTree:
    """An interpreter in which all tensors can be read after a call."""
    module = importlib.import_module("ai_edge_litert.interpreter")
    with _without_advice():
        return module.Interpreter(
            model_content=content,
            # XNNPACK, which LiteRT uses by default, keeps no tensors between its ops.
            experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Hides the warning that keeping all tensors takes memory and is for debugging."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Warning: Enabling `experimental_preserve", UserWarning)
        yield


def _run(
    interpreter: PyTree, signature: str, arrays: Mapping[str, np.ndarray], sample: int
) -> None:
    try:
        interpreter.get_signature_runner(signature)(**arrays)
    except (RuntimeError, ValueError) as error:
        raise ExportError(
            f"jax2tf.export: LiteRT does not run {signature!r} with representative_data[{sample}]: "
            f"{error}. What to do: leave that sample out, or pass another quantize"
        ) from error


def _not_finite(array: np.ndarray, name: str, signature: str, sample: int) -> ExportError:
    what = "NaN" if np.isnan(array).any() else "an infinity"
    return ExportError(
        f"jax2tf.export: {name} holds {what} for representative_data[{sample}] of {signature!r}, "
        "and int8 holds finite numbers. What to do: compute it from numbers for which it is "
        "finite, with -1e9 in place of -inf in a mask; or pass another quantize"
    )


def _constants(file: File) -> dict[str, np.ndarray]:
    """The constants of float32 by the names of their tensors."""
    return {
        source_of(tensor): array
        for graph in file.model.subgraphs
        for tensor in graph.tensors
        if (array := file.floats_of(tensor)) is not None
    }


def _floats(file: File, constants: Mapping[str, np.ndarray], ranges: Ranges) -> Iterator[str]:
    """The names of the results of ops that LiteRT has no right integers for."""
    scales = {
        **{name: islands.scale_of(known)[0] for name, known in ranges.items()},
        **{
            name: islands.scale_of({"min": array, "max": array})[0]
            for name, array in constants.items()
            if array.size
        },
    }
    for graph in file.model.subgraphs:
        for op in graph.operators:
            of_inputs = [scales.get(source_of(graph.tensors[i]), 0) for i in op.inputs if i >= 0]
            # The kernels of comparisons take scales below 1.
            is_wide = file.name_of(op) in islands.COMPARISONS and max(of_inputs) >= 1
            if is_wide or not np.isfinite(of_inputs).all():
                yield source_of(graph.tensors[op.outputs[0]])


def _set_versions(file: File) -> None:
    """Gives ops the versions that compute with integers: litert-quantizer leaves them out."""
    for graph in file.model.subgraphs:
        for op in graph.operators:
            types = {file.type_of(graph.tensors[i]) for i in (*op.inputs, *op.outputs) if i >= 0}
            version = file.model.operatorCodes[op.opcodeIndex].version
            name = file.name_of(op)
            if "INT8" in types and versions.OF_INTEGERS.get(name, 1) > version:
                op.opcodeIndex = file.code(name, versions.OF_INTEGERS[name])


# The name of an op, that of its result, and how it is quantised.
_Recipe = tuple[str, str, PyTree]
# The ops that read tables of rows, each with the place of the table among its inputs.
_OF_TABLES = (("GATHER", 0), ("FULLY_CONNECTED", 1))


def _with_one_scale(file: File) -> Iterator[_Recipe]:
    """Recipes for the ops whose constants have one scale.

    These are matrix products by kernels that take one, although litert-quantizer gives a scale for
    each channel; and the readers of a table that is both multiplied and looked up. GATHER gives
    integers with the scale of its table, and litert-quantizer stores a table once if all of its
    readers take the same integers.
    """
    readers: dict[int, set[tuple[str, str]]] = collections.defaultdict(set)
    for graph in file.model.subgraphs:
        for op in graph.operators:
            name, result = file.name_of(op), source_of(graph.tensors[op.outputs[0]])
            known = [i for i in op.inputs if i >= 0 and file.bytes_of(graph.tensors[i]) is not None]
            is_product = name == "BATCH_MATMUL" and known
            if is_product or (name == "FULLY_CONNECTED" and op.inputs[0] in known):
                yield name, result, _config(is_symmetric=False)
            for reader, place in _OF_TABLES:
                if name == reader and op.inputs[place] in known:
                    readers[graph.tensors[op.inputs[place]].buffer].add((name, result))
    for ops in readers.values():
        if len({name for name, _ in ops}) > 1:
            for name, result in sorted(ops):
                # The table of GATHER is an activation, which may have a zero elsewhere.
                yield name, result, _config(is_symmetric=name == "GATHER")


def _config(*, is_symmetric: bool) -> PyTree:
    types = importlib.import_module("litert_quantizer.qtyping")
    return types.OpQuantizationConfig(
        types.TensorQuantizationConfig(num_bits=8, symmetric=is_symmetric),
        types.TensorQuantizationConfig(num_bits=8, symmetric=True),
        types.ComputePrecision.INTEGER,
    )


def _quantizer(
    content: bytes,
    integer_io: bool,
    floats: Iterable[str],
    recipes: Iterable[_Recipe],
) -> PyTree:
    quantizer = importlib.import_module("litert_quantizer.quantizer").Quantizer(content)
    kinds = importlib.import_module("litert_quantizer.qtyping").TFLOperationName
    algorithms = importlib.import_module("litert_quantizer.algorithm_manager").AlgorithmName
    quantizer.add_static_config(".*", kinds.ALL_SUPPORTED, activation_num_bits=8, weight_num_bits=8)
    for name, result, config in recipes:
        quantizer.update_quantization_recipe(f"^{result}", kinds[name], config)
    of_floats = [(f"^{result}", kinds.ALL_SUPPORTED) for result in (f"{INNER}/", *sorted(floats))]
    if not integer_io:
        of_floats += [(".*", kinds.INPUT), (".*", kinds.OUTPUT)]
    for regex, op in of_floats:
        quantizer.update_quantization_recipe(regex, op, algorithm_key=algorithms.NO_QUANTIZE)
    return quantizer
