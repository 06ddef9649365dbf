"""Derivative rules for sizes that are symbolic, where JAX's own rule asks for numbers.

Importing this package registers them, in front of JAX's own, which go on serving sizes that are
numbers. What they bind has the name that JAX gives it: a conversion lowers it as any program.
"""

from jax2tf._src.gradients.symbolic import convolution, cumulative, fft, padding, reductions

__all__ = ["convolution", "cumulative", "fft", "padding", "reductions"]
