"""`explain`: what a JAX function becomes for each target. `profile`: what makes that slow."""

from __future__ import annotations

from jax2tf.explain.explanation import Explanation, Refusal, Report
from jax2tf.explain.survey import explain
from jax2tf.explain.timing import Profile, profile

__all__ = ["Explanation", "Profile", "Refusal", "Report", "explain", "profile"]
