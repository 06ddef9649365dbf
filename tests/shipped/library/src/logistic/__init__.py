"""The logistic distribution, for TensorFlow, JAX and NumPy from one source."""

from logistic.distribution import Logistic, softplus

__all__ = ["Logistic", "softplus"]
