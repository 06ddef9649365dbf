"""`explain`: what a JAX function becomes for each target. `profile`: what makes that slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax2tf import first_use as _first_use

if TYPE_CHECKING:
    from jax2tf.explain.explanation import Explanation, Refusal, Report
    from jax2tf.explain.survey import explain
    from jax2tf.explain.timing import Profile, profile
else:
    __getattr__, __dir__ = _first_use.names(
        __name__,
        {
            "Explanation": "jax2tf.explain.explanation",
            "Profile": "jax2tf.explain.timing",
            "Refusal": "jax2tf.explain.explanation",
            "Report": "jax2tf.explain.explanation",
            "explain": "jax2tf.explain.survey",
            "profile": "jax2tf.explain.timing",
        },
    )

__all__ = ["Explanation", "Profile", "Refusal", "Report", "explain", "profile"]

del _first_use
