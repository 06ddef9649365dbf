"""The families of lowering rules; importing this package registers all rules."""

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
    extremes,
    fft,
    indexing,
    integers,
    linalg,
    random,
    reductions,
    scatter,
    select_windows,
    sharding,
    sorting,
    special,
    state,
    total_order,
    windows,
)
