"""jax.scipy.stats: distributions, and the functions beside them."""

import numpy as np

from harnesses.functions import family
from harnesses.harness import Integers, Normal, Uniform, Values, define_functions, use

REAL = Values([-2.0, -0.5, 0.0, 0.3, 1.7], "float32")
POSITIVE = Values([0.2, 0.5, 1.0, 1.5, 4.0], "float32")
PROBABILITY = Values([0.1, 0.3, 0.5, 0.8, 0.95], "float32")
COUNTS = Values([0, 1, 2, 3, 5], "int32")
SIMPLEX = Values([0.2, 0.3, 0.5], "float32")

_DENSITIES = ("logpdf", "pdf")
_MASSES = ("logpmf", "pmf")
_TAILS = ("cdf", "logcdf", "logsf", "sf")

# Of each distribution: the functions of a value, where values come from, and its parameters.
_DISTRIBUTIONS = {
    "bernoulli": (("cdf", *_MASSES), COUNTS, (0.3,)),
    "beta": ((*_DENSITIES, *_TAILS), PROBABILITY, (1.5, 2.5)),
    "betabinom": (_MASSES, COUNTS, (6, 1.5, 2.5)),
    "binom": (_MASSES, COUNTS, (6, 0.4)),
    "cauchy": ((*_DENSITIES, *_TAILS), REAL, (0.5, 2.0)),
    "chi2": ((*_DENSITIES, *_TAILS), POSITIVE, (3.0,)),
    "dirichlet": (_DENSITIES, SIMPLEX, (np.float32([1.5, 2, 3]),)),
    "expon": ((*_DENSITIES, *_TAILS), POSITIVE, (0.1, 2.0)),
    "gamma": ((*_DENSITIES, *_TAILS), POSITIVE, (2.5,)),
    "gennorm": (("cdf", *_DENSITIES), REAL, (1.5,)),
    "geom": (_MASSES, COUNTS, (0.4,)),
    "gumbel_l": ((*_DENSITIES, *_TAILS), REAL, (0.5, 2.0)),
    "gumbel_r": ((*_DENSITIES, *_TAILS), REAL, (0.5, 2.0)),
    "laplace": (("cdf", *_DENSITIES), REAL, (0.5, 2.0)),
    "logistic": (("cdf", "sf", *_DENSITIES), REAL, (0.5, 2.0)),
    "multinomial": (_MASSES, Values([1, 2, 3], "int32"), (6, SIMPLEX)),
    "multivariate_normal": (
        _DENSITIES,
        Normal((4, 2), "float32"),
        (np.float32([1, -1]), np.float32([[2, 0.5], [0.5, 1]])),
    ),
    "nbinom": (_MASSES, COUNTS, (4.0, 0.4)),
    "norm": ((*_DENSITIES, *_TAILS), REAL, (0.5, 2.0)),
    "pareto": ((*_DENSITIES, *_TAILS), POSITIVE, (2.5, -0.5)),
    "poisson": (("cdf", *_MASSES), COUNTS, (2.5,)),
    "t": (_DENSITIES, REAL, (3.0,)),
    "truncnorm": ((*_DENSITIES, *_TAILS), REAL, (-1.0, 2.0)),
    "uniform": (("cdf", *_DENSITIES), REAL, (-1.0, 2.0)),
    "vonmises": (_DENSITIES, REAL, (2.0,)),
    "wrapcauchy": (_DENSITIES, REAL, (0.5,)),
}
# Functions of a probability.
_QUANTILES = {
    "bernoulli": ("ppf",),
    **dict.fromkeys(("cauchy", "logistic", "norm"), ("isf", "ppf")),
    **dict.fromkeys(("expon", "gumbel_l", "gumbel_r", "pareto", "uniform"), ("ppf",)),
}

USES = {
    **{
        f"{name}.{function}": use(values, *parameters)
        for name, (functions, values, parameters) in _DISTRIBUTIONS.items()
        for function in functions
    },
    **{
        f"{name}.{function}": use(PROBABILITY, *_DISTRIBUTIONS[name][2])
        for name, functions in _QUANTILES.items()
        for function in functions
    },
    "poisson.entropy": use(POSITIVE),
    "gaussian_kde": use(Normal((8,), "float32")).but(then=lambda kde: kde(np.float32([0, 1]))),
    "mode": use(Integers((3, 5), "int32", 0, 3), axis=1),
    "rankdata": use(Integers((7,), "int32", 0, 4)),
    "sem": use(Uniform((3, 4), "float32")),
}


@family.builder
def distributions() -> None:
    """Each function of each distribution, and the functions of samples."""
    define_functions(
        "jax.scipy.stats",
        USES,
        ulps={
            "betabinom.pmf": 17,
            "binom.logpmf": 10,
            "binom.pmf": 25,
            "chi2.logsf": 7,
            "chi2.pdf": 8,
            "dirichlet.pdf": 8,
            "gennorm.pdf": 10,
            "multinomial.logpmf": 10,
            "multinomial.pmf": 23,
            "nbinom.logpmf": 10,
            "nbinom.pmf": 35,
            "poisson.pmf": 8,
        },
    )
