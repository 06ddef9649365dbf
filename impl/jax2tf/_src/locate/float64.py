"""One equation in float64, which tells JAX's own rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.locate import exactness
from jax2tf._src.locate.program import is_key
from jax2tf._src.tracing import jaxprs, traits
from jax2tf._src.util.typing import Array, Param

_WIDE: Mapping[np.dtype, np.dtype] = {
    jnp.dtype(jnp.float16): np.dtype(np.float64),
    jnp.dtype(jnp.bfloat16): np.dtype(np.float64),
    jnp.dtype(np.float32): np.dtype(np.float64),
    jnp.dtype(np.complex64): np.dtype(np.complex128),
}


def results_of(eqn: jex_core.JaxprEqn, operands: Sequence[Array]) -> list[np.ndarray] | None:
    """The results of an equation on the same operands in float64; None if it has no such form."""
    numbers = [np.asarray(x) for x in operands if not is_key(x)]
    if (
        len(numbers) < len(operands)
        or not any(exactness.is_inexact(x.dtype) for x in numbers)
        or eqn.primitive in traits.READS_BITS | traits.CASTS
        or next(jaxprs.inner_jaxprs(eqn), None) is not None
    ):
        return None
    params = {name: _widened(value) for name, value in eqn.params.items()}
    with jax.enable_x64(True):
        wide = [jnp.asarray(x.astype(_WIDE.get(x.dtype, x.dtype))) for x in numbers]
        results = jaxprs.bind(eqn.primitive, wide, params)
        return [np.asarray(jax.device_get(result)) for result in results]


def _widened(param: Param) -> Param:
    return _WIDE.get(param, param) if isinstance(param, np.dtype) else param
