"""Programs of tensorflow_graphics.rendering: cameras, light, materials, volumes, screens."""

from __future__ import annotations

import numpy as np

from tests.substrates.libraries.graphics.calling import EVERYWHERE, ONLY_EAGER, add_calls, module
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


_POINTS = np.array([[0.2, 0.4, 1.6], [-0.3, 0.7, 2.1]])
_PIXELS = np.array([[10.0, 14.0], [7.0, 21.0]])
_DEPTHS = np.array([[1.3], [2.2]])
_FOCAL, _CENTRE = np.array([[30.0, 32.0], [28.0, 31.0]]), np.array([[16.0, 12.0], [15.0, 13.0]])
_INTRINSICS = np.array([[[30.0, 0.0, 16.0], [0.0, 32.0, 12.0], [0.0, 0.0, 1.0]]])
_FIELD, _ASPECT = np.array([[1.1], [0.8]]), np.array([[1.3], [1.5]])
_NEAR, _FAR = np.array([[0.5], [0.8]]), np.array([[10.0], [12.0]])
_IN, _OUT = _unit(np.array([[0.3, -0.2, -0.9]])), _unit(np.array([[0.1, 0.4, 0.8]]))
_NORMAL, _ALBEDO = _unit(np.array([[0.1, 0.1, 1.0]])), np.array([[0.3, 0.7, 0.5]])
_SHINE = np.array([[4.0]])
_VOXELS = (np.sin(np.arange(2 * 3 * 4 * 3 * 4.0)).reshape(2, 3, 4, 3, 4) + 1) / 2
_TRIANGLE = np.array([[-0.5, -0.4, -2.0], [0.6, -0.3, -2.5], [0.1, 0.7, -3.0]])
_VIEW = np.eye(4) + np.array([[0, 0, 0, 0.1], [0, 0, 0, 0.2], [0, 0, 0, -0.3], [0, 0, 0, 0]])
_LENS = np.array([[1.2, 0, 0, 0], [0, 1.5, 0, 0], [0, 0, -1.1, -1.05], [0, 0, -1.0, 0]])
_SCREEN = np.array([64.0, 48.0])

_CALLS = {
    "camera.orthographic": {
        "project": (_POINTS,),
        "ray": (_PIXELS,),
        "unproject": (_PIXELS, _DEPTHS),
    },
    "camera.perspective": {
        "intrinsics_from_matrix": (_INTRINSICS,),
        "matrix_from_intrinsics": (_FOCAL, _CENTRE, np.zeros([2, 1])),
        "project": (_POINTS, _FOCAL, _CENTRE),
        "ray": (_PIXELS, _FOCAL, _CENTRE),
        "right_handed": (_FIELD, _ASPECT, _NEAR, _FAR),
        "unproject": (_PIXELS, _DEPTHS, _FOCAL, _CENTRE),
        "parameters_from_right_handed": (
            np.array([[1.2, 0, 0, 0], [0, 1.6, 0, 0], [0, 0, -1.1, -1.05], [0, 0, -1.0, 0]]),
        ),
    },
    "camera.quadratic_radial_distortion": {
        "distortion_factor": (np.array([[0.2], [0.5]]), np.array([[0.3]])),
        "undistortion_factor": (np.array([[0.2], [0.5]]), np.array([[0.3]])),
    },
    "reflectance.blinn_phong": {"brdf": (_IN, _OUT, _NORMAL, _SHINE, _ALBEDO)},
    "reflectance.lambertian": {"brdf": (_IN, _OUT, _NORMAL, _ALBEDO)},
    "reflectance.phong": {"brdf": (_IN, _OUT, _NORMAL, _SHINE, _ALBEDO)},
    "volumetric.absorption": {"render": (_VOXELS[..., :1],)},
    "volumetric.emission_absorption": {"render": (_VOXELS,)},
    "volumetric.visual_hull": {"render": (_VOXELS[..., :1],)},
    "volumetric.ray_density": {
        "compute_density": (_VOXELS[0, 0, :, :, :1], np.abs(_VOXELS[0, 1, :, :, 1])),
    },
    "volumetric.ray_radiance": {
        "compute_radiance": (_VOXELS[0, 0], np.abs(_VOXELS[0, 1, :, :, 1])),
    },
    "opengl.math": {
        "clip_to_ndc": (np.array([[0.3, 0.5, 0.9, 1.4]]),),
        "eye_to_clip": (_POINTS, _FIELD, _ASPECT, _NEAR, _FAR),
        "interpolate_attributes": (
            np.array([[0.2, 0.7], [0.5, 0.1], [0.9, 0.4]]),
            np.array([0.3, 0.2, 0.5]),
        ),
        "model_to_eye": (_POINTS, _POINTS + 1.0, _POINTS[::-1] * 2, _unit(_POINTS[:, ::-1])),
        "model_to_screen": (
            _POINTS * [1, 1, -1],
            np.stack([_VIEW] * 2),
            np.stack([_LENS] * 2),
            np.stack([_SCREEN] * 2),
            np.zeros([2, 2]),
        ),
        "ndc_to_screen": (
            np.array([[0.3, -0.2, 0.4], [0.1, 0.8, -0.6]]),
            np.zeros([2, 2]),
            np.stack([_SCREEN] * 2),
            _NEAR,
            _FAR,
        ),
        "perspective_correct_barycentrics": (
            _TRIANGLE,
            np.array([30.0, 20.0]),
            _VIEW,
            _LENS,
            _SCREEN,
            np.zeros(2),
        ),
        "perspective_correct_interpolation": (
            _TRIANGLE,
            np.array([[0.2, 0.7], [0.5, 0.1], [0.9, 0.4]]),
            np.array([30.0, 20.0]),
            _VIEW,
            _LENS,
            _SCREEN,
            np.zeros(2),
        ),
    },
}
for _module, _calls in _CALLS.items():
    add_calls(PROGRAMS, f"rendering.{_module}", _calls)


@program(
    "rendering.light.point_light.estimate_radiance",
    [[3.0, 2.0, 1.0]],
    [[0.5, 1.5, 2.0]],
    [[0.1, 0.2, 0.3]],
    _NORMAL,
    [[0.7, 0.3, 1.6]],
)
def _(tf, graphics, radiance, light, surface, normal, eye):
    brdf = module(graphics, "rendering.reflectance.lambertian").brdf
    of = lambda i, o, n: brdf(i, o, n, tf.constant(_ALBEDO, radiance.dtype))  # noqa: E731
    estimate = module(graphics, "rendering.light.point_light").estimate_radiance
    return [
        estimate(radiance, light, surface, normal, eye, of, falls, name="radiance")
        for falls in (False, True)
    ]


for _name, _sizes in {"random_rays": (4,), "random_patches": (3, 2)}.items():
    # Its points are float32.
    @program(f"rendering.camera.perspective.{_name}", places=ONLY_EAGER, tolerance=1e-5)
    def _(tf, graphics, _name=_name, _sizes=_sizes):
        tf.random.set_seed(8)
        focal, centre = tf.constant(_FOCAL, tf.float32), tf.constant(_CENTRE, tf.float32)
        perspective = module(graphics, "rendering.camera.perspective")
        return getattr(perspective, _name)(focal, centre, 24, 32, *_sizes)
