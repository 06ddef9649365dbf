"""LiteRT: tf.lite's converter with builtin ops only, run by the interpreter of ai-edge-litert."""

import contextlib
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from harnesses.engine.consumers import Model
from harnesses.engine.consumers.graph import Graph, saved

# What surrounds the line that says what is wrong, in the report of the compiler that MLIR is.
NOISE = ((r"(?s)^.*?('tfl?\.\w+' op .*?)\n.*", r"\1"),)


def convert(graph: Graph) -> Model:
    """The graph as a .tflite model in an interpreter."""
    return _in_interpreter(flatbuffer(graph), graph)


def flatbuffer(graph: Graph) -> bytes:
    """The graph as the contents of a .tflite file."""
    with saved(graph) as folder:
        converter = tf.lite.TFLiteConverter.from_saved_model(str(folder))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        # It would write the largest finite number for an infinite constant.
        converter.canonicalizing_inf_as_min_max_float = False
        return converter.convert()


def count_ops(graph: Graph) -> int:
    """How many ops the model has, in the bodies of its loops too."""
    with contextlib.redirect_stdout(io.StringIO()) as report:
        tf.lite.experimental.Analyzer.analyze(model_content=flatbuffer(graph))
    return len(re.findall(r"^\s*Op#\d+ ", report.getvalue(), flags=re.MULTILINE))


def _in_interpreter(content: bytes, graph: Graph) -> Model:
    interpreter = Interpreter(model_content=content, num_threads=1)
    runner = interpreter.get_signature_runner()
    inputs = [runner.get_input_details()[name]["index"] for name in graph.inputs]
    outputs = [runner.get_output_details()[name]["index"] for name in graph.outputs]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        for index, array in zip(inputs, arrays, strict=True):
            interpreter.resize_tensor_input(index, array.shape)
        interpreter.allocate_tensors()
        # An array without elements is not there to be written or read: the interpreter refuses it.
        for index, array in zip(inputs, arrays, strict=True):
            if array.size:
                interpreter.set_tensor(index, array)
        interpreter.invoke()
        details = {detail["index"]: detail for detail in interpreter.get_output_details()}
        return [_read(interpreter, details[index]) for index in outputs]

    return run


def _read(interpreter: Interpreter, detail: dict[str, Any]) -> np.ndarray:
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return interpreter.get_tensor(detail["index"])
