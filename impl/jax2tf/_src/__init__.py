"""The implementation. Users import the names of `jax2tf`; docs/architecture.md is the map."""
