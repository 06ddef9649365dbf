"""The files of ONNX in onnxruntime-web, with WebAssembly in Node.js."""

from __future__ import annotations

import jax
import numpy as np
import onnx
import pytest

import jax2tf
from tests.consumers import onnxruntime_web
from tests.consumers.models import MODELS
from tests.running import assert_near

pytestmark = pytest.mark.skipif(onnxruntime_web.LACK is not None, reason=str(onnxruntime_web.LACK))


@pytest.fixture(scope="module")
def node():
    process = onnxruntime_web.Node()
    yield process
    process.close()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_any_batch(node, tmp_path, name):
    model, file = MODELS[name], tmp_path / "m.onnx"
    inputs = [model.inputs(batch, model.length) for batch in (1, 3)]
    shapes = zip(model.shapes, inputs[0], strict=True)
    specs = tuple(f"{shape}:{x.dtype.name}" for shape, x in shapes)
    constraints = {"polymorphic_constraints": model.constraints}
    jax2tf.export(model.function, None, specs, file, verify=False, progress=False, **constraints)
    graph = onnx.load(file).graph
    given, outputs = ([x.name for x in values] for values in (graph.input, graph.output))
    assert set(node.load(file)) <= set(given)
    for arrays in inputs:
        feed = dict(zip(given, map(np.asarray, arrays), strict=True))
        expected = jax.tree.leaves(jax.jit(model.function)(*arrays))
        assert_near(node.run(feed, outputs), expected, 512)
