"""What of TensorFlow Probability's programs is not equal to TensorFlow's, and why."""

from __future__ import annotations

from tests.substrates.libraries.differences import NO_DERIVATIVES, NUMPY_PLACES, Difference
from tests.substrates.libraries.programs import FLOAT32, GRAD, JAX, JIT, VMAP

_COMPILED = (JIT, JIT + FLOAT32)
_UNKNOWN = r"^UnknownValueError: The number of|^UnknownValueError: A limit of tf\.range"

DIFFERENCES = [
    NO_DERIVATIVES,
    Difference(
        "how many terms there are depends on the values; XLA does not compile it on TensorFlow"
        " either",
        (*_COMPILED, GRAD, VMAP),
        _UNKNOWN,
        (
            "distributions.Bates",
            "distributions.Bates: cdf",
            "distributions.Bates: log_survival_function",
        ),
        compiled=True,
    ),
    Difference(
        "how many distinct samples there are depends on the values; XLA does not compile it on"
        " TensorFlow either",
        _COMPILED,
        _UNKNOWN,
        ("distributions.Empirical: entropy", "distributions.Empirical: mode"),
        compiled=True,
    ),
    Difference(
        "the logarithm of 1 less a sum that is 1 but for rounding, which the order of additions"
        " decides: -inf, NaN or some large number; TensorFlow's own result is another under XLA",
        _COMPILED,
        "^differs by (inf|nan)",
        ("distributions.OrderedLogistic: log_survival_function",),
        compiled=True,
    ),
    Difference(
        "the logarithm of 1 less a sum that is 1 but for rounding, which the order of additions"
        " decides: -inf, NaN or some large number",
        (NUMPY_PLACES[1], JIT + FLOAT32),
        "^differs by (inf|nan)",
        (
            "distributions.Categorical: log_survival_function",
            "distributions.OrderedLogistic: log_survival_function",
        ),
    ),
    Difference(
        "TensorFlow takes zeta(x, q) for constant in x; JAX has the derivative",
        (GRAD,),
        "^differs by",
        ("distributions.Zipf",),
    ),
    Difference(
        "divides int32 by int32 with an operator, which is JAX's own on JAX: float32",
        (JAX, JIT),
        r"^float32\(\), TensorFlow has float64\(\)",
        ("optimizer.proximal_hessian_sparse_one_step",),
    ),
    Difference(
        "fits variables, of which TensorFlow Probability has no builders in its JAX mode;"
        " TensorFlow refuses it inside tf.function too",
        (JIT,),
        "^AttributeError: .* has no attribute 'build_factored_surrogate_posterior'",
        ("sts.fit_with_hmc",),
        compiled=True,
    ),
]
