"""tf.nn: activations, losses and normalization; patches of images."""

from harnesses.harness import Integers, Normal, Uniform
from harnesses.substrates import family
from harnesses.substrates.asking import FLOAT64, FLOATS, SHAPE, ask, ask_raises, normal, values

ONE = normal(SHAPE)
_ONES = ("float32", "float64", "bfloat16")


@family.builder
def activations() -> None:
    """Activations of floats and of integers, and with their options."""
    for op in (
        "relu", "relu6", "elu", "selu", "leaky_relu", "gelu", "silu", "swish", "crelu", "softplus",
        "softsign", "sigmoid", "tanh", "softmax", "log_softmax",
    ):  # fmt: skip
        ask(f"nn.{op}", ONE, dtypes=FLOATS)
    # Where the slope jumps its value is a convention.
    for op in ("relu", "relu6", "elu", "selu", "leaky_relu", "softsign"):
        ask(f"nn.{op}", values([0.0, 6.0, -1.0]), case="derivative_at_jumps", dtypes=FLOAT64)
    for op in ("math.softmax", "math.log_softmax"):
        ask(op, ONE, axis=0, dtypes=FLOATS)
    ask("nn.relu", ONE, case="integers", dtypes=("int32", "int8", "int64"))
    ask("nn.relu6", ONE, case="integers", dtypes=("int32",))
    ask("nn.gelu", ONE, case="approximate", approximate=True, dtypes=FLOAT64)
    ask("nn.leaky_relu", ONE, case="slope", alpha=0.5, dtypes=FLOAT64)
    ask("nn.crelu", ONE, case="axis", axis=0, dtypes=FLOAT64)


@family.builder
def norms_and_normalizations() -> None:
    """Norms, moments, biases, and batch normalization."""
    ask("nn.l2_normalize", ONE, axis=1, dtypes=FLOAT64)
    ask("nn.l2_loss", ONE, dtypes=FLOAT64)
    ask("nn.moments", ONE, axes=[0], dtypes=FLOAT64)
    ask("nn.moments", ONE, case="kept", axes=[0, 1], keepdims=True, dtypes=FLOAT64)
    ask("nn.bias_add", normal((2, 3, 4), (4,)), dtypes=_ONES)
    ask("nn.bias_add", normal((2, 3, 4), (3,)), case="second", data_format="NCW", dtypes=_ONES)
    ask("nn.batch_normalization",
        lambda d: [Normal(SHAPE, d), Normal((4,), d), Uniform((4,), d, 0.5, 2), Normal((4,), d),
                   Normal((4,), d)],
        lambda tf, x, m, v, o, s: tf.nn.batch_normalization(x, m, v, o, s, 1e-3),
        dtypes=FLOAT64)  # fmt: skip
    ask("nn.batch_normalization",
        lambda d: [Normal(SHAPE, d), Normal((4,), d), Uniform((4,), d, 0.5, 2)],
        lambda tf, x, m, v: tf.nn.batch_normalization(x, m, v, None, None, 1e-3), case="bare",
        dtypes=FLOAT64)  # fmt: skip


@family.builder
def cross_entropies() -> None:
    """Cross entropies of logits: softmax, sparse softmax and sigmoid."""
    ask("nn.softmax_cross_entropy_with_logits", ONE,
        lambda tf, x: tf.nn.softmax_cross_entropy_with_logits(
            tf.constant([[1.0, 0, 0, 0], [0, 0, 0.5, 0.5], [0, 1, 0, 0]], x.dtype), x),
        dtypes=FLOAT64)  # fmt: skip
    ask("nn.softmax_cross_entropy_with_logits", lambda d: [Uniform(SHAPE, d), Normal(SHAPE, d)],
        case="labels", dtypes=FLOAT64)  # fmt: skip
    ask("nn.sparse_softmax_cross_entropy_with_logits",
        lambda d: [Integers((3,), "int32", 0, 4), Normal(SHAPE, d)], dtypes=FLOAT64)  # fmt: skip
    ask("nn.sigmoid_cross_entropy_with_logits", lambda d: [Uniform(SHAPE, d), Normal(SHAPE, d)],
        dtypes=FLOAT64)  # fmt: skip


IMAGES = normal((2, 5, 6, 3))
_PATCHES = {"sizes": [1, 2, 3, 1], "strides": [1, 1, 2, 1], "rates": [1, 1, 1, 1]}


@family.builder
def patches_of_images() -> None:
    """Patches of images, with and without padding and holes."""
    for padding in ("VALID", "SAME"):
        ask("image.extract_patches", IMAGES, case=padding.lower(), padding=padding, dtypes=_ONES,
            **_PATCHES)  # fmt: skip
        ask("image.extract_patches", IMAGES, case=f"{padding.lower()}_with_holes", padding=padding,
            dtypes=FLOAT64, **{**_PATCHES, "rates": [1, 2, 2, 1]})  # fmt: skip


@family.builder
def refused_patches() -> None:
    """Sizes, strides and padding of patches that TensorFlow refuses."""
    for case, wrong in {
        "padding": {"padding": "FULL"},
        "sizes": {"sizes": [2, 3]},
        "depth": {"sizes": [1, 2, 3, 3]},
        "too_large": {"sizes": [1, 7, 7, 1]},
        "no_stride": {"strides": [1, 0, 1, 1]},
    }.items():
        ask_raises(
            "image.extract_patches", case,
            lambda tf, wrong=wrong: tf.image.extract_patches(
                tf.ones([1, 5, 6, 3]), **{**_PATCHES, "padding": "VALID", **wrong}),
        )  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with dtypes or shapes that do not fit."""
    for op in ("elu", "gelu", "softmax", "selu", "log_softmax"):
        ask_raises(f"nn.{op}", "integers", lambda tf, op=op: getattr(tf.nn, op)(tf.constant([1])))
    for op, case, program in (
        ("nn.sigmoid_cross_entropy_with_logits", "shapes",
         lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(tf.ones([1]), tf.ones([2]))),
        ("nn.sparse_softmax_cross_entropy_with_logits", "rank",
         lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
             tf.constant(1), tf.ones([2, 2]))),
        ("nn.bias_add", "size", lambda tf: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([2]))),
        ("nn.bias_add", "rank", lambda tf: tf.nn.bias_add(tf.ones([3]), tf.ones([3]))),
    ):  # fmt: skip
        ask_raises(op, case, program)
