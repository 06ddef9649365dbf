"""Traces a user's function: its arguments, the trace, and helpers for jaxprs."""
