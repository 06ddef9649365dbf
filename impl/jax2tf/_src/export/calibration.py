"""Checks of representative inputs, from which LiteRT learns the ranges of all tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export.signatures import Signature
from jax2tf._src.export.verification import Trial
from jax2tf._src.util.typing import PyTree

Samples = Mapping[str, Sequence[Sequence[np.ndarray]]]


def refuse_without_ranges(signatures: Sequence[Signature], samples: Samples) -> None:
    """Refuses inputs without a range, for which LiteRT's converter writes floats or crashes.

    Raises:
      ValueError: an input holds NaN or an infinity, or has no elements.
    """
    for signature in signatures:
        for i, arrays in enumerate(samples[signature.name]):
            for spec, array in zip(signature.inputs, arrays, strict=True):
                reason = "has no elements" if array.size == 0 else _not_finite(array)
                if reason:
                    raise ValueError(
                        f"jax2tf.export: representative_data[{i}] of {signature.name!r} {reason} "
                        f"in the input {spec.name!r}, and ranges are learned of finite numbers. "
                        "What to do: leave that sample out, or replace what is not finite"
                    )


def refuse_results_without_ranges(trials: Sequence[Trial]) -> None:
    """Refuses a function whose results for representative inputs do not fit into 8 bits.

    Raises:
      ExportError: JAX's result holds NaN or an infinity.
    """
    for trial in trials:
        for name, result in trial.results.items():
            reason = _not_finite(result)
            if reason:
                raise ExportError(
                    f"jax2tf.export: JAX's output {name!r} (result{trial.paths[name]}) {reason} "
                    f"for {trial.title} of {trial.signature.name!r}, which int8 cannot hold. What "
                    "to do: give representative inputs for which it is finite, or another quantize"
                )


def refuse_weights_without_ranges(params: PyTree) -> None:
    """Refuses parameters that LiteRT's converter quantises wrongly, or that make it crash.

    Raises:
      ExportError: a parameter holds NaN or an infinity.
    """
    for path, reason in _leaves_without_range(params):
        raise ExportError(
            f"jax2tf.export: params{path} {reason}, and the scales of quantize='dynamic' are those "
            "of finite numbers. What to do: replace what is not finite, or pass another quantize: "
            "'float16' and 'int4' leave such an array as it is"
        )


def _leaves_without_range(params: PyTree) -> Iterator[tuple[str, str]]:
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        is_array = isinstance(leaf, jax.Array | np.ndarray)
        reason = _not_finite(leaf) if is_array else ""
        if reason:
            yield jax.tree_util.keystr(path), reason


def _not_finite(array: jax.Array | np.ndarray) -> str:
    if not jnp.issubdtype(array.dtype, jnp.inexact) or bool(np.isfinite(array).all()):
        return ""
    return "holds NaN" if bool(np.isnan(array).any()) else "holds an infinity"
