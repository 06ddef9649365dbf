"""Generators for the property tests: shape specs with sizes, symbolic arithmetic, programs,
TensorFlow functions with transformations of JAX."""
