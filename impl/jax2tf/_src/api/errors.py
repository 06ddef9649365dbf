"""The exceptions of this package. All except VerificationError are raised before a function runs.

Their `__module__` is jax2tf, so that a traceback shows the public name.
"""

from __future__ import annotations


class ConversionError(Exception):
    """A JAX function that cannot be lowered to TensorFlow ops as asked."""

    __module__ = "jax2tf"


class UnsupportedPrimitiveError(ConversionError, NotImplementedError):
    """A primitive, or one use of it, that has no lowering for the target.

    Attributes:
      primitive: the primitive's name.
      reason: why the target has no lowering for it.
      remedy: an alternative for the user.
      source: the user's line or function that it comes from; empty until it is known.
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
        """Sets the source unless it is known. A primitive that JAX's own functions bind has no
        source line of the user, but a call around it may have one.
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
    """A function whose gradient TensorFlow asked for, and that JAX cannot differentiate."""

    __module__ = "jax2tf"


class ExportError(ConversionError):
    """A function that jax2tf.export cannot write as asked. The path is unchanged."""

    __module__ = "jax2tf"


class VerificationError(ExportError):
    """An exported file whose results differ from those of JAX, or that does not run.

    The path is unchanged.

    Attributes:
      signature: the signature that was run; None if the engine did not load the file.
      output: the name of the wrong output; None if the file did not run.
      deviation: the deviation from JAX, in the measure that the message names, or None.
      tolerance: the largest deviation allowed, or None.
      located: where the file begins to differ, as `jax2tf.locate` returns it; None if it was not
        asked for or not found.
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
        self.located: object = None
        super().__init__(message)

    def locate(self, located: object, line: str) -> None:
        """Adds where the file begins to differ to the error, and a line of it to the message."""
        self.located = located
        self.args = (f"{self}. {line}",)


class MissingPackageError(ExportError, ImportError):
    """A package that jax2tf.export needs, and that is not installed."""

    __module__ = "jax2tf"


class CallTfError(ValueError):
    """A TensorFlow function that JAX or XLA cannot use as asked."""

    __module__ = "jax2tf"


class LoadError(ValueError):
    """A file or bytes that `jax2tf.load` cannot read, or an op in them that JAX does not have."""

    __module__ = "jax2tf"
