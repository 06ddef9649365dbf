"""JAX's gradients of converted functions, for TensorFlow's tapes and graphs."""
