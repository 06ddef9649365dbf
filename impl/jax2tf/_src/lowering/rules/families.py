"""Importing this module registers the rules of every family."""

from __future__ import annotations

from jax2tf._src.lowering.rules import (  # noqa: F401
    arrays,
    barriers,
    call_tf,
    callbacks,
    calls,
    casts,
    contractions,
    control_flow,
    convolution,
    cumulative,
    decomposed,
    elementwise,
    error_functions,
    fft,
    indexing,
    integers,
    linalg,
    random,
    reductions,
    scatter,
    select_windows,
    sorting,
    special,
    state,
    total_order,
    windows,
)
from jax2tf._src.lowering.rules.mesh import sharding  # noqa: F401
