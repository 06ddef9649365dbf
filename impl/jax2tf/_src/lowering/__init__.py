"""From a jaxpr to TensorFlow ops: the registry of rules, the plan of a jaxpr, the interpreter."""
