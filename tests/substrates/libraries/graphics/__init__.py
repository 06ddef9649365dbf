"""Programs of TensorFlow Graphics 2021.12.3: geometry, mathematics, images, rendering, metrics.

One module an area.
"""

from __future__ import annotations

import inspect
from typing import Any

from tests.substrates.libraries.graphics import differences, geometry, images, math, rendering
from tests.substrates.libraries.graphics.calling import module
from tests.substrates.libraries.programs import Suite

LIBRARY = "tensorflow_graphics"
# Left out is what needs sparse tensors, convolutions, Keras, or a library of operations.
_MODULES = (
    "geometry.deformation_energy.as_conformal_as_possible",
    *(f"geometry.representation.{name}" for name in ("grid", "point", "ray", "triangle")),
    *(f"geometry.representation.mesh.{name}" for name in ("normals", "sampler", "utils")),
    *(
        f"geometry.transformation.{name}"
        for name in (
            "axis_angle",
            "dual_quaternion",
            "euler",
            "linear_blend_skinning",
            "look_at",
            "quaternion",
            "rotation_matrix_2d",
            "rotation_matrix_3d",
        )
    ),
    *(f"math.{name}" for name in ("feature_representation", "math_helpers", "sampling", "vector")),
    "math.spherical_harmonics",
    *(f"math.interpolation.{name}" for name in ("bspline", "slerp", "trilinear", "weighted")),
    "math.optimizer.levenberg_marquardt",
    "image.color_space.linear_rgb",
    "image.color_space.srgb",
    "nn.loss.chamfer_distance",
    "nn.loss.hausdorff_distance",
    *(f"nn.metric.{name}" for name in ("fscore", "intersection_over_union", "precision", "recall")),
    *(f"rendering.camera.{name}" for name in ("orthographic", "perspective")),
    "rendering.camera.quadratic_radial_distortion",
    "rendering.light.point_light",
    "rendering.opengl.math",
    *(f"rendering.reflectance.{name}" for name in ("blinn_phong", "lambertian", "phong")),
    *(
        f"rendering.volumetric.{name}"
        for name in (
            "absorption",
            "emission_absorption",
            "ray_density",
            "ray_radiance",
            "visual_hull",
        )
    ),
)


def names(graphics: Any) -> list[str]:
    """The public functions of each module."""
    found = []
    for path in _MODULES:
        owner = module(graphics, path)
        for name, value in vars(owner).items():
            its_own = inspect.isfunction(value) and value.__module__ == owner.__name__
            if its_own and not name.startswith("_"):
                found.append(f"{path}.{name}")
    return found


SUITE = Suite(
    LIBRARY,
    [program for area in (geometry, math, images, rendering) for program in area.PROGRAMS],
    needs="tensorflow-graphics==2021.12.3",
    names=names,
    differences=differences.DIFFERENCES,
)
