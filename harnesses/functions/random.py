"""jax.random: each function with a raw key of the default generator."""

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.functions import family
from harnesses.harness import Uniform, Values, define_functions, each, use

KEY = Values([0xDEADBEEF, 42], np.uint32)
POSITIVE = Uniform((4,), "float32", 0.5, 3)
UNIT = Uniform((4,), "float32", 0.1, 0.9)
SIMPLEX = Values([0.2, 0.3, 0.5], "float32")
SHAPE = (3, 4)

USES = {
    **each("PRNGKey key", use(7).but(then=jax.random.key_data, dtype="uint32")),
    "fold_in": use(KEY, 5),
    "split": use(KEY, 3),
    "clone": use(KEY),
    "key_data": use(KEY),
    "wrap_key_data": use(KEY).but(then=jax.random.key_data),
    **each(
        "bernoulli bits cauchy exponential gumbel laplace logistic lognormal maxwell normal "
        "rademacher uniform",
        use(KEY, shape=SHAPE),
    ),
    **each("chisquare gamma loggamma pareto poisson rayleigh t wald", use(KEY, POSITIVE)),
    "ball": use(KEY, 3, shape=(2,)),
    **each("beta f", use(KEY, POSITIVE, POSITIVE)),
    "binomial": use(KEY, 9.0, UNIT),
    "categorical": use(KEY, POSITIVE, shape=(5,)),
    "choice": use(KEY, POSITIVE, (3,), replace=False),
    "dirichlet": use(KEY, POSITIVE),
    **each("double_sided_maxwell weibull_min", use(KEY, 1.0, POSITIVE, (4,))),
    "generalized_normal": use(KEY, 1.5, SHAPE),
    "geometric": use(KEY, UNIT),
    "multinomial": use(KEY, 9.0, SIMPLEX),
    "multivariate_normal": use(
        KEY, Values([1.0, -1], "float32"), Values([[2.0, 0.5], [0.5, 1]], "float32"), (3,)
    ),
    "orthogonal": use(KEY, 3).but(then=jnp.abs),
    "permutation": use(KEY, 7),
    "randint": use(KEY, SHAPE, -5, 5),
    "triangular": use(KEY, 0.0, 1.0, 3.0, SHAPE),
    "truncated_normal": use(KEY, -1.0, 2.0, SHAPE),
}


@family.builder
def random_numbers_and_keys() -> None:
    """Keys, and random numbers of each distribution of jax.random."""
    define_functions("jax.random", USES)
