"""`explain` shows the ops of a JAX function for each target; `profile` times a conversion."""
