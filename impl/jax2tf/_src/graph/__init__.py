"""A graph of our own: ops and tensors without TensorFlow."""
