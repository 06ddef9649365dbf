"""Linear algebra that rules and passes lower: in JAX, and by TensorFlow's kernels."""
