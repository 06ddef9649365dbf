"""Derivative rules for symbolic sizes, where JAX's own rules need sizes that are numbers.

The first trace with symbolic sizes imports this package. The import registers the rules in front of
JAX's own, which still serve sizes that are numbers. The rules bind ordinary JAX primitives, so that
a conversion lowers their results like any other program.
"""

from jax2tf._src.gradients.symbolic import convolution, cumulative, fft, padding, reductions

__all__ = ["convolution", "cumulative", "fft", "padding", "reductions"]
