"""tf.distribute over two devices: test_dtensor.py runs this in a process that has them."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf
from tests.impl import logical_devices
from tests.impl.parallel_programs import normal
from tests.running import assert_near

logical_devices.make(2)

RATE = 0.1


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def trained_by_jax(params, batches):
    step = jax.jit(jax.value_and_grad(loss))
    values = []
    for x, y in batches:
        value, gradient = step(params, x, y)
        params = jax.tree.map(lambda p, g: p - RATE * g, params, gradient)
        values.append(value)
    return params, np.array(values)


def test_a_mirrored_strategy_trains_a_converted_function():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    params = {"w1": normal(4, 8), "b1": normal(8), "w2": normal(8, 2)}
    batches = [(normal(8, 4, seed=i), normal(8, 2, seed=i)) for i in range(3)]
    with strategy.scope():
        module = jax2tf.Module(loss, params, polymorphic_shapes="b, _")
    variables = module.trainable_variables

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            value = module(x, y)
        context = tf.distribute.get_replica_context()
        gradients = tape.gradient(value, variables)
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, [value, *gradients])
        for variable, gradient in zip(variables, mean[1:], strict=True):
            variable.assign_sub(RATE * gradient)
        return mean[0]

    @tf.function
    def step(x, y):
        value = strategy.run(replica_step, args=(x, y))
        return strategy.experimental_local_results(value)[0]

    data = tf.data.Dataset.from_tensor_slices(tuple(map(np.stack, zip(*batches, strict=True))))
    values = [step(x, y).numpy() for x, y in strategy.experimental_distribute_dataset(data)]
    expected, expected_values = trained_by_jax(params, batches)
    assert strategy.num_replicas_in_sync == 2
    assert_near(np.array(values), expected_values)
    trained = jax.tree.map(lambda v: v.numpy(), module.params)
    assert_near(trained, jax.tree.map(np.asarray, expected), 64)
