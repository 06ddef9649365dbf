"""tf.nn: activations, losses, convolutions, pooling, normalization."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import FLOATS, ask, indices, normal
from harnesses.harness import Normal

_ULPS = {"float32": 128, "float64": 128, "bfloat16": 8}
_X = normal((3, 4))


@family.builder
def activations() -> None:
    """Activations, and dropout."""
    for name in ("relu", "relu6", "elu", "selu", "gelu", "crelu", "leaky_relu", "silu", "swish",
                 "softmax", "log_softmax", "softplus", "softsign", "sigmoid", "tanh",
                 "l2_loss"):  # fmt: skip
        ask(f"tf.nn.{name}", getattr(tf.nn, name), _X, dtypes=FLOATS, ulps=_ULPS)
    ask(
        "tf.nn.gelu",
        lambda x: tf.nn.gelu(x, approximate=True),
        _X,
        case="approximate",
        dtypes=FLOATS,
    )
    ask("tf.nn.dropout", lambda x: tf.nn.dropout(x, 0.0), _X)
    ask("tf.nn.experimental.stateless_dropout",
        lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]), _X)  # fmt: skip


@family.builder
def normalizations() -> None:
    """Biases, moments and normalizations."""
    ask("tf.nn.bias_add", tf.nn.bias_add, normal((2, 3, 4), (4,)), dtypes=FLOATS)
    ask("tf.nn.moments", lambda x: tf.nn.moments(x, [0]), _X)
    ask("tf.nn.weighted_moments", lambda x: tf.nn.weighted_moments(x, [0], tf.ones_like(x)), _X)
    ask("tf.nn.normalize_moments",
        lambda x: tf.nn.normalize_moments(4.0, x[0], tf.abs(x[1]) + 9, None), _X)  # fmt: skip
    ask("tf.nn.sufficient_statistics", lambda x: tf.nn.sufficient_statistics(x, [0])[1:3], _X)
    ask("tf.nn.batch_normalization",
        lambda x: tf.nn.batch_normalization(x, x[0], x[1] ** 2 + 1, x[2], x[0], 1e-3),
        _X)  # fmt: skip
    ask(
        "tf.nn.local_response_normalization",
        tf.nn.local_response_normalization,
        normal((1, 2, 2, 5)),
    )
    ask("tf.nn.l2_normalize", lambda x: tf.nn.l2_normalize(x, 1), _X)


@family.builder
def losses() -> None:
    """Losses, and the rows of an embedding."""
    ask("tf.nn.softmax_cross_entropy_with_logits",
        lambda y, x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(y), x),
        normal((3, 4), (3, 4)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.sparse_softmax_cross_entropy_with_logits",
        lambda i, x: tf.nn.sparse_softmax_cross_entropy_with_logits(i, x),
        [indices(0, 3, 1), Normal((3, 4), "float32")], ulps=_ULPS)  # fmt: skip
    ask("tf.nn.sigmoid_cross_entropy_with_logits",
        lambda y, x: tf.nn.sigmoid_cross_entropy_with_logits(y, x), normal((3, 4), (3, 4)),
        ulps=_ULPS)  # fmt: skip
    ask("tf.nn.weighted_cross_entropy_with_logits",
        lambda y, x: tf.nn.weighted_cross_entropy_with_logits(y, x, 2.0), normal((3, 4), (3, 4)),
        ulps=_ULPS)  # fmt: skip
    ask("tf.nn.log_poisson_loss", lambda y, x: tf.nn.log_poisson_loss(y, x), normal((3, 4), (3, 4)))
    ask("tf.nn.ctc_loss",
        lambda x: tf.nn.ctc_loss(tf.constant([[1, 2]]), x, tf.constant([2]), tf.constant([4]),
                                 logits_time_major=False, blank_index=0),
        normal((1, 4, 3)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.embedding_lookup", tf.nn.embedding_lookup,
        [Normal((5, 4), "float32"), indices(0, 3, 0)])  # fmt: skip


_IMAGE, _FILTER = (2, 5, 6, 3), (2, 3, 3, 4)


@family.builder
def images_convolved_and_pooled() -> None:
    """Convolutions and pooling of images, with either padding."""
    for padding in ("SAME", "VALID"):
        ask("tf.nn.conv2d", lambda x, w, p=padding: tf.nn.conv2d(x, w, 1, p),
            normal(_IMAGE, _FILTER), case=padding.lower(), ulps=_ULPS)  # fmt: skip
        ask("tf.nn.max_pool2d", lambda x, p=padding: tf.nn.max_pool2d(x, 2, 2, p), normal(_IMAGE),
            case=padding.lower())  # fmt: skip
        ask("tf.nn.avg_pool2d", lambda x, p=padding: tf.nn.avg_pool2d(x, 2, 2, p), normal(_IMAGE),
            case=padding.lower())  # fmt: skip
    ask("tf.nn.conv2d", lambda x, w: tf.nn.conv2d(x, w, 2, "SAME"), normal(_IMAGE, _FILTER),
        case="strided", ulps=_ULPS)  # fmt: skip


@family.builder
def convolutions() -> None:
    """Convolutions of other ranks, transposed, dilated, depthwise."""
    ask("tf.nn.atrous_conv2d", lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"),
        normal((2, 8, 8, 3), _FILTER), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.conv2d_transpose", lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 10, 12, 4], 2),
        normal((2, 5, 6, 3), (2, 3, 4, 3)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.conv1d", lambda x, w: tf.nn.conv1d(x, w, 1, "SAME"), normal((2, 6, 3), (3, 3, 4)),
        ulps=_ULPS)  # fmt: skip
    ask("tf.nn.conv1d_transpose", lambda x, w: tf.nn.conv1d_transpose(x, w, [2, 12, 4], 2),
        normal((2, 6, 3), (3, 4, 3)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.conv3d", lambda x, w: tf.nn.conv3d(x, w, [1] * 5, "SAME"),
        normal((1, 3, 4, 4, 2), (2, 2, 2, 2, 3)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.conv3d_transpose",
        lambda x, w: tf.nn.conv3d_transpose(x, w, [1, 6, 8, 8, 3], 2),
        normal((1, 3, 4, 4, 2), (2, 2, 2, 3, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.depthwise_conv2d", lambda x, w: tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME"),
        normal(_IMAGE, (2, 2, 3, 2)), ulps=_ULPS)  # fmt: skip
    ask("tf.nn.separable_conv2d",
        lambda x, w, p: tf.nn.separable_conv2d(x, w, p, [1] * 4, "SAME"),
        normal(_IMAGE, (2, 2, 3, 2), (1, 1, 6, 4)), ulps=_ULPS)  # fmt: skip
    ask(
        "tf.nn.convolution",
        lambda x, w: tf.nn.convolution(x, w),
        normal(_IMAGE, _FILTER),
        ulps=_ULPS,
    )


@family.builder
def morphology() -> None:
    """Dilation and erosion of images."""
    ask("tf.nn.dilation2d",
        lambda x, w: tf.nn.dilation2d(x, w, [1] * 4, "SAME", "NHWC", [1] * 4),
        normal(_IMAGE, (2, 2, 3)))  # fmt: skip
    ask("tf.nn.erosion2d",
        lambda x, w: tf.nn.erosion2d(x, w, [1] * 4, "SAME", "NHWC", [1] * 4),
        normal(_IMAGE, (2, 2, 3)))  # fmt: skip


@family.builder
def pooling() -> None:
    """Pooling of other ranks, fractional pooling, and the largest with their places."""
    ask("tf.nn.max_pool1d", lambda x: tf.nn.max_pool1d(x, 2, 2, "SAME"), normal((2, 6, 3)))
    ask("tf.nn.max_pool3d", lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), normal((1, 4, 4, 4, 2)))
    ask("tf.nn.avg_pool1d", lambda x: tf.nn.avg_pool1d(x, 2, 2, "SAME"), normal((2, 6, 3)))
    ask("tf.nn.avg_pool3d", lambda x: tf.nn.avg_pool3d(x, 2, 2, "SAME"), normal((1, 4, 4, 4, 2)))
    ask("tf.nn.max_pool_with_argmax", lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0],
        normal(_IMAGE))  # fmt: skip
    ask("tf.nn.fractional_max_pool", lambda x: tf.nn.fractional_max_pool(x, 1.4, seed=1)[0],
        normal(_IMAGE))  # fmt: skip


@family.builder
def space_and_depth() -> None:
    """Blocks of an image moved into the channels and back, or into the batch."""
    ask("tf.nn.depth_to_space", lambda x: tf.nn.depth_to_space(x, 2), normal((1, 2, 2, 8)))
    ask("tf.nn.space_to_depth", lambda x: tf.nn.space_to_depth(x, 2), normal((1, 4, 4, 2)))
    ask("tf.nn.with_space_to_batch",
        lambda x: tf.nn.with_space_to_batch(x, [2, 2], "SAME",
            lambda y, num_spatial_dims, padding: y * 2, [1, 1]), normal((1, 4, 4, 2)))  # fmt: skip


@family.builder
def general_pooling() -> None:
    """Pooling of any rank and kind; and isotonic regression, which pools its input too."""
    ask("tf.nn.pool", lambda x: tf.nn.pool(x, [2, 2], "MAX", padding="SAME"), normal(_IMAGE))
    ask("tf.nn.isotonic_regression", lambda x: tf.nn.isotonic_regression(x)[0], _X)
