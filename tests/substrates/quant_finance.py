"""tf-quant-finance on substrates: `python -m tests.substrates.quant_finance`, outside of CI.

It needs tf-quant-finance 0.0.1.dev34 and what that needs on TensorFlow (tensorflow-probability, and
setuptools for `distutils`), with PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python for its old protocol
buffers. The package is rewritten into a folder; each program runs on TensorFlow, on NumPy and under
jax.jit, in float64, and the results are compared.
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tf_substrates.rewriter.packages import rewrite

PACKAGE = "tf_quant_finance"
# What needs TensorFlow Probability, protocol buffers or TFRecord files.
OMITTED = [
    f"{PACKAGE}.{name}"
    for name in (
        "math.optimizer",
        "models.hjm",
        "experimental.instruments",
        "experimental.io",
        "experimental.pricing_platform",
    )
]
TOLERANCE = 1e-10

VOLATILITIES = np.array([0.1, 1.2, 2.0, 0.1, 0.4])
STRIKES = np.array([3.0])
EXPIRIES = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
SPOTS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
CALLS = np.array([True, False, True, False, True])
# Prices of calls of which the implied volatilities are looked for.
PRICES = np.array([0.05, 0.6, 1.2, 1.3, 2.6])


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of the package and of arrays."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...] = (VOLATILITIES, STRIKES, EXPIRIES, SPOTS)


def of_black_scholes(name: str, **kwargs: Any) -> Program:
    def function(tff: Any, volatilities: Any, strikes: Any, expiries: Any, spots: Any) -> Any:
        return getattr(tff.black_scholes, name)(
            volatilities=volatilities, strikes=strikes, expiries=expiries, spots=spots, **kwargs
        )

    return Program(f"{name} {', '.join(kwargs)}", function)


PROGRAMS = [
    of_black_scholes("option_price"),
    of_black_scholes("option_price", is_call_options=CALLS),
    of_black_scholes("option_price", discount_rates=0.03, dividend_rates=0.01, dtype=np.float64),
    of_black_scholes("option_price", is_normal_volatility=True),
    of_black_scholes("binary_price", discount_rates=0.03, dtype=np.float64),
    of_black_scholes("asset_or_nothing_price", is_call_options=CALLS),
    Program(
        "barrier_price",
        lambda tff, volatilities, strikes, expiries, spots: tff.black_scholes.barrier_price(
            volatilities=volatilities,
            strikes=strikes,
            expiries=expiries,
            spots=spots,
            barriers=spots - 0.5,
            rebates=spots * 0.1,
            is_barrier_down=True,
            is_knock_out=True,
        ),
    ),
    Program(
        "implied_vol",
        lambda tff, prices, strikes, expiries, spots: tff.black_scholes.implied_vol(
            prices=prices, strikes=strikes, expiries=expiries, forwards=spots
        ),
        (PRICES[1:2], np.array([2.2]), np.array([1.0]), np.array([2.0])),
    ),
]


def error_of(actual: Any, expected: Any) -> float:
    """The largest difference, relative where the expected value is larger than 1."""
    flat = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    errors = []
    for a, e in flat:
        a, e = np.asarray(a), np.asarray(e)
        if (a.shape, a.dtype) != (e.shape, e.dtype):
            raise ValueError(f"{a.dtype}{a.shape}, TensorFlow has {e.dtype}{e.shape}")
        errors.append(np.max(np.abs(a - e) / np.maximum(1, np.abs(e)), initial=0))
    return float(np.max(errors))


def main() -> int:
    """Prints a row for each program; 1 if one is further from TensorFlow than the tolerance."""
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        on = {}
        for substrate in ("numpy", "jax"):
            written = rewrite(PACKAGE, substrate, pathlib.Path(folder), OMITTED)
            on[substrate] = importlib.import_module(written.name)
        if "tensorflow" in sys.modules:
            raise RuntimeError("a rewritten package has imported TensorFlow")
        numpy_results = {p.name: p.function(on["numpy"], *p.arguments) for p in PROGRAMS}
        jax_results = {
            p.name: jax.jit(lambda *arrays, p=p: p.function(on["jax"], *arrays))(*p.arguments)
            for p in PROGRAMS
        }
        if "tensorflow" in sys.modules:
            raise RuntimeError("a rewritten package has imported TensorFlow")
    tff = importlib.import_module(PACKAGE)
    worst = 0.0
    tf = importlib.import_module("tensorflow")
    for program in PROGRAMS:
        expected = tf.nest.map_structure(
            np.asarray, program.function(tff, *map(tf.constant, program.arguments))
        )
        errors = [
            error_of(results[program.name], expected) for results in (numpy_results, jax_results)
        ]
        worst = float(np.max([worst, *errors]))
        print(f"{program.name:50} numpy {errors[0]:.1e}  jax.jit {errors[1]:.1e}")
    return 0 if worst <= TOLERANCE else 1  # NaN is no success


if __name__ == "__main__":
    sys.exit(main())
