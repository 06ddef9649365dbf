"""Optimisation and linear solvers: Lineax, Optimistix, JAXopt, OTT, Evosax, Interpax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, normal, program

KEY = jax.random.PRNGKey(0)
MATRIX = np.eye(4) * 5 + np.random.default_rng(0).normal(size=(4, 4))
VECTOR = np.random.default_rng(1).normal(size=4)


@program("lineax", x64=True)
def solve_by_the_structure_of_the_matrix() -> Built:
    import lineax as lx

    def solve(matrix, vector):
        general = lx.MatrixLinearOperator(matrix)
        triangular = lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag)
        diagonal = lx.DiagonalLinearOperator(jnp.diag(matrix))
        return [
            lx.linear_solve(operator, vector, throw=False).value
            for operator in (general, triangular, diagonal, general.T @ triangular)
        ]

    return solve, (MATRIX, VECTOR)


@program("lineax", x64=True, batch=(None, "b, ..."))
def conjugate_gradients_of_a_function() -> Built:
    import lineax as lx

    def solve(scale, vectors):
        def apply(x):
            return {"y": (2 + scale) * x["y"] - jnp.roll(x["y"], 1) - jnp.roll(x["y"], -1)}

        structure = {"y": jax.ShapeDtypeStruct((4,), vectors.dtype)}
        operator = lx.FunctionLinearOperator(apply, structure, lx.positive_semidefinite_tag)
        solver = lx.CG(rtol=1e-8, atol=1e-8)
        return jax.vmap(
            lambda v: lx.linear_solve(operator, {"y": v}, solver, throw=False).value["y"]
        )(vectors)

    return solve, (np.float64(0.5), np.stack([VECTOR, -VECTOR, VECTOR + 1]))


@program("lineax", x64=True)
def least_squares_by_qr_and_svd() -> Built:
    import lineax as lx

    def solve(matrix, vector):
        tall = lx.MatrixLinearOperator(matrix)
        return [
            lx.linear_solve(tall, vector, solver, throw=False).value
            for solver in (lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=False))
        ]

    return solve, (np.random.default_rng(0).normal(size=(6, 3)), np.arange(6.0))


@program("optimistix", x64=True)
def root_by_newton() -> Built:
    import optimistix as optx

    def solve(start, shift):
        def residual(y, args):
            one, other = y
            return jnp.tanh(one) + other - args, one * other - 0.1

        solver = optx.Newton(rtol=1e-8, atol=1e-8)
        return optx.root_find(residual, solver, (start, start + 1), shift, throw=False).value

    return solve, (np.float64(0.3), np.float64(1.2))


@program("optimistix", x64=True)
def fit_by_levenberg_marquardt() -> Built:
    import optimistix as optx

    def fit(start, x, y):
        def residual(params, args):
            return params["a"] * jnp.exp(-params["b"] * x) - y

        solver = optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8)
        return optx.least_squares(residual, solver, start, throw=False).value

    x = np.linspace(0, 2, 6)
    start = {"a": np.float64(1.0), "b": np.float64(1.0)}
    return fit, (start, x, 2.5 * np.exp(-1.3 * x) + 0.01 * np.cos(9 * x))


@program("optimistix", x64=True)
def minimum_by_bfgs() -> Built:
    import optimistix as optx

    def minimize(start, shift):
        def rosenbrock(y, args):
            return jnp.sum((args - y[:-1]) ** 2 + 10 * (y[1:] - y[:-1] ** 2) ** 2)

        solver = optx.BFGS(rtol=1e-6, atol=1e-6)
        return optx.minimise(rosenbrock, solver, start, shift, throw=False).value

    return minimize, (np.array([0.5, 0.4, 0.7]), np.float64(1.1))


@program("jaxopt", x64=True, ulps=1024)
def implicit_gradient_of_ridge_regression() -> Built:
    import jaxopt

    def objective(w, strength, x, y):
        return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)

    solver = jaxopt.LBFGS(objective, maxiter=30, tol=1e-8)

    def outer(strength, x, y):
        return solver.run(jnp.zeros(3), strength, x, y).params

    x = np.random.default_rng(0).normal(size=(6, 3))
    return outer, (np.float64(0.1), x, np.arange(6.0))


# Where the matrix moves by one ULP, JAX's gradients move by 2,095.
@program("jaxopt", x64=True, ulps=1024, gradient_ulps=16384)
def projected_gradient_on_the_simplex() -> Built:
    import jaxopt

    solver = jaxopt.ProjectedGradient(
        lambda w, matrix: jnp.sum((matrix @ w - 1) ** 2),
        jaxopt.projection.projection_simplex,
        maxiter=20,
    )
    return lambda matrix: solver.run(jnp.ones(4) / 4, matrix=matrix).params, (MATRIX,)


@program("ott-jax", x64=True)
def entropic_transport() -> Built:
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    solver = sinkhorn.Sinkhorn(max_iterations=60)

    def transport(x, y):
        geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
        result = solver(linear_problem.LinearProblem(geometry))
        return result.matrix, result.reg_ot_cost

    generator = np.random.default_rng(0)
    return transport, (generator.normal(size=(4, 2)), generator.normal(size=(5, 2)))


@program("evosax")
def generation_of_an_evolution_strategy() -> Built:
    from evosax.algorithms import CMA_ES

    strategy = CMA_ES(population_size=8, solution=jnp.zeros(3))
    params = strategy.default_params
    state = strategy.init(KEY, jnp.zeros(3), params)

    def generation(state, key):
        population, state = strategy.ask(key, state, params)
        fitness = jnp.sum((population - 1) ** 2, axis=-1)
        state, _ = strategy.tell(key, population, fitness, state, params)
        return population, state.mean, state.std

    return generation, (state, KEY)


@program("interpax", x64=True, batch=("b", None))
def interpolation_by_splines() -> Built:
    import interpax

    def interpolate(at, values):
        grid = jnp.linspace(0, 1, 6)
        return [
            interpax.interp1d(at, grid, values, method=method, extrap=True)
            for method in ("linear", "cubic2", "monotonic", "akima")
        ]

    return interpolate, (np.linspace(-0.1, 1.1, 4), np.sin(np.arange(6.0)))


@program("quax", batch=("b, ...", None, None))
def low_rank_weights() -> Built:
    import equinox as eqx
    import quax
    from quax.examples import lora

    model = eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))
    adapted = lora.loraify(model, rank=2, scale=0.1, key=jax.random.key(1))
    arrays, static = eqx.partition(adapted, eqx.is_array)

    def apply(x, scale, arrays):
        run = quax.quaxify(lambda m, x: jax.vmap(m)(x))
        return scale * run(eqx.combine(arrays, static), x)

    return apply, (normal(3, 4), np.float32(2.0), arrays)
