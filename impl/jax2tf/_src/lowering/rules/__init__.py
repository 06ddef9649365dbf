"""The lowering rules, one module for each family of primitives."""
