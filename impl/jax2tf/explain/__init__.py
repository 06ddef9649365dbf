"""`explain`: what a JAX function becomes for each target, and what it cannot become."""

from __future__ import annotations

from jax2tf.explain.explanation import Explanation, Refusal, Report
from jax2tf.explain.survey import explain

__all__ = ["Explanation", "Refusal", "Report", "explain"]
