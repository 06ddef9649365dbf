"""tf.autodiff.ForwardAccumulator: directional derivatives of code that ran inside its block.

It records as tf.GradientTape does, and runs the recorded calls again under jax.jvp.
"""

from __future__ import annotations

from typing import Any

from tf_substrates.numpy import nest
from tf_substrates.numpy.gradient_tape import UnconnectedGradients, _Block, _source_arrays, _targets
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.recorded_operators import start, stop
from tf_substrates.numpy.recording import Log
from tf_substrates.numpy.tensors import convert
from tf_substrates.numpy.variables import Variable

JAX_MODE = False
if JAX_MODE:
    import jax


@export("autodiff.ForwardAccumulator")
class ForwardAccumulator:
    """Derivatives along tangents, of what is computed in its block. JAX alone has derivatives.

        >>> from tf_substrates.jax import tf
        >>> x = tf.constant([1.0, 2.0])
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
        ...     y = x * x
        >>> acc.jvp(y).tolist()
        [2.0, 0.0]

    Args:
      primals: tensors or variables, in a structure of any kind.
      tangents: the direction, in the same structure.

    Raises:
      NotImplementedError: on NumPy; or as tf.GradientTape.
      ValueError: a tangent has another shape or dtype than its primal, or the structures differ.
    """

    def __init__(self, primals: Any, tangents: Any):
        if not JAX_MODE:
            raise NotImplementedError(
                "tf.autodiff.ForwardAccumulator: NumPy has no derivatives. What to do: use that of"
                " tf_substrates.jax.tf."
            )
        nest.assert_same_structure(primals, tangents)
        self._primals = nest.flatten(primals)
        self._tangents = [
            _tangent(p, t) for p, t in zip(self._primals, nest.flatten(tangents), strict=True)
        ]
        self._log = Log(watches_variables=False)
        self._recording = False
        for primal in self._primals:
            if isinstance(primal, Variable):
                self._log.track_variable(primal, convert(primal))
            else:
                self._log.track(primal)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        start(self._log)
        self._recording = True
        return self

    def __exit__(self, *error: object) -> None:
        stop(self._log)
        self._recording = False

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The derivative of each tensor along the tangents, in the structure of the tensors.

        Args:
          primals: what was computed in the block.
          unconnected_gradients: what a tensor gets that does not depend on what the accumulator
            was made for: None, or zeros.
        """
        wanted = UnconnectedGradients(unconnected_gradients)
        targets = _targets(self._log, nest.flatten(primals))
        along = {
            id(array): tangent
            for primal, tangent in zip(self._primals, self._tangents, strict=True)
            for array in _source_arrays(primal, self._log)
        }
        sources = [array for primal in self._primals for array in _source_arrays(primal, self._log)]
        found = _Block(self._log, targets, sources).directional(along)
        unconnected = wanted is UnconnectedGradients.NONE
        results = [
            found.get(i, None if unconnected else jax.numpy.zeros_like(target))
            for i, target in enumerate(targets)
        ]
        return nest.pack_sequence_as(primals, results)


def _tangent(primal: Any, tangent: Any) -> Any:
    value = convert(tangent, dtype=primal.dtype)
    if tuple(value.shape) != tuple(primal.shape):
        raise ValueError(
            f"ForwardAccumulator: the shape of a tangent, {tuple(value.shape)}, is not that of its"
            f" primal, {tuple(primal.shape)}"
        )
    return jax.numpy.asarray(value)
