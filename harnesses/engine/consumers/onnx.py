"""ONNX: the implementation's own writer, run by ONNX Runtime on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from jax import lax

from harnesses.engine.adapter import Adapter
from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph

# Names of nodes and tensors, and the places in its own source.
NOISE = (
    (r"In Node, \(\".*?\", (\w+), .*? , (?:Error )?", r"\1: "),
    (r"/onnxruntime_src/\S+ (?:.*?\) )?", ""),
    (r"\bnode \(.*?\)", "node"),
    (r"Name:'.*?'", ""),
)


def convert(graph: Graph) -> Model:
    """The graph of TensorFlow's as an ONNX model in a session of ONNX Runtime."""
    return _loaded(Adapter().onnx.file_of(graph.function), graph.inputs, graph.outputs)


def convert_function(fun: Callable[..., Any], specs: tuple[Any, ...]) -> Model:
    """A JAX function of pytrees of arrays as an ONNX model in a session of ONNX Runtime.

    ONNX Runtime has no complex numbers: the model takes and gives them as two arrays.
    """
    leaves, tree = jax.tree.flatten(specs)
    are_complex: list[bool] = []

    def of_parts(*arrays: Any) -> list[Any]:
        given = iter(arrays)
        whole = [
            lax.complex(next(given), next(given)) if _is_complex(leaf) else next(given)
            for leaf in leaves
        ]
        results = jax.tree.leaves(fun(*jax.tree.unflatten(tree, whole)))
        are_complex[:] = map(_is_complex, results)
        return _parts(results)

    model = _loaded(Adapter().onnx.file_of_jax(of_parts, tuple(_parts(leaves))))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = iter(model(_parts(arrays)))
        return [
            _joined(next(results), next(results)) if is_complex else next(results)
            for is_complex in are_complex
        ]

    return run


def _is_complex(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jnp.complexfloating)


def _parts(arrays: Sequence[Any]) -> list[Any]:
    """The arrays; a complex one is its real and its imaginary part."""
    return [part for x in arrays for part in ((x.real, x.imag) if _is_complex(x) else (x,))]


def _joined(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    # A sum would make NaN of an infinite part.
    result = np.empty(real.shape, np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def _loaded(
    file: bytes, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> Model:
    """The model of a file, with its inputs and outputs in the order of these names."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        feed = dict(zip(inputs or names, arrays, strict=True))
        return session.run(outputs, {name: feed[name] for name in names})

    return run


def count_ops(graph: Graph) -> int:
    """How many nodes the model has, in the bodies of its loops too; constants do not count."""
    return _count(onnx.load_from_string(Adapter().onnx.file_of(graph.function)).graph)


def _count(graph: Any) -> int:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    own = [node for node in graph.node if node.op_type not in ("Constant", "Identity")]
    return len(own) + sum(map(_count, inner))
