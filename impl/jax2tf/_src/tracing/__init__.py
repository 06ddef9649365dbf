"""From a user's function to a jaxpr: its arguments, the trace, and what a jaxpr consists of."""
