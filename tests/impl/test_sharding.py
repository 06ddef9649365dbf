"""Partitioning: what needs no devices, and the tests of sharding_on_devices.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import nodes
from jax2tf._src import compat

ON_DEVICES = Path(__file__).with_name("sharding_on_devices.py")


def shardings_in(function) -> list[str]:
    """The shardings of a concrete function's XlaSharding ops, as "parts of devices"."""
    return [_text(node) for node in nodes(function.graph) if node.op == "XlaSharding"]


def _text(node) -> str:
    assert node.attr["_XlaSharding"].s == node.attr["sharding"].s
    sharding = compat.xla.xla_data.OpSharding.FromString(node.attr["sharding"].s)
    text = "replicated" if sharding.type == sharding.REPLICATED else _parts(sharding)
    if node.attr["unspecified_dims"].list.i:
        text += f", open {list(node.attr['unspecified_dims'].list.i)}"
    return text


def _parts(sharding) -> str:
    numbers = sharding.iota_reshape_dims or [len(sharding.tile_assignment_devices)]
    text = f"{_joined(sharding.tile_assignment_dimensions)} of {_joined(numbers)}"
    if len(sharding.iota_transpose_perm) > 1:
        text += f" transposed {_joined(sharding.iota_transpose_perm)}"
    if sharding.replicate_on_last_tile_dim:
        text += ", last replicated"
    return text


def _joined(numbers) -> str:
    return ",".join(map(str, numbers))


def test_on_eight_devices():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ON_DEVICES)]
    done = subprocess.run(
        command,
        env=os.environ | {"XLA_FLAGS": flags.strip()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


class TestSplitToLogicalDevices:
    def test_tiles(self):
        @tf.function(autograph=False)
        def f(x):
            return jax2tf.split_to_logical_devices(x, (4, 2)) + 1

        x = np.ones((8, 2), np.float32)
        assert shardings_in(f.get_concrete_function(x)) == ["4,2 of 8"]
        np.testing.assert_array_equal(f(x), x + 1)

    @pytest.mark.parametrize("parts", [None, (1, 1)])
    def test_whole(self, parts):
        x = tf.ones([8, 2])
        assert jax2tf.split_to_logical_devices(x, parts) is x

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ((4,), "partition_dimensions=(4,) should have one number for each dimension"),
            ((3, 1), "partition_dimensions=(3, 1) should divide the tensor's shape (8, 2)"),
            ((0, 1), "partition_dimensions should be a number of at least 1, got 0"),
        ],
    )
    def test_refused(self, parts, words):
        with pytest.raises(ValueError, match=re.escape(words)):
            jax2tf.split_to_logical_devices(tf.ones([8, 2]), parts)

    def test_eager(self):
        with pytest.raises(jax2tf.ConversionError, match="TensorFlow partitions graphs"):
            jax2tf.split_to_logical_devices(tf.ones([8, 2]), (4, 1))
