"""Containers that tf.Module wraps on assignment are pytrees of JAX, and what they wrap to users."""

from __future__ import annotations

import collections
import copy
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf


class Pair(NamedTuple):
    left: object
    right: object


TREES = {
    "list": [1.0, [2.0], []],
    "dict": {"a": {"c": 2.0}, "b": 1.0},
    "tuple": (1.0, [2.0]),
    "namedtuple": Pair(1.0, [2.0, Pair(3.0, {})]),
    "ordered": collections.OrderedDict(z=1.0, a=[2.0]),
    "None": [None, {"a": None, "b": 1.0}],
}


def wrapped(tree):
    """What a tf.Module makes of the tree; it wraps what is inside in place."""
    module = tf.Module()
    module.tree = copy.deepcopy(tree)
    assert type(module.tree) is not type(tree)
    return module.tree


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


def test_they_have_leaves_and_can_be_mapped(tree):
    node = wrapped(tree)
    assert jax.tree.leaves(node) == jax.tree.leaves(tree)
    doubled = jax.tree.map(lambda x: x * 2, node)
    assert jax.tree.leaves(doubled) == [2 * x for x in jax.tree.leaves(tree)]
    assert doubled == jax.tree.map(lambda x: x * 2, tree)


def test_transformations_take_them():
    node = wrapped({"w": [jnp.ones(3), (jnp.zeros(2),)]})
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(p["w"][0] ** 2) + jnp.sum(p["w"][1][0])))(node)
    np.testing.assert_array_equal(gradient["w"][0], 2 * np.ones(3))


def test_a_converted_function_gets_plain_ones(tree):
    seen = []

    def fun(tree):
        seen.append(tree)
        return jax.tree.map(jnp.negative, tree)

    converted = jax2tf.convert(fun)
    for argument in (tree, wrapped(tree)):
        result = converted(argument)
        assert jax.tree.structure(result) == jax.tree.structure(tree)
        assert jax.tree.leaves(result) == [-x for x in jax.tree.leaves(tree)]
    # One trace for both.
    assert [jax.tree.structure(s) for s in seen] == [jax.tree.structure(tree)]


def test_an_error_names_the_path_in_the_plain_one():
    with pytest.raises(TypeError, match=r"argument p\['w'\]\[1\]: expected a number"):
        jax2tf.convert(lambda p: p)(wrapped({"w": [1.0, "text"]}))


def test_a_module_takes_them_for_parameters():
    module = jax2tf.Module(lambda p, x: p["w"][0] * x, wrapped({"w": [np.float32(2)]}))
    assert [v.name for v in module.variables] == ["w/0:0"]
    assert type(module.params) is dict
    assert module(3.0) == 6


def test_restored_ones(tmp_path):
    module = tf.Module()
    module.p = {"w": [tf.Variable(2.0), {"v": tf.Variable(3.0)}]}
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    values = jax.tree.map(lambda v: v.numpy(), restored.p)
    assert values == {"w": [2.0, {"v": 3.0}]}
    converted = jax2tf.convert(lambda p: p["w"][0] * p["w"][1]["v"])
    assert converted(restored.p) == 6


def test_where_jax_has_no_jax2tf_of_its_own():
    """JAX's own registers them as well, and fails where another has done it before."""
    program = """
import sys
sys.modules["jax.experimental.jax2tf"] = None
import jax, jax2tf
from tests.impl.test_containers import TREES, wrapped

def named(tree):
    return [(jax.tree_util.keystr(p), x) for p, x in jax.tree_util.tree_leaves_with_path(tree)]

for tree in TREES.values():
    node = wrapped(tree)
    assert named(node) == named(tree)
    doubled = jax.tree.map(lambda x: x * 2, node)
    assert type(doubled) is type(node)
    assert jax.tree.structure(doubled) == jax.tree.structure(node)
    assert jax.tree.map(lambda x, y: x + y, node, doubled) == jax.tree.map(lambda x: x * 3, tree)
    assert jax.tree.transpose(jax.tree.structure(node), None, jax.tree.map(lambda x: [x], node))
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
