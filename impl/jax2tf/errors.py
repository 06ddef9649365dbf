"""The exceptions of this package. All of them are raised before anything runs."""

from __future__ import annotations


class ConversionError(Exception):
    """A JAX function that cannot be lowered to TensorFlow ops as asked."""


class UnsupportedPrimitiveError(ConversionError, NotImplementedError):
    """A primitive, or one use of it, that has no lowering for the op set that was asked for.

    Attributes:
      primitive: the primitive's name.
      reason: what is missing, and where.
    """

    def __init__(self, primitive: str, reason: str, remedy: str, source: str, params: str = ""):
        self.primitive = primitive
        self.reason = reason
        with_params = f" with {params}" if params else ""
        super().__init__(
            f"jax2tf.convert: cannot lower primitive '{primitive}'{with_params}: {reason}. "
            f"It comes from {source}. What to do: {remedy}."
        )


class UnsupportedDtypeError(ConversionError, TypeError):
    """A dtype of JAX that TensorFlow does not have."""


class NotDifferentiableError(ConversionError, ValueError):
    """A function that TensorFlow asked the gradient of, and JAX has none for."""


class CallTfError(ValueError):
    """A TensorFlow function that JAX or XLA cannot do with what was asked for."""
