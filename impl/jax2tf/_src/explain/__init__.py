"""`explain`: what a JAX function becomes for each target. `profile`: what makes that slow."""
