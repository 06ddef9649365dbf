"""jax2onnx, run by ONNX Runtime on the CPU."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

from harnesses.engine.converters import Converter


class Jax2Onnx(Converter):
    """The ONNX model, in a session, with the tree of the function's results."""

    distributions = ("jax2onnx", "onnxruntime")
    # Names of nodes, and the places in ONNX Runtime's own source.
    noise = (
        (r"/onnxruntime_src/\S+ (?:.*?\) )?", ""),
        (r"Name:'.*?'", ""),
        (r"\bnode_?\w*?_\d+", "node"),
    )

    def convert(self, fun: Callable[..., Any], args: tuple) -> tuple[Any, Any]:
        results = jax.eval_shape(fun, *args)
        dtypes = {leaf.dtype.name for leaf in jax.tree.leaves((args, results))}
        # It makes float64 of every float32 too: only where the function asks for one of them.
        wide = not dtypes.isdisjoint({"float64", "complex128"})
        model = to_onnx(fun, jax.tree.leaves(args), enable_double_precision=wide)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return session, jax.tree.structure(results)

    def call(self, model: tuple[Any, Any], args: tuple) -> Any:
        session, tree = model
        names = [node.name for node in session.get_inputs()]
        feed = dict(zip(names, map(np.asarray, jax.tree.leaves(args)), strict=True))
        return jax.tree.unflatten(tree, session.run(None, feed))
