"""The converter of TensorFlow.js writes what jax2tf converts, once jax2tf is installed in the place
of JAX's own."""

from __future__ import annotations

import importlib
import json
import sys
import types

import jax
import numpy as np
import pytest
import tensorflow as tf
from flax import linen
from google.protobuf import json_format

import jax2tf
from tests.running import assert_near

KEY = jax.random.key(0)

# The converter imports libraries of formats that it does not read here; they pin a TensorFlow.
OTHER_FORMATS = ("tensorflow_decision_forests", "tensorflow_hub", "tf_keras")


class ConvNet(linen.Module):
    """A classifier of images of any size."""

    @linen.compact
    def __call__(self, x):
        x = linen.relu(linen.Conv(8, (3, 3), strides=2)(x))
        x = linen.BatchNorm(use_running_average=True)(x)
        x = linen.max_pool(x, (2, 2), strides=(2, 2))
        return linen.softmax(linen.Dense(5)(x.mean((1, 2))))


@pytest.fixture(scope="module")
def convert_jax():
    """The converter's function for JAX, imported where it finds jax2tf."""
    absent = [name for name in OTHER_FORMATS if name not in sys.modules]
    sys.modules.update({name: types.ModuleType(name) for name in absent})
    jax2tf.install()
    try:
        yield importlib.import_module("tensorflowjs.converters.jax_conversion").convert_jax
    finally:
        jax2tf.uninstall()
        for name in absent:
            del sys.modules[name]


def graph_of(folder):
    """The graph that a page would load, with its weights."""
    model = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    graph = json_format.ParseDict(model["modelTopology"], tf.compat.v1.GraphDef())
    (group,) = model["weightsManifest"]
    content = b"".join((folder / path).read_bytes() for path in group["paths"])
    nodes = {node.name: node for node in graph.node}
    for weight in group["weights"]:
        dtype = np.dtype(weight["dtype"])
        count = int(np.prod(weight["shape"]))
        array = np.frombuffer(content, dtype, count).reshape(weight["shape"])
        content = content[array.nbytes :]
        nodes[weight["name"]].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
    assert not content
    return graph, model["signature"]


def run(folder, x):
    """What the graph gives, and its ops."""
    graph, signature = graph_of(folder)
    (given,), (made,) = signature["inputs"].values(), signature["outputs"].values()

    def imported(x):
        (result,) = tf.graph_util.import_graph_def(
            graph, {given["name"]: x}, [made["name"]], name=""
        )
        return result

    result = tf.compat.v1.wrap_function(imported, [tf.TensorSpec(None, tf.float32)])(x)
    return result, {node.op for node in graph.node}


@pytest.mark.parametrize(
    ("module", "sample", "spec", "options", "shapes"),
    [
        pytest.param(linen.Dense(4), (3, 4), (3, 4), {}, [(3, 4)], id="fixed"),
        # Without the option the converter refuses Assert, with which jax2tf checks open sizes.
        pytest.param(
            linen.Dense(4),
            (3, 4),
            (None, 4),
            {"polymorphic_shapes": ["(b, 4)"], "strip_debug_ops": True},
            [(1, 4), (6, 4)],
            id="open batch",
        ),
        pytest.param(
            ConvNet(),
            (2, 16, 16, 3),
            (None, None, None, 3),
            {"polymorphic_shapes": ["(b, 4*h, 4*w, 3)"], "strip_debug_ops": True},
            [(1, 16, 16, 3), (3, 8, 12, 3)],
            id="open images",
        ),
    ],
)
def test_a_module_of_flax(convert_jax, module, sample, spec, options, shapes, tmp_path):
    params = module.init(KEY, np.ones(sample, np.float32))
    convert_jax(
        module.apply,
        params,
        input_signatures=[tf.TensorSpec(spec, tf.float32, name="x")],
        model_dir=str(tmp_path),
        **options,
    )
    for shape in shapes:
        x = np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        result, ops = run(tmp_path, tf.constant(x))
        assert_near(result.numpy(), jax.jit(module.apply)(params, x), 64)
        assert not {op for op in ops if op.startswith("Xla")} | ({"Assert"} & ops)
