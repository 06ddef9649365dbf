"""JAX's gradients of converted functions, as TensorFlow's tapes and graphs ask for them."""
