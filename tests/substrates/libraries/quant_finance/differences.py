"""What of tf-quant-finance's programs is not equal to TensorFlow's, and why."""

from __future__ import annotations

from tests.substrates.libraries.differences import NO_DERIVATIVES, Difference
from tests.substrates.libraries.programs import GRAD, JIT, VMAP

DIFFERENCES = [
    NO_DERIVATIVES,
    Difference(
        "how many distinct times there are depends on the values; TensorFlow refuses it inside"
        " tf.function too",
        (JIT, VMAP),
        "^UnknownValueError: The number of values that tf.unique gives",
        ("models.hjm.bond_option_price",),
        compiled=True,
    ),
    Difference(
        "a tape is watching while tf.while_loop runs as long as a traced value says; XLA does not"
        " compile it on TensorFlow either",
        (JIT,),
        r"^NotImplementedError: tf\.GradientTape: tf\.while_loop uses a watched tensor",
        ("models.hjm.calibration_from_swaptions", "models.hull_white.calibration_from_swaptions"),
        compiled=True,
    ),
    Difference(
        "the body of its loop takes the parameters from around it, and tf.custom_gradient on JAX"
        " has the derivatives of its arguments alone",
        (GRAD,),
        "^UnexpectedTracerError",
        ("math.custom_loops.for_loop",),
    ),
]
