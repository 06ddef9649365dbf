"""Lowers a jaxpr to TensorFlow ops, by the registry of rules, the plan and the interpreter."""
