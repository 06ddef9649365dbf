"""The special functions: scipy.special on NumPy, jax.scipy.special on JAX."""

from __future__ import annotations

from typing import Any

JAX_MODE = False


def __getattr__(name: str) -> Any:
    # Only where one is called, since NumPy alone is enough for everything else.
    try:
        import scipy.special as special
    except ImportError:
        raise ImportError(
            f"tf_substrates.numpy: {name} is computed by SciPy, which is not installed."
            " What to do: pip install scipy."
        ) from None
    return getattr(special, name)
