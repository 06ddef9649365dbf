"""Recurrent models: with gates, in both directions, and linear in complex numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.consumers.models.model import Model, Models, floats, weights

_INPUTS, _UNITS = 4, 8

State = tuple[jax.Array, ...]


def _lstm_cell(state: State, x: jax.Array) -> tuple[State, jax.Array]:
    cell, hidden = state
    gates = x @ weights(_INPUTS, 4 * _UNITS) + hidden @ weights(_UNITS, 4 * _UNITS)
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(f + 1) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return (cell, hidden), hidden


def _gru_cell(state: State, x: jax.Array) -> tuple[State, jax.Array]:
    (hidden,) = state
    of_x = x @ weights(_INPUTS, 3 * _UNITS) + weights(3 * _UNITS)
    of_hidden = hidden @ weights(_UNITS, 3 * _UNITS)
    (xr, xz, xn), (hr, hz, hn) = (jnp.split(y, 3, -1) for y in (of_x, of_hidden))
    reset, update = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
    new = jnp.tanh(xn + reset * hn)
    hidden = (1 - update) * new + update * hidden
    return (hidden,), hidden


def _zeros(sequences: jax.Array, count: int) -> State:
    return (jnp.zeros((sequences.shape[0], _UNITS), jnp.float32),) * count


def lstm(sequences: jax.Array) -> jax.Array:
    """The last state of an LSTM."""
    (_, hidden), _ = lax.scan(_lstm_cell, _zeros(sequences, 2), sequences.swapaxes(0, 1))
    return hidden


def stacked_lstm(sequences: jax.Array) -> tuple[jax.Array, State]:
    """The states of all steps, and the last."""
    state, outputs = lax.scan(_lstm_cell, _zeros(sequences, 2), sequences.swapaxes(0, 1))
    return outputs.swapaxes(0, 1), state


def gru(sequences: jax.Array) -> jax.Array:
    """The states of all steps of a GRU."""
    _, outputs = lax.scan(_gru_cell, _zeros(sequences, 1), sequences.swapaxes(0, 1))
    return outputs.swapaxes(0, 1)


def bidirectional(sequences: jax.Array) -> jax.Array:
    """Two GRUs, one from the front and one from the back, side by side for each step."""
    steps = sequences.swapaxes(0, 1)
    _, forward = lax.scan(_gru_cell, _zeros(sequences, 1), steps)
    _, backward = lax.scan(_gru_cell, _zeros(sequences, 1), steps, reverse=True)
    both = jnp.concatenate([forward, backward], -1).swapaxes(0, 1)
    return both @ weights(2 * _UNITS, 3)


def _poles() -> np.ndarray:
    places = np.arange(_UNITS, dtype=np.float32)
    return (0.9 * np.exp(0.3j * places)).astype(np.complex64)


def _driven(sequences: jax.Array) -> jax.Array:
    inputs = weights(_INPUTS, _UNITS) + 1j * weights(_INPUTS, _UNITS, seed=1)
    return sequences.astype(jnp.complex64) @ inputs.astype(np.complex64)


def _read_out(states: jax.Array) -> jax.Array:
    outputs = weights(_UNITS, _INPUTS) + 1j * weights(_UNITS, _INPUTS, seed=1)
    return (states @ outputs.astype(np.complex64)).real


def linear_scan(sequences: jax.Array) -> jax.Array:
    """A linear recurrence with complex poles, step by step."""

    def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = _poles() * state + x
        return state, state

    zeros = jnp.zeros((sequences.shape[0], _UNITS), jnp.complex64)
    _, states = lax.scan(step, zeros, _driven(sequences).swapaxes(0, 1))
    return _read_out(states.swapaxes(0, 1))


def linear_parallel(sequences: jax.Array) -> jax.Array:
    """The same recurrence, all steps at once."""

    def combined(left: State, right: State) -> State:
        return left[0] * right[0], left[1] * right[0] + right[1]

    driven = _driven(sequences)
    factors = jnp.broadcast_to(_poles(), driven.shape)
    _, states = lax.associative_scan(combined, (factors, driven), axis=1)
    return _read_out(states)


def _sequences(batch: int, length: int) -> tuple[np.ndarray, ...]:
    return (floats(batch, length, _INPUTS),)


def _recurrent(function: object, shape: str = f"b, l, {_INPUTS}") -> Model:
    return Model(function, _sequences, (shape,), length=5)  # type: ignore[arg-type]


MODELS: Models = {
    "LSTM": _recurrent(lstm),
    "LSTM, all states": _recurrent(stacked_lstm),
    "GRU": _recurrent(gru),
    "bidirectional GRU": _recurrent(bidirectional),
    "complex recurrence": _recurrent(linear_scan),
    # A tree of steps is written out for its length.
    "complex recurrence, parallel": _recurrent(linear_parallel, f"b, 5, {_INPUTS}"),
}
