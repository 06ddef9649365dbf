"""tf_substrates.functional: variables, modules and optimizers as pure functions of a state."""

from __future__ import annotations

import doctest
import importlib
import threading

import jax
import numpy as np
import pytest

import tf_substrates
from tests.substrates.comparing import SUBSTRATES, tf_of
from tf_substrates.numpy.errors import StatefulError


def dense(tf):
    """A module that makes its weights at its first call, and counts its calls."""

    class Dense(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = None
            self.count = tf.Variable(0, trainable=False, name="count")

        @tf.function
        def __call__(self, x):
            if self.weights is None:
                self.weights = tf.Variable(tf.ones([3, 2]), name="w")
                self.bias = tf.Variable(tf.zeros([2]), name="w")
            self.count.assign_add(1)
            return {"y": [tf.tanh(x @ self.weights + self.bias)], "count": self.count}

    return Dense()


def compiled(substrate, function):
    return jax.jit(function) if substrate == "jax" else function


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_a_module_that_makes_its_variables(substrate):
    tf = tf_of(substrate)
    module, x = dense(tf), tf.ones([4, 3])
    pure = tf_substrates.functional(module)
    with pytest.raises(StatefulError, match=r"functional\(Dense\): there is no state yet.*init"):
        pure({}, x)
    state = first = pure.init(x)
    assert {name: tuple(v.shape) for name, v in state.items()} == {
        "w": (3, 2),
        "w_1": (2,),
        "count": (),
    }
    run = compiled(substrate, pure)
    for calls in (1, 2):
        state, result = run(state, x)
        assert int(state["count"]) == int(result["count"]) == calls
        np.testing.assert_allclose(result["y"][0], np.tanh(3 * np.ones([4, 2])), rtol=1e-6)
    # Outside nothing has changed, until it is asked for.
    assert int(module.count) == int(first["count"]) == 0
    pure.assign(state)
    assert int(module.count) == 2


def test_derivatives_and_batches():
    tf = tf_of("jax")
    pure = tf_substrates.functional(dense(tf))
    x = tf.ones([4, 3])
    state = pure.init(x)

    def total(weights):
        return pure({**state, "w": weights}, x)[1]["y"][0].sum()

    slope = 4 * (1 - np.tanh(3.0) ** 2)
    for take in (jax.grad(total), jax.jit(jax.grad(total)), jax.jacfwd(total)):
        np.testing.assert_allclose(take(state["w"]), np.full([3, 2], slope), rtol=1e-4)
    many = jax.vmap(total)(jax.numpy.stack([state["w"], 0 * state["w"]]))
    np.testing.assert_allclose(many, [8 * np.tanh(3.0), 0], rtol=1e-6)


def test_a_step_of_training_with_a_tape_and_slots():
    tf = tf_of("jax")
    weight = tf.Variable([1.0, 2.0], name="weight")

    class Momentum:
        """An optimizer that makes its slots at the first step, as Keras's do."""

        def __init__(self):
            self.slots = {}

        def apply_gradients(self, pairs):
            for gradient, variable in pairs:
                if variable.ref() not in self.slots:
                    self.slots[variable.ref()] = tf.Variable(tf.zeros_like(variable), name="slot")
                slot = self.slots[variable.ref()]
                slot.assign(0.5 * slot + gradient)
                variable.assign_sub(0.1 * slot)

    optimizer = Momentum()

    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weight - x) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        return loss

    pure = tf_substrates.functional(train)
    state = pure.init(0.0)
    losses = []
    for _ in range(3):
        state, loss = jax.jit(pure)(state, 0.0)
        losses.append(float(loss))
    np.testing.assert_allclose(losses, [5, 5 * 0.8**2, 5 * (0.8 - 0.1 * (1 + 1.6)) ** 2], rtol=1e-5)
    np.testing.assert_array_equal(weight.numpy(), [1, 2])


def test_threads_have_calls_of_their_own():
    tf = tf_of("numpy")
    total = tf.Variable(0.0, name="total")

    def add(x):
        total.assign_add(x)
        barrier.wait(10)
        return total.value()

    barrier = threading.Barrier(1)
    pure = tf_substrates.functional(add)
    state, found = pure.init(0.0), {}
    barrier = threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda x=x: found.update({x: pure(state, x)[1]}))
        for x in (1.0, 2.0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {x: float(value) for x, value in found.items()} == {1.0: 1.0, 2.0: 2.0}
    assert float(total) == 0


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_what_is_refused(substrate):
    tf = tf_of(substrate)
    one, other = tf.Variable(1.0, name="one"), tf.Variable(1.0, name="other")
    each = tf_substrates.functional(lambda x: tf.Variable(x, name="new") * 2.0)
    with pytest.raises(
        StatefulError, match=r"makes the variable 'new:0' in each call.*make it once"
    ):
        each(each.init(1.0), 1.0)
    chosen = tf_substrates.functional(lambda first: (one if first else other).value())
    state = chosen.init(True)
    with pytest.raises(StatefulError, match=r"uses the variable 'other:0'.*call `init`"):
        chosen(state, False)
    for wrong, said in (
        ({}, r"must have \['one'\], and has \[\]"),
        ({"one": tf.ones([2])}, r"state\['one'\]` must be of float32 with shape \(\), .*\(2,\)"),
        ({"one": tf.constant(1)}, "of float32 with shape .* is of int32"),
    ):
        with pytest.raises(ValueError, match=said):
            chosen(wrong, True)


def test_what_jax_traces_is_refused():
    tf = tf_of("jax")
    variable = tf.Variable(1.0, name="v")

    def derivative(x):
        return jax.grad(lambda y: variable.assign(y) * 2.0)(x)

    with pytest.raises(StatefulError, match=r"v:0 is assigned in a function .* the tapes"):
        tf_substrates.functional(derivative).init(1.0)
    with pytest.raises(StatefulError, match=r"tf_substrates\.functional"):
        jax.jit(variable.assign)(1.0)
    late = tf_substrates.functional(lambda x: tf.Variable(x).value())
    with pytest.raises(StatefulError, match=r"the variable 'Variable' that `init` makes.*outside"):
        jax.jit(late.init)(1.0)


def test_example():
    module = importlib.import_module("tf_substrates.functional_state")
    assert doctest.testmod(module) == (0, 10)
