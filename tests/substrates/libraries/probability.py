"""Counts what of TensorFlow Probability's distributions is equal to TensorFlow's on a substrate.

`python -m tests.substrates.libraries.probability --substrate jax --out table.md`, outside of CI. It
needs tensorflow-probability 0.25 and tf-keras. The library is rewritten while it is imported; each
distribution's methods run there and on TensorFlow with the same arguments, and on JAX also under
jax.jit, jax.grad and jax.vmap.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import pathlib
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tf_substrates
from tests.substrates.libraries.distributions import DISTRIBUTIONS, STATISTICS, Maker

LIBRARY = "tensorflow_probability"
SEED = (3, 7)
SAMPLES = 5
# Relative to the larger of 1 and the value; float32 holds 7 digits, of which long sums lose some.
TOLERANCE = 2e-4


def _flat(tf: Any, structure: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tf.nest.flatten(structure)]


def _floats(tf: Any, structure: Any) -> bool:
    return all(leaf.dtype.kind == "f" for leaf in _flat(tf, structure))


def asked(tf: Any, d: Any, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The names of what a distribution is asked for, and the calls."""
    yield "log_prob", lambda: d.log_prob(x)
    yield "cdf", lambda: d.cdf(x)
    for name in STATISTICS:
        yield name, getattr(d, name)


def on_tensorflow() -> dict[str, dict[str, Any]]:
    """What TensorFlow gives: {distribution: {method: leaves, or the exception}}."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf = importlib.import_module("tensorflow")
    tfp = importlib.import_module(LIBRARY)
    found: dict[str, dict[str, Any]] = {}
    for name, maker in DISTRIBUTIONS.items():
        d = maker(tf, tfp.distributions, tfp.bijectors, tfp)
        x = d.sample(SAMPLES, seed=SEED)
        results: dict[str, Any] = {"sample": _flat(tf, x), "many": _moments(tf, d)}
        for method, call in asked(tf, d, x):
            try:
                results[method] = _flat(tf, call())
            except Exception as error:  # whatever it is, a substrate has it too
                results[method] = error.__class__.__name__
        if _floats(tf, x) and not isinstance(results["log_prob"], str):
            # Copies: bijectors know what they made, and that has no derivative.
            leaves = [tf.identity(leaf) for leaf in tf.nest.flatten(x)]
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                total = tf.reduce_sum(d.log_prob(tf.nest.pack_sequence_as(x, leaves)))
            gradients = tape.gradient(total, leaves, unconnected_gradients="zero")
            results["grad"] = [np.asarray(g) for g in gradients]
        found[name] = results
    return found


def _moments(tf: Any, d: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The mean of many samples, and its standard error."""
    many = [leaf.astype(np.float64) for leaf in _flat(tf, d.sample(400, seed=SEED))]
    return [(leaf.mean(0), leaf.std(0) / 20) for leaf in many]


def compared(actual: list, expected: list) -> str:
    """Empty where they are equal."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, TensorFlow has {len(expected)}"
    for a, e in zip(actual, expected, strict=True):
        if a.dtype != e.dtype or a.shape != e.shape:
            return f"{a.dtype}{a.shape}, TensorFlow has {e.dtype}{e.shape}"
        if a.dtype.kind == "f":
            with np.errstate(all="ignore"):
                error = np.abs(a - e) / np.maximum(1, np.abs(e))
            same = (a == e) | (np.isnan(a) & np.isnan(e)) | (error <= TOLERANCE)
            if not same.all():
                return f"differs by {np.max(np.where(same, 0, error)):.1e}"
        elif not np.array_equal(a, e):
            return "differs"
    return ""


def _of(tf: Any, call: Callable[[], Any], expected: Any) -> str:
    """Empty where a call gives what is expected, or refuses as TensorFlow does."""
    try:
        actual = _flat(tf, call())
    except Exception as error:
        if isinstance(expected, str):
            return ""
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
        return f"{type(error).__name__}: {str(error)[:150]} [{place}]"
    if isinstance(expected, str):
        return ""  # it does more than TensorFlow
    return compared(actual, expected)


def on_substrate(
    substrate: str, expected: dict, names: list[str], transformed: bool
) -> Iterator[tuple[str, str, str]]:
    """(distribution, what was asked, what is wrong) of every cell."""
    tf = importlib.import_module(f"tf_substrates.{substrate}.tf")
    tf_substrates.install(substrate, [LIBRARY])
    tfp = importlib.import_module(f"tf_substrates.on_{substrate}.{LIBRARY}")
    for name in names:
        maker, wanted = DISTRIBUTIONS[name], expected[name]

        def make(maker: Maker = maker) -> Any:
            return maker(tf, tfp.distributions, tfp.bijectors, tfp)

        wrong = _of(tf, lambda: make() and [], [])
        yield name, "make", wrong
        if wrong:
            continue
        d = make()
        yield name, "sample", _sampled(tf, d, wanted)
        x = tf.nest.pack_sequence_as(d.dtype, [tf.constant(leaf) for leaf in wanted["sample"]])
        for method, call in asked(tf, d, x):
            yield name, method, _of(tf, call, wanted[method])
        if substrate == "jax" and transformed and not isinstance(wanted["log_prob"], str):
            yield from _transformed(tf, name, make, x, wanted)


def _sampled(tf: Any, d: Any, wanted: dict) -> str:
    """Empty where the samples of a seed, or their means within five standard errors, are equal."""
    wrong = _of(tf, lambda: d.sample(SAMPLES, seed=SEED), wanted["sample"])
    if not wrong or "differs" not in wrong:
        return wrong
    for (mean, error), (other, other_error) in zip(_moments(tf, d), wanted["many"], strict=True):
        if np.any(np.abs(mean - other) > 5 * np.hypot(error, other_error) + 1e-6):
            return "the means of the samples differ"
    return ""


def _transformed(
    tf: Any, name: str, make: Callable[[], Any], x: Any, wanted: dict
) -> Iterator[tuple[str, str, str]]:
    jax = importlib.import_module("jax")
    leaves = tf.nest.flatten(x)

    def log_prob(*leaves: Any) -> Any:
        return make().log_prob(tf.nest.pack_sequence_as(x, list(leaves)))

    yield name, "jit", _of(tf, lambda: jax.jit(log_prob)(*leaves), wanted["log_prob"])
    seed = np.array(SEED, np.int32)
    yield (
        name,
        "jit sample",
        _of(
            tf,
            lambda: jax.jit(lambda seed: make().sample(SAMPLES, seed=seed))(seed),
            _flat(tf, make().sample(SAMPLES, seed=seed)),
        ),
    )
    yield name, "vmap", _of(tf, lambda: jax.vmap(log_prob)(*leaves), wanted["log_prob"])
    if "grad" in wanted:
        every = tuple(range(len(leaves)))
        grad = jax.grad(lambda *leaves: tf.reduce_sum(log_prob(*leaves)), every)
        yield name, "grad", _of(tf, lambda: list(grad(*leaves)), wanted["grad"])


def main(arguments: list[str] | None = None) -> int:
    """Prints what is wrong, by cause, and how many distributions are right in everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--substrate", choices=["numpy", "jax"], default="jax")
    parser.add_argument("--expected", help="a file that keeps what TensorFlow gives")
    parser.add_argument("--out", help="the table of what works")
    parser.add_argument("--only", nargs="*", help="names of distributions")
    parser.add_argument("--eager", action="store_true", help="without jit, grad and vmap")
    options = parser.parse_args(arguments)
    kept = pathlib.Path(options.expected) if options.expected else None
    if kept is not None and kept.exists():
        expected = pickle.loads(kept.read_bytes())
    else:
        expected = on_tensorflow()
        if kept is not None:
            kept.write_bytes(pickle.dumps(expected))
    names = options.only or list(DISTRIBUTIONS)
    wrong: dict[str, list[str]] = collections.defaultdict(list)
    cells = right = 0
    bad = set()
    for name, what, why in on_substrate(options.substrate, expected, names, not options.eager):
        cells += 1
        right += not why
        if why:
            bad.add(name)
            wrong[why].append(f"{name}.{what}")
            print(f"{name}.{what}: {why}", flush=True)
    print()
    for why, where in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(len(where), why, "|", ", ".join(where[:4]))
    print(f"{right} of {cells} cells, {len(names) - len(bad)} of {len(names)} distributions")
    return 0 if right == cells else 1


if __name__ == "__main__":
    sys.exit(main())
