"""jax.nn, jax.nn.initializers and jax.image."""

import jax
import numpy as np

from harnesses.functions import family
from harnesses.harness import Integers, Normal, Uniform, Values, define_functions, each, use

X = Normal((3, 4), "float32")
HEADS = Normal((2, 5, 2, 4), "float32")
IMAGE = Normal((4, 5, 2), "float32")
KEY = Values([7, 11], np.uint32)

NN_USES = {
    **each(
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu "
        "soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish "
        "tanh",
        use(X),
    ),
    "dot_product_attention": use(HEADS, HEADS, HEADS, is_causal=True),
    "log1mexp": use(Uniform((3, 4), "float32", 0.1, 3)),
    "one_hot": use(Integers((5,), "int32", -1, 4), 4),
    "scaled_matmul": use(
        Normal((1, 4, 8), "float8_e4m3fn"),
        Normal((1, 3, 8), "float8_e4m3fn"),
        Values([[[1.0, 2], [2, 1], [4, 0.5], [1, 1]]], "float32"),
        Values([[[2.0, 1], [1, 1], [1, 4]]], "float32"),
    ),
}


@family.builder
def activations_and_attention() -> None:
    """Functions of jax.nn: activations, attention, scaled products."""
    define_functions("jax.nn", NN_USES)


# An initializer is a function of a key and a shape.
_MATRIX = use().but(then=lambda make: make(jax.random.key(3), (4, 5)))

INITIALIZER_USES = {
    **each(
        "glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform "
        "lecun_normal lecun_uniform normal orthogonal truncated_normal uniform "
        "xavier_normal xavier_uniform",
        _MATRIX,
    ),
    **each("ones zeros", use(KEY, (4, 5))),
    "constant": use(2.5).but(then=lambda make: make(jax.random.key(3), (4, 5))),
    "delta_orthogonal": use().but(then=lambda make: make(jax.random.key(3), (3, 3, 2, 4))),
    "variance_scaling": use(2.0, "fan_avg", "uniform").but(
        then=lambda make: make(jax.random.key(3), (4, 5))
    ),
}


@family.builder
def initializers() -> None:
    """Arrays that each initializer of jax.nn.initializers makes."""
    define_functions("jax.nn.initializers", INITIALIZER_USES, ulps={"orthogonal": 7})


@family.builder
def resized_images() -> None:
    """Images resized by each method, and scaled and translated."""
    define_functions(
        "jax.image",
        {
            "resize": [
                use(IMAGE, (7, 3, 2), method).but(case=method)
                for method in ("nearest", "linear", "cubic", "lanczos3")
            ],
            "scale_and_translate": use(
                IMAGE,
                (6, 6, 2),
                (0, 1),
                Values([1.5, 0.7], "float32"),
                Values([0.2, -0.4], "float32"),
                jax.image.ResizeMethod.LINEAR,
            ),
        },
    )
