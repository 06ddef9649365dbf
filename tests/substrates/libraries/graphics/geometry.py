"""Programs of tensorflow_graphics.geometry: rotations, points, rays and meshes."""

from __future__ import annotations

import numpy as np

from tests.substrates.libraries.graphics.calling import ONLY_EAGER, VALUES, add_calls, module
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


_ANGLES = np.array([[0.3, -0.5, 0.9], [1.1, 0.2, -0.7]])
_SMALL = _ANGLES / 100
_AXES = _unit(np.array([[0.3, -0.5, 0.9], [1.0, 0.2, 0.7]]))
_TURNS = np.array([[0.4], [1.2]])
_QUATERNIONS = _unit(np.array([[0.1, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.5]]))
_OTHERS = _unit(np.array([[0.4, -0.1, 0.2, 0.9], [0.3, 0.6, -0.5, 0.2]]))
_VECTORS = np.array([[0.2, 1.4, -0.6], [1.1, -0.3, 0.8]])
_X, _Y, _Z, _W = np.moveaxis(_QUATERNIONS, -1, 0)
_MATRICES = np.moveaxis(
    np.array(
        [
            [1 - 2 * (_Y**2 + _Z**2), 2 * (_X * _Y - _Z * _W), 2 * (_X * _Z + _Y * _W)],
            [2 * (_X * _Y + _Z * _W), 1 - 2 * (_X**2 + _Z**2), 2 * (_Y * _Z - _X * _W)],
            [2 * (_X * _Z - _Y * _W), 2 * (_Y * _Z + _X * _W), 1 - 2 * (_X**2 + _Y**2)],
        ]
    ),
    -1,
    0,
)
_FLAT = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in (0.4, -1.3)])
_DUALS = np.concatenate([_QUATERNIONS, np.array([[0.1, 0.3, 0.2, -0.4], [0.5, 0.1, -0.2, 0.3]])], 1)

_TRANSFORMATION = {
    "axis_angle": {
        "from_euler": (_ANGLES,),
        "from_euler_with_small_angles_approximation": (_SMALL,),
        "from_quaternion": (_QUATERNIONS,),
        "from_rotation_matrix": (_MATRICES,),
        "inverse": (_AXES, _TURNS),
        "is_normalized": (_AXES, _TURNS),
        "rotate": (_VECTORS, _AXES, _TURNS),
    },
    "dual_quaternion": {
        "conjugate": (_DUALS,),
        "conjugate_dual": (_DUALS,),
        "from_axis_angle_translation": (_AXES, _TURNS, _VECTORS),
        "from_rotation_translation": (_QUATERNIONS, _VECTORS),
        "inverse": (_DUALS,),
        "is_normalized": (_DUALS,),
        "multiply": (_DUALS, _DUALS[::-1].copy()),
        "norm": (_DUALS,),
        "point_to_dual_quaternion": (_VECTORS,),
        "to_rotation_translation": (_DUALS,),
    },
    "euler": {
        "from_axis_angle": (_AXES, _TURNS),
        "from_quaternion": (_QUATERNIONS,),
        "from_rotation_matrix": (_MATRICES,),
        "inverse": (_ANGLES,),
    },
    "linear_blend_skinning": {
        "blend": (_VECTORS, np.array([[0.3, 0.7], [0.6, 0.4]]), _MATRICES, _VECTORS[::-1].copy()),
    },
    "look_at": {"right_handed": (_VECTORS, _VECTORS[::-1] * 2, _AXES)},
    "quaternion": {
        "between_two_vectors_3d": (_VECTORS, _AXES[::-1].copy()),
        "conjugate": (_QUATERNIONS,),
        "from_axis_angle": (_AXES, _TURNS),
        "from_euler": (_ANGLES,),
        "from_euler_with_small_angles_approximation": (_SMALL,),
        "from_rotation_matrix": (_MATRICES,),
        "inverse": (_QUATERNIONS,),
        "is_normalized": (_QUATERNIONS,),
        "multiply": (_QUATERNIONS, _OTHERS),
        "normalize": (_QUATERNIONS * 1.7,),
        "relative_angle": (_QUATERNIONS, _OTHERS),
        "rotate": (_VECTORS, _QUATERNIONS),
    },
    "rotation_matrix_2d": {
        "from_euler": (_TURNS,),
        "from_euler_with_small_angles_approximation": (_TURNS / 100,),
        "inverse": (_FLAT,),
        "is_valid": (_FLAT,),
        "rotate": (_VECTORS[:, :2], _FLAT),
    },
    "rotation_matrix_3d": {
        "assert_rotation_matrix_normalized": (_MATRICES,),
        "from_axis_angle": (_AXES, _TURNS),
        "from_euler": (_ANGLES,),
        "from_euler_with_small_angles_approximation": (_SMALL,),
        "from_quaternion": (_QUATERNIONS,),
        "inverse": (_MATRICES,),
        "is_valid": (_MATRICES,),
        "rotate": (_VECTORS, _MATRICES),
    },
}
for _module, _calls in _TRANSFORMATION.items():
    add_calls(PROGRAMS, f"geometry.transformation.{_module}", _calls)


# Its random numbers are float32.
@program(
    "geometry.transformation.quaternion.normalized_random_uniform",
    places=ONLY_EAGER,
    tolerance=1e-5,
)
def _(tf, graphics):
    tf.random.set_seed(4)
    return module(graphics, "geometry.transformation.quaternion").normalized_random_uniform([3])


_CORNERS = np.array([[[0.0, 0.1, 0.3]], [[1.0, 0.2, -0.1]], [[0.2, 0.9, 0.4]]])
_RAYS = np.array([[0.1, 0.3, 1.0], [0.4, -0.2, 0.7]])
_REPRESENTATION = {
    "grid": {
        "generate": (np.array([0.0, -1.0]), np.array([1.0, 2.0]), {"nums": [3, 4]}),
    },
    "point": {
        "distance_to_ray": (_VECTORS, _AXES, _RAYS),
        "project_to_ray": (_VECTORS, _AXES, _RAYS),
    },
    "ray": {
        "intersection_ray_sphere": (
            np.array([0.1, 0.2, 3.0]),
            np.array([2.0]),
            _unit(_RAYS),
            np.array([[0.0, 0.0, 0.2], [0.1, 0.0, 0.0]]),
        ),
        "triangulate": (
            np.array([[0.0, 0.1, 0.2], [1.0, 0.3, -0.2], [0.4, 1.1, 0.5]]),
            np.array([[0.5, 0.4, 0.9], [0.7, 0.2, 0.8], [0.3, 0.6, 1.1]]),
            np.array([0.3, 0.5, 0.2]),
        ),
    },
    "triangle": {"area": tuple(_CORNERS), "normal": tuple(_CORNERS)},
}
for _module, _calls in _REPRESENTATION.items():
    add_calls(PROGRAMS, f"geometry.representation.{_module}", _calls)

_NEAR, _FAR = np.array([0.5, 0.8]), np.array([2.0, 3.0])
for _name in ("sample_1d", "sample_stratified_1d", "sample_inverse_transform_stratified_1d"):
    # Its random numbers are float32.
    @program(f"geometry.representation.ray.{_name}", places=ONLY_EAGER, tolerance=1e-5)
    def _(tf, graphics, _name=_name):
        ray = module(graphics, "geometry.representation.ray")
        tf.random.set_seed(4)
        given = [tf.constant(a, tf.float32) for a in (_VECTORS, _RAYS, _NEAR, _FAR)]
        if "inverse" in _name:
            depths = tf.constant([[0.5, 0.9, 1.6], [0.8, 1.2, 2.5]])
            given[2:] = depths, tf.constant([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
        return getattr(ray, _name)(*given, 4)


_VERTICES = np.array(
    [[0.0, 0.1, 0.2], [1.0, 0.3, -0.2], [0.4, 1.1, 0.5], [0.3, 0.4, 1.2], [-0.5, 0.6, 0.1]]
)
_FACES = np.array([[0, 1, 2], [0, 2, 3], [1, 3, 2], [0, 4, 3]], np.int32)
add_calls(
    PROGRAMS,
    "geometry.representation.mesh.normals",
    {
        "gather_faces": (_VERTICES, _FACES),
        "face_normals": (_VERTICES[_FACES],),
        "vertex_normals": (_VERTICES, _FACES),
    },
)
add_calls(PROGRAMS, "geometry.representation.mesh.sampler", {"triangle_area": tuple(_CORNERS)})
_SAMPLER = "geometry.representation.mesh.sampler"
# By TensorFlow's stateless samplers.
_SAMPLED = {
    "generate_random_barycentric_coordinates": lambda tf, s: (
        s.generate_random_barycentric_coordinates([4, 2], tf.float64, (3, 7), stateless=True)
    ),
    "generate_random_face_indices": lambda tf, s: s.generate_random_face_indices(
        5, tf.constant([0.2, 0.5, 0.1, 0.2], tf.float64), (3, 7), stateless=True
    ),
    "weighted_random_sample_triangle_mesh": lambda tf, s: s.weighted_random_sample_triangle_mesh(
        tf.constant(_VERTICES),
        tf.constant(_FACES),
        5,
        tf.constant([0.2, 0.5, 0.1, 0.2], tf.float64),
        (3, 7),
        stateless=True,
    ),
    "area_weighted_random_sample_triangle_mesh": lambda tf, s: (
        s.area_weighted_random_sample_triangle_mesh(
            tf.constant(_VERTICES), tf.constant(_FACES), 5, seed=(3, 7), stateless=True
        )
    ),
}
for _name, _sampled in _SAMPLED.items():

    @program(f"{_SAMPLER}.{_name}")
    def _(tf, graphics, _sampled=_sampled):
        return _sampled(tf, module(graphics, _SAMPLER))


@program("geometry.representation.mesh.utils.extract_unique_edges_from_triangular_mesh")
def _(tf, graphics):
    utils = module(graphics, "geometry.representation.mesh.utils")
    edges = utils.extract_unique_edges_from_triangular_mesh(_FACES)
    return tf.constant(edges), tf.constant(utils.get_degree_based_edge_weights(edges))


@program("geometry.representation.mesh.utils.get_degree_based_edge_weights")
def _(tf, graphics):
    utils = module(graphics, "geometry.representation.mesh.utils")
    return tf.constant(utils.get_degree_based_edge_weights(np.array([[0, 1], [1, 0], [1, 2]])))


_ROTATIONS = _unit(np.concatenate([_QUATERNIONS, _OTHERS, _OTHERS[:1] + 0.2]))
_EDGES = np.array([[0, 1], [1, 0], [1, 2], [3, 4], [4, 0]], np.int32)
add_calls(
    PROGRAMS,
    "geometry.deformation_energy.as_conformal_as_possible",
    {
        "energy": (_VERTICES, _VERTICES * 1.1 + 0.2, _ROTATIONS, _EDGES),
        "energy: of each edge": (
            _VERTICES,
            _VERTICES**2,
            _ROTATIONS,
            _EDGES,
            {"conformal_energy": False, "aggregate_loss": False},
        ),
    },
)
