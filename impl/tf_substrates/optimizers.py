"""Optax's rules with the methods of a Keras optimizer, for programs that train tf.Variables."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Optimizer:
    """An optimizer with variables, which follows a rule of optax, on JAX.

    It has the methods of Keras's optimizers that training calls: `apply_gradients`, `build`,
    `variables`. Its state is tf.Variables, so it works in tf.function, in a tf.while_loop and in
    tf_substrates.functional, and so in tfp.math.minimize.

    Args:
      rule: an optax.GradientTransformation, or an object with its `init` and `update`.
      name: how its variables' names begin.

    >>> import optax, tf_substrates
    >>> from tf_substrates.jax import tf
    >>> weight = tf.Variable([2.0, -1.0])
    >>> optimizer = tf_substrates.Optimizer(optax.sgd(0.25))
    >>> with tf.GradientTape() as tape:
    ...     loss = tf.reduce_sum(weight**2)
    >>> optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    >>> print(weight.numpy())
    [ 1.  -0.5]
    """

    def __init__(self, rule: Any, name: str = "optimizer"):
        self.rule = rule
        self.name = name
        self._trained: list[Any] | None = None
        self._state: list[Any] = []
        self._structure: Any = None

    @property
    def variables(self) -> list[Any]:
        """The variables that hold its state; none before `build` or the first step."""
        return list(self._state)

    def build(self, var_list: Iterable[Any]) -> None:
        """Makes the state for these variables, which each step then trains.

        Raises:
          ValueError: it was built for other variables, or the rule's first state depends on the
            values of variables that JAX traces.
        """
        trained = list(var_list)
        if self._trained is not None:
            if len(trained) != len(self._trained) or any(
                new is not old for new, old in zip(trained, self._trained, strict=True)
            ):
                raise ValueError(
                    f"tf_substrates.Optimizer: {self.name!r} trains"
                    f" {_names(self._trained)}, and was given {_names(trained)}. What to do: use an"
                    " optimizer for each list of variables, in one order."
                )
            return
        jax = importlib.import_module("jax")
        tf = importlib.import_module("tf_substrates.jax.tf")
        leaves, self._structure = jax.tree.flatten(self._first_state(jax, trained))
        self._state = [
            tf.Variable(leaf, trainable=False, name=f"{self.name}_{i}")
            for i, leaf in enumerate(leaves)
        ]
        self._trained = trained

    def _first_state(self, jax: Any, trained: list[Any]) -> Any:
        values = [variable.value() for variable in trained]
        with jax.ensure_compile_time_eval():
            if not any(isinstance(value, jax.core.Tracer) for value in values):
                return self.rule.init([jax.numpy.array(value) for value in values])
            zeros = self.rule.init([jax.numpy.zeros(v.shape, v.dtype) for v in values])
            ones = self.rule.init([jax.numpy.ones(v.shape, v.dtype) for v in values])
            same = jax.tree.map(lambda a, b: bool(jax.numpy.array_equal(a, b)), zeros, ones)
        if not all(jax.tree.leaves(same)):
            raise ValueError(
                f"tf_substrates.Optimizer: the first state of {self.name!r} depends on the values"
                f" of {_names(trained)}, which JAX traces. What to do: call `build` with the"
                " variables, outside of the loop or the traced function."
            )
        return zeros

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> None:
        """One step. A variable whose gradient is None stays as it is.

        Args:
          grads_and_vars: pairs of a gradient and a variable, the same variables in each call.

        Raises:
          ValueError: all gradients are None, or the variables are not those of the call before.
        """
        jax = importlib.import_module("jax")
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        if all(gradient is None for gradient, _ in pairs):
            names = _names([variable for _, variable in pairs])
            raise ValueError(
                f"tf_substrates.Optimizer.apply_gradients: no variable of {names} has a gradient."
                " What to do: compute the loss of these variables inside of the tape's block."
            )
        pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        self.build([variable for _, variable in pairs])
        values = [jax.numpy.asarray(variable.value()) for _, variable in pairs]
        gradients = [jax.numpy.asarray(gradient) for gradient, _ in pairs]
        state = jax.tree.unflatten(self._structure, [held.value() for held in self._state])
        updates, state = self.rule.update(gradients, state, values)
        for held, leaf in zip(self._state, jax.tree.leaves(state), strict=True):
            held.assign(leaf)
        for (_, variable), value, update in zip(pairs, values, updates, strict=True):
            variable.assign((value + update).astype(value.dtype))


def _names(variables: list[Any]) -> str:
    return f"[{', '.join(variable.name for variable in variables)}]"
