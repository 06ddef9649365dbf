"""Programs of tensorflow_graphics.math: vectors, interpolation, harmonics and samples."""

from __future__ import annotations

import numpy as np

from tests.substrates.libraries.graphics.calling import (
    EVERYWHERE,
    ONLY_EAGER,
    VALUES,
    add_calls,
    module,
)
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

_VECTORS = np.array([[0.2, 1.4, -0.6], [1.1, -0.3, 0.8]])
_OTHERS = np.array([[0.7, 0.1, 0.5], [-0.4, 0.9, 0.6]])


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


_QUATERNIONS = _unit(np.array([[0.1, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.5]]))
_TURNED = _unit(np.array([[0.4, -0.1, 0.2, 0.9], [0.3, 0.6, -0.5, 0.2]]))
_HALF = np.array([[0.3], [0.6]])
_GRID = np.sin(np.arange(2 * 3 * 4 * 3 * 2.0)).reshape(2, 3, 4, 3, 2)
_PLACES = np.array([[[0.3, 1.6, 0.4], [1.2, 2.9, 1.5]], [[0.7, 0.2, 1.1], [1.9, 2.1, 0.6]]])

_CALLS = {
    "vector": {
        "cross": (_VECTORS, _OTHERS),
        "dot": (_VECTORS, _OTHERS),
        "reflect": (_VECTORS, _unit(_OTHERS)),
    },
    "feature_representation": {"positional_encoding": (_VECTORS, {"num_frequencies": 4})},
    "math_helpers": {
        "cartesian_to_spherical_coordinates": (_VECTORS,),
        "double_factorial": (np.array([3.0, 6.0, 7.0]),),
        "factorial": (np.array([3.0, 6.0, 0.0]),),
        "spherical_to_cartesian_coordinates": (np.abs(_VECTORS),),
        "square_to_spherical_coordinates": (np.array([[0.2, 0.4], [0.9, 0.6]]),),
    },
    "sampling": {
        "logspace_1d": (np.array([0.5, 0.8]), np.array([2.0, 3.0]), {"num_samples": 5}),
        "regular_1d": (np.array([0.5, 0.8]), np.array([2.0, 3.0]), {"num_samples": 5}),
        "regular_inverse_1d": (np.array([0.5, 0.8]), np.array([2.0, 3.0]), {"num_samples": 5}),
    },
    "interpolation.slerp": {
        "interpolate": (_QUATERNIONS, _TURNED, _HALF),
        "interpolate_with_weights": (_QUATERNIONS, _TURNED, _HALF, 1 - _HALF),
        "quaternion_weights": (_QUATERNIONS, _TURNED, _HALF),
        "vector_weights": (_unit(_VECTORS), _unit(_OTHERS), _HALF),
    },
    "interpolation.trilinear": {"interpolate": (_GRID, _PLACES)},
    "interpolation.weighted": {
        "get_barycentric_coordinates": (
            np.array([[0.0, 0.1], [1.0, 0.2], [0.3, 0.9]]),
            np.array([[0.4, 0.4], [0.2, 0.3]]),
        ),
        "interpolate": (
            np.sin(np.arange(12.0)).reshape(6, 2),
            np.array([[0.2, 0.5, 0.4], [0.7, 0.1, 0.3]]),
            np.array([[[0], [3], [5]], [[1], [2], [4]]], np.int32),
        ),
    },
    "spherical_harmonics": {
        "integration_product": (_VECTORS, _OTHERS),
        "rotate_zonal_harmonics": (np.array([0.3, 0.7]), np.array([[0.4]]), np.array([[1.2]])),
        "tile_zonal_coefficients": (np.array([0.3, 0.7, -0.2]),),
    },
}
for _module, _calls in _CALLS.items():
    add_calls(PROGRAMS, f"math.{_module}", _calls)

_HARMONICS = "math.spherical_harmonics"
_DEGREES, _ORDERS = np.array([0, 1, 1, 2, 3], np.int32), np.array([0, -1, 1, 2, -2], np.int32)


@program(f"{_HARMONICS}.evaluate_legendre_polynomial", [0.3, -0.6, 0.1, 0.9, 0.4], places=VALUES)
def _(tf, graphics, x):
    harmonics = module(graphics, _HARMONICS)
    return harmonics.evaluate_legendre_polynomial(_DEGREES, np.abs(_ORDERS), x)


@program(
    f"{_HARMONICS}.evaluate_spherical_harmonics", [[0.3], [1.6]], [[0.5], [-1.2]], places=VALUES
)
def _(tf, graphics, theta, phi):
    degrees, orders = (np.stack([a] * 2) for a in (_DEGREES, _ORDERS))
    return module(graphics, _HARMONICS).evaluate_spherical_harmonics(degrees, orders, theta, phi)


for _name in ("generate_l_m_permutations", "generate_l_m_zonal"):

    @program(f"{_HARMONICS}.{_name}", places=VALUES)
    def _(tf, graphics, _name=_name):
        return getattr(module(graphics, _HARMONICS), _name)(3)


for _cyclical in (False, True):

    @program(
        "math.interpolation.bspline.interpolate" + (": cyclical" if _cyclical else ""),
        np.sin(np.arange(10.0)).reshape(2, 5),
        [[0.3], [1.7]],
    )
    def _(tf, graphics, knots, positions, _cyclical=_cyclical):
        bspline = module(graphics, "math.interpolation.bspline")
        return [
            bspline.interpolate(knots, positions, degree, _cyclical)
            for degree in (bspline.Degree.LINEAR, bspline.Degree.QUADRATIC, bspline.Degree.CUBIC)
        ]


@program("math.interpolation.bspline.knot_weights", [0.3, 1.7])
def _(tf, graphics, positions):
    bspline = module(graphics, "math.interpolation.bspline")
    return bspline.knot_weights(positions, 5, bspline.Degree.QUADRATIC, False)


@program(
    "math.interpolation.bspline.interpolate_with_weights", [[0.3, 0.5, 0.9]], [[0.2, 0.5, 0.3]]
)
def _(tf, graphics, knots, weights):
    return module(graphics, "math.interpolation.bspline").interpolate_with_weights(knots, weights)


@program("math.interpolation.slerp.interpolate: of vectors", _unit(_VECTORS), _unit(_OTHERS), _HALF)
def _(tf, graphics, first, second, percent):
    slerp = module(graphics, "math.interpolation.slerp")
    return slerp.interpolate(first, second, percent, slerp.InterpolationType.VECTOR)


# What computes in float32 alone.
_NEAR, _FAR = np.array([0.5, 0.8], np.float32), np.array([2.0, 3.0], np.float32)
for _name in ("geomspace_1d", "uniform_1d", "stratified_1d", "stratified_geomspace_1d"):

    @program(f"math.sampling.{_name}", places=ONLY_EAGER, tolerance=1e-5)
    def _(tf, graphics, _name=_name):
        tf.random.set_seed(6)
        near, far = tf.constant(_NEAR), tf.constant(_FAR)
        return getattr(module(graphics, "math.sampling"), _name)(near, far, 4)


_PDF = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]], np.float32)
_BINS = np.array([[0.5, 0.9, 1.6, 2.0], [0.8, 1.2, 2.5, 3.0]], np.float32)
for _name in ("inverse_transform_sampling_1d", "inverse_transform_stratified_1d"):

    @program(f"math.sampling.{_name}", places=ONLY_EAGER, tolerance=1e-5)
    def _(tf, graphics, _name=_name):
        tf.random.set_seed(6)
        sampling, pdf, bins = (
            module(graphics, "math.sampling"),
            tf.constant(_PDF),
            tf.constant(_BINS),
        )
        if _name == "inverse_transform_sampling_1d":
            return sampling.inverse_transform_sampling_1d(bins[:, :3], pdf, 4)
        widths = bins[:, 1:] - bins[:, :-1]
        return sampling.inverse_transform_stratified_1d(bins[:, :-1], widths, pdf, 4)


# It takes the derivatives of what it minimises by a tape.
@program(
    "math.optimizer.levenberg_marquardt.minimize",
    [0.4, -0.3, 0.9],
    places=("numpy", "jax", "jit"),
    tolerance=1e-8,
)
def _(tf, graphics, x):
    minimize = module(graphics, "math.optimizer.levenberg_marquardt").minimize
    residuals = lambda x: tf.sin(x) + x - tf.constant([0.5, 1.0, -0.2], x.dtype)  # noqa: E731
    return minimize(residuals, (x,), max_iterations=6)
