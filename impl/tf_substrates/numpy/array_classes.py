"""The classes of JAX's arrays: known ones, and those that stand for values while JAX traces.

Operators are put on both. The class of known arrays has no public name of its own, and an array
that a traced function makes is a tracer, so that it is asked for outside of every trace.
"""

from __future__ import annotations

JAX_MODE = False
# There are none on NumPy's side.
ARRAY_CLASSES: tuple[type, ...] = ()
if JAX_MODE:
    import jax

    with jax.ensure_compile_time_eval():
        ARRAY_CLASSES = (type(jax.numpy.zeros(())), jax.core.Tracer)
