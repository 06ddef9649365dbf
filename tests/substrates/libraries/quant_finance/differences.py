"""What of tf-quant-finance's programs is not equal to TensorFlow's, and why."""

from __future__ import annotations

from tests.substrates.libraries.differences import NO_DERIVATIVES, Difference
from tests.substrates.libraries.programs import JAX, JIT, VMAP

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
        "TensorFlow's own result moves by 1e-4 where its arguments move in their last place: after"
        " five steps a minimisation has not ended",
        (JAX,),
        "^differs by [1-5]\\.[0-9]e-04",
        ("models.hull_white.calibration_from_swaptions",),
    ),
    Difference(
        "XLA's power of float32 differs in its last place from TensorFlow's and NumPy's, where it"
        " is not computed of constants by NumPy as under jax.jit",
        (JAX,),
        "^differs by 6.0e-08",
        ("math.random.halton.sample",),
    ),
]
