"""Tridiagonal systems, LU, least squares, pseudo-inverses and cosine transforms."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

RNG = np.random.default_rng(0)
MATRICES = RNG.normal(size=(2, 4, 4))
BANDS = RNG.normal(size=(2, 3, 5))
SIDES = RNG.normal(size=(2, 5, 2))
# Elimination without exchanged rows divides by zero here.
PIVOTED = np.array([[1.0, 2.0, 3.0], [0.0, 0.5, 1.0], [2.0, 1.0, 2.0]])
REALS = ("float32", "float64")
CLOSE = {"float32": (1e-4, 1e-5), "float64": (1e-10, 1e-12), "complex128": (1e-10, 1e-12)}


def case(name, dtype, program):
    rtol, atol = CLOSE[dtype]
    return Case(f"{name} {dtype}", lambda tf: program(tf, np.dtype(dtype)), rtol=rtol, atol=atol)


def sequence(tf, d, product):
    parts = [
        tf.constant(BANDS[:, 0].astype(d)),
        tf.constant(BANDS[:, 1].astype(d)),
        tf.constant(BANDS[:, 2].astype(d)),
    ]
    return product(parts, tf.constant(SIDES.astype(d)), diagonals_format="sequence")


CASES = [
    made
    for dtype in (*REALS, "complex128")
    for made in (
        case(
            "solve compact",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_solve(
                tf.constant(BANDS.astype(d)), tf.constant(SIDES.astype(d))
            ),
        ),
        case(
            "multiply compact",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_matmul(
                tf.constant(BANDS.astype(d)), tf.constant(SIDES.astype(d))
            ),
        ),
        case("lu", dtype, lambda tf, d: tuple(tf.linalg.lu(tf.constant(MATRICES.astype(d))))),
        case(
            "lstsq",
            dtype,
            lambda tf, d: tf.linalg.lstsq(
                tf.constant(SIDES.astype(d)), tf.constant(SIDES.astype(d)[..., :1])
            ),
        ),
        case(
            "lstsq slow",
            dtype,
            lambda tf, d: tf.linalg.lstsq(
                tf.constant(SIDES.astype(d)), tf.constant(SIDES.astype(d)[..., :1]), fast=False
            ),
        ),
    )
]
CASES += [
    made
    for dtype in REALS
    for made in (
        case("solve sequence", dtype, lambda tf, d: sequence(tf, d, tf.linalg.tridiagonal_solve)),
        case("times sequence", dtype, lambda tf, d: sequence(tf, d, tf.linalg.tridiagonal_matmul)),
        case(
            "solve matrix",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_solve(
                tf.constant(MATRICES.astype(d)), tf.constant(SIDES[:, :4].astype(d)), "matrix"
            ),
        ),
        case(
            "solve a vector",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_solve(
                tf.constant(BANDS.astype(d)), tf.constant(SIDES[..., 0].astype(d))
            ),
        ),
        case(
            "solve with exchanges",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_solve(
                tf.constant(PIVOTED.astype(d)), tf.ones(3, d)
            ),
        ),
        case(
            "solve one",
            dtype,
            lambda tf, d: tf.linalg.tridiagonal_solve(tf.ones([3, 1], d), tf.constant([2.0], d)),
        ),
        case("pinv", dtype, lambda tf, d: tf.linalg.pinv(tf.constant(SIDES.astype(d)))),
        case(
            "pinv of a singular one",
            dtype,
            lambda tf, d: tf.linalg.pinv(np.ones((3, 2), d), validate_args=True),
        ),
        case(
            "lstsq of few rows",
            dtype,
            lambda tf, d: tf.linalg.lstsq(
                tf.constant(np.swapaxes(SIDES, 1, 2).astype(d)),
                tf.constant(SIDES[:, :2].astype(d)),
                0.1,
            ),
        ),
    )
]
CASES += [
    case(
        f"{name} of type {kind} {norm} {n}",
        dtype,
        lambda tf, d, name=name, kind=kind, norm=norm, n=n: getattr(tf.signal, name)(
            tf.constant(BANDS.astype(d)), kind, n=n, norm=norm
        ),
    )
    for dtype in REALS
    for name in ("dct", "idct")
    for kind in (1, 2, 3, 4, 5)
    for norm in (None, "ortho", "other")
    for n in (None, 3, 8)
    if (norm != "other" or n is None) and (n is None or dtype == "float32")
]
CASES += [
    Case("dct of another axis", lambda tf: tf.signal.dct(BANDS, axis=0)),
    Case("dct of length 0", lambda tf: tf.signal.dct(BANDS, n=0)),
    Case("dct of one", lambda tf: tf.signal.dct(tf.constant([[1.0]]), type=1)),
    Case("an unknown format", lambda tf: tf.linalg.tridiagonal_solve(BANDS, SIDES, "band")),
    Case(
        "two diagonals",
        lambda tf: tf.linalg.tridiagonal_solve(tf.constant(BANDS[:, :2]), tf.constant(SIDES)),
    ),
    Case("pinv of integers", lambda tf: tf.linalg.pinv([[1, 2], [3, 4]])),
    Case("pinv of a vector", lambda tf: tf.linalg.pinv([1.0, 2.0])),
    Case("lu of a singular one", lambda tf: tf.linalg.lu(np.zeros((2, 2)))),
    Case("lu of no square", lambda tf: tf.linalg.lu(np.zeros((2, 3)))),
    Case("lu with long indices", lambda tf: tf.linalg.lu(MATRICES, tf.int64).p),
    Case("lu of nothing", lambda tf: tuple(tf.linalg.lu(np.zeros((0, 3, 3))))),
]


@over(CASES)
def test_as_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_solutions_have_derivatives_under_jit():
    tf = tf_of("jax")
    solve = jax.jit(jax.grad(lambda b: tf.reduce_sum(tf.linalg.tridiagonal_solve(b, b[1])), 0))
    bands = np.asarray(BANDS[0] + [[0], [5], [0]], np.float32)
    step = np.zeros_like(bands)
    step[1, 2] = 1e-2
    value = tf.linalg.tridiagonal_solve
    change = (
        np.sum(value(bands + step, (bands + step)[1]))
        - np.sum(value(bands - step, (bands - step)[1]))
    ) / 2e-2
    np.testing.assert_allclose(solve(bands)[1, 2], change, rtol=1e-2, atol=1e-4)


def test_singular_values_to_perturb_are_refused():
    with pytest.raises(NotImplementedError, match=r"perturb_singular=True is not here"):
        tf_of("numpy").linalg.tridiagonal_solve(BANDS, SIDES, perturb_singular=True)
