"""What becomes of a jaxpr, or of one of its equations, before a rule lowers it."""
