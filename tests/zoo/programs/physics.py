"""Physics, geometry and images: JAX MD, Exponax, JAX-CFD, JAXlie, e3nn, SymPy, PIX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, normal, program

KEY = jax.random.PRNGKey(0)


@program("jax-md", x64=True)
def steps_of_molecular_dynamics() -> Built:
    from jax_md import energy, simulate, space

    displacement, shift = space.periodic(4.0)
    potential = energy.soft_sphere_pair(displacement)
    init, apply = simulate.nve(potential, shift, 1e-2)
    positions = np.random.default_rng(0).uniform(0, 4, (6, 2))
    state = init(KEY, positions, kT=0.1)

    def run(state):
        state = jax.lax.fori_loop(0, 4, lambda _, s: apply(s), state)
        return state, potential(state.position)

    return run, (state,)


@program("jax-md", x64=True)
def forces_by_a_neighbor_list() -> Built:
    from jax_md import energy, space

    displacement, _ = space.periodic(6.0)
    make, potential = energy.lennard_jones_neighbor_list(
        displacement, 6.0, sigma=1.0, epsilon=1.0, r_onset=1.5, r_cutoff=2.0
    )
    positions = np.random.default_rng(0).permutation(np.mgrid[0:6:1.5, 0:6:1.5].reshape(2, -1).T)
    neighbors = make.allocate(positions)

    def forces(positions):
        current = neighbors.update(positions)
        return -jax.grad(potential)(positions, current), current.did_buffer_overflow

    return forces, (positions + 0.1,)


@program("exponax", batch="b, ...")
def burgers_equation_by_a_spectral_method() -> Built:
    import exponax as ex

    stepper = ex.stepper.Burgers(1, 3.0, 16, 0.05, diffusivity=0.1)
    return jax.vmap(ex.repeat(stepper, 3)), (normal(2, 1, 16) / 4,)


@program("jax-cfd")
def step_of_navier_and_stokes() -> Built:
    import jax_cfd.base as cfd

    grid = cfd.grids.Grid((8, 8), domain=((0, 2 * np.pi), (0, 2 * np.pi)))
    velocity = cfd.initial_conditions.filtered_velocity_field(KEY, grid, 1.0, 2)
    step = cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=0.1, dt=0.05, grid=grid)
    return step, (velocity,)


@program("jaxlie", batch="b, ...")
def poses_and_their_tangents() -> Built:
    import jaxlie

    def chain(tangents):
        poses = jax.vmap(jaxlie.SE3.exp)(tangents)
        turned = jax.vmap(lambda p: (p @ p.inverse() @ p).log())(poses)
        return poses.parameters(), turned, jax.vmap(lambda p: p.apply(jnp.arange(3.0)))(poses)

    return chain, (normal(3, 6),)


@program("e3nn-jax", batch="b, ...")
def equivariant_products() -> Built:
    import e3nn_jax as e3nn

    def features(vectors):
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)
        product = e3nn.tensor_product(harmonics, harmonics, filter_ir_out=["0e", "1o", "2e"])
        return e3nn.norm_activation(product, [jnp.tanh] * len(product.irreps)).array

    return features, (normal(4, 3),)


@program("sympy2jax", batch="b")
def symbolic_expression() -> Built:
    import sympy
    import sympy2jax

    x, y = sympy.symbols("x y")
    expression = sympy.diff(sympy.sin(x * y) * sympy.exp(-(x**2)), x) + sympy.Max(x, y) ** 3
    module = sympy2jax.SymbolicModule([expression, sympy.sqrt(x**2 + y**2)])
    return lambda x, y: module(x=x, y=y), (normal(4), normal(4, seed=1))


@program("dm-pix", batch="b, ...")
def augmentation_of_images() -> Built:
    import dm_pix as pix

    def augment(images):
        images = pix.random_flip_left_right(KEY, images)
        images = pix.adjust_hue(pix.adjust_contrast(images, 1.2), 0.1)
        images = pix.gaussian_blur(images, 1.0, 3)
        return pix.rgb_to_grayscale(images), pix.ssim(images, images[..., ::-1], filter_size=5)

    return augment, (np.random.default_rng(0).uniform(size=(2, 8, 8, 3)).astype(np.float32),)


@program("dm-pix", batch="b, ...")
def rotation_by_interpolation() -> Built:
    import dm_pix as pix

    rotate = jax.vmap(lambda image: pix.rotate(image, 0.3, mode="constant"))
    return rotate, (normal(2, 8, 8, 3),)
