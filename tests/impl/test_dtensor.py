"""Converted functions on the meshes of DTensor, and on several replicas of tf.distribute."""

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import jax2tf
from jax2tf import dtensor
from jax2tf._src.targets.quirks import quirks_of
from tests.impl import logical_devices
from tests.impl.dtensor_quirks import PROGRAMS
from tests.running import ops_of

P = PartitionSpec


@pytest.mark.parametrize(
    "files",
    [
        ("dtensor_on_devices.py", "dtensor_programs.py", "dtensor_training.py"),
        ("mirrored_on_devices.py",),
    ],
    ids=["dtensor", "mirrored"],
)
def test_on_devices(files):
    logical_devices.run(*files)


@pytest.fixture(scope="module")
def exit_codes():
    """By name of a program: how a process ended with the quirk or lack, and how without it."""
    done = logical_devices.module("tests.impl.dtensor_quirks")
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_dtensor_needs_the_quirk_or_the_lack(exit_codes, name):
    """Without it DTensor refuses the program, gives other numbers, or ends the process."""
    codes, errors = exit_codes
    known, unknown = codes[name]
    assert known == 0, errors[-5000:]
    assert unknown != 0, f"DTensor no longer has {name}"


def test_every_quirk_of_dtensor_is_shown():
    assert PROGRAMS.keys() - {"ReverseV2", "TensorListReserve"} == quirks_of("dtensor")


def test_a_mesh_of_more_devices_than_there_are():
    many = AbstractMesh((512,), ("data",), axis_types=(AxisType.Auto,))
    words = "needs the devices CPU:0, CPU:1 ... CPU:511, and TensorFlow has no .*LogicalDevice"
    with pytest.raises(jax2tf.LayoutError, match=words):
        dtensor.mesh_of(many)


def test_what_is_no_mesh():
    with pytest.raises(TypeError, match="got tuple"):
        dtensor.mesh_of(("data",))


def test_devices_of_another_number():
    one = AbstractMesh((1,), ("data",), axis_types=(AxisType.Auto,))
    with pytest.raises(jax2tf.LayoutError, match="has 1 devices, and `devices` names 2"):
        dtensor.mesh_of(one, ["CPU:0", "CPU:0"])


def test_an_axis_without_a_text_for_its_name():
    with pytest.raises(jax2tf.LayoutError, match="the axis 3 should have a text for its name"):
        dtensor.mesh_of(AbstractMesh((1,), (3,), axis_types=(AxisType.Auto,)))


class TestOneDevice:
    mesh = AbstractMesh((1, 1), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    @pytest.mark.parametrize("option", ["enable_xla", "target", "native_serialization"])
    def test_options_that_it_does_not_take(self, option):
        with pytest.raises(ValueError, match=f"it takes no {option}"):
            dtensor.convert(jnp.sin, self.mesh, **{option: None})

    @pytest.mark.parametrize(
        ("sharding", "words"),
        [
            (P("rows"), "x: the sharding names the axis 'rows', and the DTensor mesh is ('data'"),
            (P(None, None, "data"), "dimensions or more, and the array has 2"),
            ("data", "got 'data', and DTensor's layouts name the axes"),
            (
                NamedSharding(AbstractMesh((2,), ("data",)), P("data")),
                "the sharding is over the mesh ('data': 2), and the DTensor mesh is ('data': 1",
            ),
        ],
    )
    def test_layouts_that_there_are_not(self, sharding, words):
        with pytest.raises(jax2tf.LayoutError, match=re.escape(words)):
            dtensor.place({"x": np.ones((4, 2))}, {"x": sharding}, self.mesh)

    @pytest.mark.parametrize(
        ("function", "op"),
        [
            (lambda x: jnp.linalg.inv(x), "MatrixSetDiagV3"),
            (lambda x: jnp.argmin(x, 0), "ArgMin"),
            (lambda x: jnp.linalg.cholesky(x), "MatrixDiagPartV3"),
        ],
    )
    def test_what_dtensor_cannot_spread_is_refused(self, function, op):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match=f"takes no {op}") as refused:
            dtensor.convert(function, self.mesh)(np.eye(4, dtype=np.float32))
        assert refused.value.primitive
        assert "convert for another target" in refused.value.remedy

    def test_names_and_documentation(self):
        def scaled(x, scale):
            """Scales."""
            return x * scale

        converted = dtensor.convert(scaled, self.mesh)
        assert (converted.__name__, converted.__doc__) == ("scaled", "Scales.")
        assert float(dtensor.values(converted(2.0, scale=3.0))) == 6.0

    def test_nothing_of_a_mesh_in_other_graphs(self):
        graph = tf.function(jax2tf.convert(lambda x: x[::-1]), autograph=False)
        assert "ReverseV2" in ops_of(graph.get_concrete_function(tf.ones([4])))
