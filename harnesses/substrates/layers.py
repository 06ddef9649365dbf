"""tf.nn: convolutions, pooling, dropout, lookups and losses of layers."""

from harnesses.harness import Integers, Normal, Uniform
from harnesses.harness.arguments import Arg
from harnesses.substrates import family
from harnesses.substrates.asking import (
    FLOAT64,
    FLOATS,
    NO_DERIVATIVES,
    SHAPE,
    ask,
    ask_raises,
    normal,
)

_IMAGES, _KERNEL = (2, 6, 7, 4), (3, 3, 4, 6)
_PADS = [[0, 0], [1, 2], [2, 0], [0, 0]]
# Sums of many products, of which each program takes another order.
_SUMS = {"float32": 256, "float64": 256, "bfloat16": 4, "float16": 16, "int32": 0}
_WHOLE = {"ulps": _SUMS, "scale": "array"}


@family.builder
def convolutions() -> None:
    """Convolutions with each padding, stride, hole, group, layout and number of axes."""
    both = normal(_IMAGES, _KERNEL)
    for padding, case in (("SAME", "same"), ("VALID", "valid"), (_PADS, "padded")):
        ask("nn.conv2d", both, case=case, strides=2, padding=padding, dtypes=FLOATS, **_WHOLE)
        # Of which TensorFlow has a derivative on a CPU for some dtypes and paddings alone.
        ask("nn.conv2d", both, case=f"{case}_holes", strides=1, padding=padding, dilations=2,
            tags=("not_grad",), dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv2d", both, case="holes", strides=1, padding="SAME", dilations=2, **_WHOLE)
    ask("nn.conv2d", both, case="uneven", strides=[1, 2, 3, 1], padding="SAME", dtypes=FLOAT64,
        **_WHOLE)  # fmt: skip
    ask("nn.conv2d", lambda d: [Integers(_IMAGES, d, -9, 9), Integers(_KERNEL, d, -9, 9)],
        case="integers", strides=1, padding="SAME", dtypes=("int32",), **_WHOLE)  # fmt: skip
    ask("nn.conv2d", normal(_IMAGES, (3, 3, 2, 6)), case="groups", strides=1, padding="SAME",
        tags=NO_DERIVATIVES, dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv2d", normal((2, 3, 6, 7, 4), _KERNEL), case="batches", strides=1, padding="SAME",
        dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv1d", normal((2, 7, 4), (3, 4, 5)), stride=2, padding="SAME", dtypes=FLOATS,
        **_WHOLE)  # fmt: skip
    ask("nn.conv1d", normal((2, 7, 4), (3, 4, 5)), case="holes", stride=1, padding="VALID",
        dilations=2, **_WHOLE)  # fmt: skip
    ask("nn.conv3d", normal((1, 5, 6, 7, 2), (2, 3, 3, 2, 4)), strides=[1, 1, 2, 2, 1],
        padding="SAME", dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.convolution", both, strides=2, padding="SAME", dtypes=FLOAT64, **_WHOLE)
    ask("nn.convolution", both, case="holes", dilations=2, dtypes=FLOAT64, **_WHOLE)
    ask("nn.atrous_conv2d", both, rate=2, padding="SAME", dtypes=FLOAT64, **_WHOLE)
    depthwise = normal(_IMAGES, (3, 3, 4, 2))
    ask("nn.depthwise_conv2d", depthwise, strides=[1, 2, 2, 1], padding="SAME", dtypes=FLOATS,
        **_WHOLE)  # fmt: skip
    ask("nn.depthwise_conv2d", depthwise, case="holes", strides=[1, 1, 1, 1], padding="VALID",
        dilations=[2, 2], dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.separable_conv2d", normal(_IMAGES, (3, 3, 4, 2), (1, 1, 8, 5)), strides=[1, 1, 1, 1],
        padding="SAME", dtypes=FLOAT64, **_WHOLE)  # fmt: skip


@family.builder
def transposed_convolutions() -> None:
    """Transposed convolutions with kernels smaller and larger than their strides."""
    for stride in (1, 2, 3):
        for padding in ("SAME", "VALID"):
            for size in (1, 2, 4):
                small = -(-8 // stride) if padding == "SAME" else (8 - size) // stride + 1
                ask("nn.conv2d_transpose", normal((2, small, small, 5), (size, size, 3, 5)),
                    case=f"{padding.lower()}_{stride}_{size}", output_shape=[2, 8, 8, 3],
                    strides=stride, padding=padding, dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    square = normal((1, 4, 4, 4), (3, 3, 3, 4))
    ask("nn.conv2d_transpose", square, case="padded", output_shape=[1, 8, 8, 3], strides=2,
        padding=[[0, 0], [1, 0], [1, 0], [0, 0]], dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv2d_transpose", square, case="holes", output_shape=[1, 4, 4, 3], strides=1,
        dilations=2, **_WHOLE)  # fmt: skip
    ask("nn.conv_transpose", square, output_shape=[1, 8, 8, 3], strides=2, dtypes=FLOAT64,
        **_WHOLE)  # fmt: skip
    ask("nn.atrous_conv2d_transpose", square, output_shape=[1, 4, 4, 3], rate=2, padding="SAME",
        dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv1d_transpose", normal((1, 4, 4), (3, 3, 4)), output_shape=[1, 8, 3], strides=2,
        dtypes=FLOAT64, **_WHOLE)  # fmt: skip
    ask("nn.conv3d_transpose", normal((1, 3, 3, 3, 2), (3, 3, 3, 3, 2)),
        output_shape=[1, 6, 6, 6, 3], strides=[1, 2, 2, 2, 1], dtypes=FLOAT64,
        **_WHOLE)  # fmt: skip


@family.builder
def pooling() -> None:
    """The largest and the mean of windows, with each padding, stride and number of axes."""
    for kind in ("max", "avg"):
        for padding in ("SAME", "VALID"):
            for size, stride in ((2, 2), (3, 2), ([1, 3, 2, 1], 1)):
                name = size if isinstance(size, int) else "uneven"
                ask(f"nn.{kind}_pool2d", normal(_IMAGES), case=f"{padding.lower()}_{name}",
                    ksize=size, strides=stride, padding=padding, dtypes=FLOATS)  # fmt: skip
        ask(f"nn.{kind}_pool1d", normal((2, 7, 3)), ksize=2, strides=1, padding="VALID",
            dtypes=FLOAT64)  # fmt: skip
        ask(f"nn.{kind}_pool", normal((2, 7, 3)), ksize=3, strides=2, padding="SAME",
            dtypes=FLOAT64)  # fmt: skip
        ask(f"nn.{kind}_pool3d", normal((1, 4, 5, 6, 2)), ksize=2, strides=2, padding="SAME")
        ask("nn.pool", normal(_IMAGES), case=kind, window_shape=[2, 3], pooling_type=kind.upper(),
            strides=[2, 2], padding="SAME", dtypes=FLOAT64)  # fmt: skip
        ask("nn.pool", normal(_IMAGES), case=f"{kind}_holes", window_shape=[2, 2],
            pooling_type=kind.upper(), dilations=[2, 2], dtypes=FLOAT64)  # fmt: skip
    ask("nn.max_pool2d", lambda d: [Integers(_IMAGES, d, -9, 9)], case="integers", ksize=2,
        strides=2, padding="SAME", dtypes=("int32",))  # fmt: skip
    ask("nn.max_pool2d", normal(_IMAGES), case="padded", ksize=3, strides=2, padding=_PADS,
        dtypes=FLOAT64)  # fmt: skip
    ask("nn.max_pool2d", normal(_IMAGES), case="channels", ksize=[1, 1, 1, 2],
        strides=[1, 1, 1, 2], padding="SAME", tags=NO_DERIVATIVES, dtypes=FLOAT64)  # fmt: skip


def _table_and_rows(dtype: str) -> list[Arg]:
    return [Normal((5, 4), dtype), Integers((2, 3), "int32", 0, 5)]


@family.builder
def lookups_and_dropout() -> None:
    """Rows of tables, blocks of pixels, and elements dropped by a seed."""
    ask("nn.embedding_lookup", _table_and_rows, dtypes=FLOATS)
    ask("nn.embedding_lookup", _table_and_rows, case="clipped", max_norm=1.0, dtypes=FLOAT64)
    ask("nn.embedding_lookup", _table_and_rows,
        lambda tf, table, rows: tf.nn.embedding_lookup([table, table * 2], rows),
        case="tables", dtypes=FLOAT64)  # fmt: skip
    for dtype in FLOATS:
        ask("nn.experimental.stateless_dropout", normal(SHAPE),
            lambda tf, x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]),
            dtypes=(dtype,), tags=("not_vmap",))  # fmt: skip
    ask("nn.experimental.stateless_dropout", normal(SHAPE),
        lambda tf, x: tf.nn.experimental.stateless_dropout(x, 0.3, [1, 2], noise_shape=[3, 1]),
        case="rows", dtypes=FLOAT64, tags=("not_vmap",))  # fmt: skip
    ask("nn.space_to_depth", normal((2, 4, 6, 3)), block_size=2, dtypes=("float32", "int32"))
    ask("nn.depth_to_space", normal((2, 2, 3, 8)), block_size=2, dtypes=("float32", "int32"))


@family.builder
def losses_and_statistics() -> None:
    """Losses of logits and rates; moments with weights; norms of responses and of gradients."""
    weighted = [lambda d: [Uniform(SHAPE, d), Normal(SHAPE, d)]]
    ask("nn.weighted_cross_entropy_with_logits", weighted[0], pos_weight=2.0, dtypes=FLOATS)
    for full in (False, True):
        ask("nn.log_poisson_loss", lambda d: [Uniform(SHAPE, d, 0.25, 4), Normal(SHAPE, d)],
            case="full" if full else "", compute_full_loss=full, dtypes=FLOAT64)  # fmt: skip
    ask("nn.weighted_moments", lambda d: [Normal(SHAPE, d), Uniform(SHAPE, d, 0.5, 2)],
        lambda tf, x, w: tf.nn.weighted_moments(x, [0], w), dtypes=FLOAT64)  # fmt: skip
    ask("nn.weighted_moments", lambda d: [Normal(SHAPE, d), Uniform((3, 1), d, 0.5, 2)],
        lambda tf, x, w: tf.nn.weighted_moments(x, [0, 1], w, keepdims=True), case="kept",
        dtypes=FLOAT64, ulps={"float32": 128, "float64": 128})  # fmt: skip
    ask("nn.sufficient_statistics", normal(SHAPE),
        lambda tf, x: tf.nn.sufficient_statistics(x, [0])[:3], dtypes=FLOAT64)  # fmt: skip
    ask("nn.normalize_moments", lambda d: [Normal(SHAPE, d), Uniform(SHAPE, d, 9, 12)],
        lambda tf, m, v: tf.nn.normalize_moments(tf.constant(3, m.dtype), m, v, None),
        dtypes=FLOAT64)  # fmt: skip
    ask("nn.batch_norm_with_global_normalization",
        lambda d: [Normal((1, 1, 3, 4), d), Normal((4,), d), Uniform((4,), d, 0.5, 2),
                   Normal((4,), d), Normal((4,), d)],
        lambda tf, *args: tf.nn.batch_norm_with_global_normalization(*args, 1e-3, True),
        dtypes=FLOAT64)  # fmt: skip
    for op in ("nn.lrn", "nn.local_response_normalization"):
        ask(op, normal((2, 2, 3, 7)), depth_radius=2, bias=0.5, alpha=0.1, beta=0.75,
            ulps={"float32": 64, "bfloat16": 3})  # fmt: skip
    for op in ("nn.zero_fraction", "math.zero_fraction"):
        ask(op, lambda d: [Integers(SHAPE, d, 0, 3)], dtypes=("float32", "int32", "float64"),
            tags=NO_DERIVATIVES)  # fmt: skip
    ask("clip_by_global_norm", normal(SHAPE, (4,)),
        lambda tf, x, y: tf.clip_by_global_norm([x, y], 1.0), dtypes=FLOAT64)  # fmt: skip
    ask("clip_by_global_norm", normal(SHAPE, (4,)),
        lambda tf, x, y: tf.clip_by_global_norm([x, y], 100.0), case="below",
        dtypes=FLOAT64)  # fmt: skip


_REFUSED = (
    ("nn.conv2d", "word", lambda tf, x, k: tf.nn.conv2d(x, k, 1, "FULL")),
    ("nn.conv2d", "depth", lambda tf, x, k: tf.nn.conv2d(x, k[:, :, :3], 1, "SAME")),
    ("nn.conv2d", "groups", lambda tf, x, k: tf.nn.conv2d(x, k[:, :, :2, :5], 1, "SAME")),
    ("nn.conv2d", "kernel", lambda tf, x, k: tf.nn.conv2d(x, k[0], 1, "SAME")),
    ("nn.conv2d", "strides", lambda tf, x, k: tf.nn.conv2d(x, k, [1, 2, 3], "SAME")),
    ("nn.conv2d", "batches", lambda tf, x, k: tf.nn.conv2d(x, k, [2, 1, 1, 1], "SAME")),
    ("nn.conv2d", "stride", lambda tf, x, k: tf.nn.conv2d(x, k, 0, "SAME")),
    ("nn.conv2d", "too_large", lambda tf, x, k: tf.nn.conv2d(x, k, 1, "VALID", dilations=5)),
    ("nn.conv2d", "int64", lambda tf, x, k:
        tf.nn.conv2d(tf.cast(x, tf.int64), tf.cast(k, tf.int64), 1, "SAME")),
    ("nn.conv2d", "pairs", lambda tf, x, k: tf.nn.conv2d(x, k, 1, [[1, 2], [2, 0]])),
    ("nn.conv2d", "dtypes", lambda tf, x, k: tf.nn.conv2d(x, tf.cast(k, tf.float64), 1, "SAME")),
    ("nn.convolution", "both", lambda tf, x, k:
        tf.nn.convolution(x, k, dilations=2, strides=2)),
    ("nn.conv3d", "strides", lambda tf, x, k: tf.nn.conv3d(x[None], k[None], 2, "SAME")),
    ("nn.depthwise_conv2d", "strides", lambda tf, x, k:
        tf.nn.depthwise_conv2d(x, k, 1, "SAME")),
    ("nn.depthwise_conv2d", "depth", lambda tf, x, k:
        tf.nn.depthwise_conv2d(x, k[:, :, :3], [1, 1, 1, 1], "SAME")),
    ("nn.max_pool2d", "window", lambda tf, x, k: tf.nn.max_pool2d(x, [2, 2, 2], 2, "SAME")),
    ("nn.max_pool2d", "depth", lambda tf, x, k:
        tf.nn.max_pool2d(x, [1, 2, 2, 2], [1, 1, 1, 2], "SAME")),
    ("nn.max_pool2d", "padding", lambda tf, x, k:
        tf.nn.max_pool2d(x, 2, 2, [[0, 0], [3, 1], [1, 1], [0, 0]])),
    ("nn.max_pool2d", "stride", lambda tf, x, k: tf.nn.max_pool2d(x, 2, 0, "SAME")),
    ("nn.max_pool2d", "nothing", lambda tf, x, k: tf.nn.max_pool2d(x, 0, 1, "SAME")),
    ("nn.max_pool2d", "rank", lambda tf, x, k: tf.nn.max_pool2d(x[0], 2, 1, "SAME")),
    ("nn.avg_pool2d", "pairs", lambda tf, x, k: tf.nn.avg_pool2d(x, 2, 2, _PADS)),
    ("nn.avg_pool2d", "integers", lambda tf, x, k:
        tf.nn.avg_pool2d(tf.cast(x, tf.int32), 2, 2, "SAME")),
    ("nn.pool", "kind", lambda tf, x, k: tf.nn.pool(x, [2, 2], "SUM")),
    ("nn.pool", "same_holes", lambda tf, x, k:
        tf.nn.pool(x, [2, 2], "MAX", dilations=[2, 2], padding="SAME")),
    ("nn.lrn", "rank", lambda tf, x, k: tf.nn.lrn(x[0])),
    ("nn.embedding_lookup", "row", lambda tf, x, k: tf.nn.embedding_lookup(x, [7])),
    ("nn.experimental.stateless_dropout", "rate", lambda tf, x, k:
        tf.nn.experimental.stateless_dropout(x, 1.0, [1, 2])),
    ("nn.space_to_depth", "block", lambda tf, x, k: tf.nn.space_to_depth(x, 4)),
    ("nn.depth_to_space", "block", lambda tf, x, k: tf.nn.depth_to_space(x, 3)),
    ("nn.log_poisson_loss", "shapes", lambda tf, x, k: tf.nn.log_poisson_loss(x[:1], x)),
    ("nn.weighted_cross_entropy_with_logits", "shapes", lambda tf, x, k:
        tf.nn.weighted_cross_entropy_with_logits(x[:1], x, 2.0)),
    ("clip_by_global_norm", "no_list", lambda tf, x, k: tf.clip_by_global_norm(x, 1.0)),
)  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with dtypes, shapes, words or lists that do not fit."""
    for op, case, program in _REFUSED:
        ask_raises(
            op, case, lambda tf, program=program: program(tf, tf.ones(_IMAGES), tf.ones(_KERNEL))
        )
