"""jax.scipy.special."""

import numpy as np

from harnesses.functions import family
from harnesses.harness import Normal, Uniform, Values, define_functions, each, use

REAL = Values([-2.0, -0.5, 0.0, 0.3, 1.7, 5.0], "float32")
POSITIVE = Values([0.2, 0.5, 1.0, 1.5, 4.0, 7.5], "float32")
UNIT = Values([0.05, 0.2, 0.4, 0.5, 0.8, 0.95], "float32")
OTHER = Uniform((6,), "float32", 0.3, 3)

USES = {
    **each(
        "dawsn erf erfc erfcx expit fresnel gammasgn i0 i0e i1 i1e log_ndtr log_softmax "
        "logsumexp ndtr sici softmax",
        use(REAL),
    ),
    **each("digamma entr exp1 expi factorial gamma gammaln loggamma spence", use(POSITIVE)),
    **each("erfinv logit ndtri", use(UNIT)),
    "erfcinv": use(UNIT).but(jax_versions=">=0.12"),
    **each(
        "beta betaln boxcox boxcox1p comb gammainc gammaincc kl_div owens_t poch rel_entr "
        "xlog1py xlogy",
        use(POSITIVE, OTHER),
    ),
    "bernoulli": use(8),
    "bessel_jn": use(POSITIVE, v=3),
    "betainc": use(POSITIVE, OTHER, UNIT),
    "expn": use(3, POSITIVE),
    "hyp1f1": use(POSITIVE, OTHER, REAL),
    "hyp2f1": use(OTHER, UNIT, POSITIVE, Values([-0.5, 0.1, 0.3, 0.5, 0.7, -0.9], "float32")),
    "multigammaln": use(Uniform((6,), "float32", 2, 6), 3),
    "polygamma": use(2, POSITIVE),
    "sph_harm_y": use(
        Values([2, 3], "int32"),
        Values([1, -2], "int32"),
        Values([0.3, 1.2], "float32"),
        Values([0.7, 2.2], "float32"),
        n_max=4,
    ).but(dtype=np.float32),
    "wofz": use(Normal((6,), "complex64")),
    "zeta": use(Values([1.5, 2, 3, 4.5, 6, 7], "float32"), OTHER),
}


@family.builder
def special_functions() -> None:
    """Functions of jax.scipy.special."""
    define_functions(
        "jax.scipy.special",
        USES,
        ulps={
            "betainc": 9,
            "betaln": 7,
            "comb": 19,
            "expn": 10,
            "factorial": 17,
            "gamma": 28,
            "i1e": 9,
            "multigammaln": 8,
            "poch": 10,
            "polygamma": 10,
        },
    )
