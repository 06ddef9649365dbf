"""The exceptions of this package. All but VerificationError are raised before anything runs.

Their `__module__` is jax2tf, where users find them: that is what a traceback shows.
"""

from __future__ import annotations


class ConversionError(Exception):
    """A JAX function that cannot be lowered to TensorFlow ops as asked."""

    __module__ = "jax2tf"


class UnsupportedPrimitiveError(ConversionError, NotImplementedError):
    """A primitive, or one use of it, that has no lowering for the target.

    Attributes:
      primitive: the primitive's name.
      reason: what is missing, and where.
      remedy: what to do instead.
      source: the line of the user's that it comes from, or the function; empty until it is known.
    """

    __module__ = "jax2tf"

    def __init__(self, primitive: str, reason: str, remedy: str, source: str, params: str = ""):
        self.primitive = primitive
        self.reason = reason
        self.source = source
        self.remedy = remedy
        self._params = params
        super().__init__(self._message())

    def locate(self, source: str) -> None:
        """Says where it comes from, unless that is known. What JAX's own functions bind has no line
        of the user's; what calls them may have one.
        """
        if source and not self.source:
            self.source = source
            self.args = (self._message(),)

    def _message(self) -> str:
        with_params = f" with {self._params}" if self._params else ""
        comes_from = f"It comes from {self.source}. " if self.source else ""
        return (
            f"jax2tf.convert: cannot lower primitive '{self.primitive}'{with_params}: "
            f"{self.reason}. {comes_from}What to do: {self.remedy}."
        )


class UnsupportedDtypeError(ConversionError, TypeError):
    """A dtype of JAX that TensorFlow does not have."""

    __module__ = "jax2tf"


class LayoutError(ConversionError, ValueError):
    """A mesh or a sharding that DTensor does not have."""

    __module__ = "jax2tf"


class NotDifferentiableError(ConversionError, ValueError):
    """A function that TensorFlow asked the gradient of, and JAX has none for."""

    __module__ = "jax2tf"


class ExportError(ConversionError):
    """A function that jax2tf.export cannot write as asked. The path is as it was."""

    __module__ = "jax2tf"


class VerificationError(ExportError):
    """What jax2tf.export wrote gives other results than JAX, or does not run.

    The path is as it was.

    Attributes:
      signature: the signature that was run; None where the engine did not load the file.
      output: the name of the output that is wrong; None where nothing ran.
      deviation: how far it is from JAX, in the measure that the message names; None as above.
      tolerance: what was allowed of that.
    """

    __module__ = "jax2tf"

    def __init__(
        self,
        message: str,
        signature: str | None = None,
        output: str | None = None,
        deviation: float | None = None,
        tolerance: float | None = None,
    ):
        self.signature = signature
        self.output = output
        self.deviation = deviation
        self.tolerance = tolerance
        super().__init__(message)


class MissingPackageError(ExportError, ImportError):
    """A package that jax2tf.export needs for what was asked, and that is not installed."""

    __module__ = "jax2tf"


class CallTfError(ValueError):
    """A TensorFlow function that JAX or XLA cannot do with what was asked for."""

    __module__ = "jax2tf"
