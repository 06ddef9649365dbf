"""Converted functions on DTensor, TensorFlow's own engine for meshes of devices."""
