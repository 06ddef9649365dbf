"""A differential equation of JAX's solver in a SavedModel, fitted to data in TensorFlow.

The solver is jax.experimental.ode.odeint. It steps adaptively, and its gradient is an equation of
its own, solved backwards (Chen et al., "Neural Ordinary Differential Equations", 2018). Both are in
the SavedModel: the process that loads it needs no JAX.

    python docs/examples/ode_in_saved_model.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental.ode import odeint

import jax2tf

TIMES = np.linspace(0, 3, 7, dtype=np.float32)
START = np.array([1.0, 0.5], np.float32)


def populations(rates, start):
    """Prey and predators [times, 2] by the equations of Lotka and Volterra."""

    def change(state, time):
        prey, predators = state
        return jnp.stack(
            [
                rates["birth"] * prey - rates["hunt"] * prey * predators,
                rates["feed"] * prey * predators - rates["death"] * predators,
            ]
        )

    return odeint(change, start, TIMES)


def save(rates, folder):
    """Writes the solver, with the rates as variables."""
    module = jax2tf.Module(populations, rates)
    module.solve = tf.function(
        module, input_signature=[tf.TensorSpec([2], tf.float32, name="start")], autograph=False
    )
    tf.saved_model.save(module, folder)


def fit(model, seen, steps):
    """Moves the rates of a restored model towards the populations that were seen."""
    optimizer = tf.keras.optimizers.Adam(0.05)
    variables = list(model.parameters.values())

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model.solve(START) - seen) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return [float(step()) for _ in range(steps)]


def main(folder=None):
    """Saves, restores, compares and fits; gives what it printed."""
    folder = folder or tempfile.mkdtemp()
    true = {"birth": 1.1, "hunt": 0.9, "feed": 0.8, "death": 0.7}
    seen = np.asarray(populations(true, START))

    guess = {name: np.float32(1) for name in true}
    save(guess, folder)
    restored = tf.saved_model.load(folder)
    difference = float(np.abs(restored.solve(START) - populations(guess, START)).max())
    print(f"{folder}: largest difference to JAX {difference:.1e}")

    losses = fit(restored, seen, 25)
    print(
        f"mean squared error {losses[0]:.4f} before fitting in TensorFlow, {losses[-1]:.4f} after"
    )
    return difference, losses[0], losses[-1]


if __name__ == "__main__":
    main(*sys.argv[1:])
