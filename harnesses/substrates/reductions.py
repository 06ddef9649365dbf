"""Reductions, scans, segments, order and counts of tf.math and of tf."""

from harnesses.harness import Normal, Uniform
from harnesses.substrates import family
from harnesses.substrates.asking import (
    BOOL,
    FLOAT64,
    FLOATS,
    NO_DERIVATIVES,
    REALS,
    SHAPE,
    WIDE,
    ask,
    ask_raises,
    between,
    call,
    indices,
    normal,
    values,
)

SUMS = (*FLOATS, "complex64", "complex128", "int32", "int64")


@family.builder
def reductions() -> None:
    """Reductions of numbers, over one axis and over several."""
    for op, dtypes in {
        "reduce_sum": SUMS,
        "reduce_mean": SUMS,
        "reduce_prod": SUMS,
        "reduce_max": REALS,
        "reduce_min": REALS,
        "reduce_logsumexp": FLOAT64,
        "reduce_std": WIDE,
        "reduce_variance": WIDE,
        "reduce_euclidean_norm": FLOAT64,
    }.items():
        for case, options in {
            "": {},
            "axis": {"axis": 1},
            "kept": {"axis": [0], "keepdims": True},
            "negative": {"axis": [-1, 0]},
        }.items():
            ask(f"math.{op}", normal(SHAPE), case=case, dtypes=dtypes if not case else FLOAT64,
                **options)  # fmt: skip


@family.builder
def reductions_to_bools_and_indices() -> None:
    """Reductions of bools, indices of extrema, and counts of what is not zero."""
    for op in ("reduce_all", "reduce_any"):
        for case, axis in (("", None), ("axis", 1)):
            ask(f"math.{op}", normal(SHAPE), case=case, dtypes=BOOL, axis=axis)
    for op in ("argmax", "argmin"):
        for axis in (0, -1):
            ask(f"math.{op}", normal(SHAPE), case=f"axis{axis}", axis=axis,
                dtypes=("float32", "float64", "bfloat16", "int32", "uint8"),
                tags=NO_DERIVATIVES)  # fmt: skip
    ask("math.argmax", normal(SHAPE), case="int32", output_type="int32", tags=NO_DERIVATIVES)
    ask("math.count_nonzero", normal(SHAPE), dtypes=("float32", "int32", "bool"), axis=1,
        tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def reductions_of_special_values() -> None:
    """Reductions of nothing, of zeros and of ties, and the norm of several tensors."""
    ask("math.reduce_sum", normal((0, 4)), case="empty", axis=0, dtypes=FLOAT64)
    ask("math.reduce_max", normal((0, 4)), case="empty", axis=0, dtypes=FLOAT64)
    ask("math.reduce_prod", values([0.0, 2.0, 0.0], [1.0, 0.0, 3.0]), lambda tf, x, y:
        [tf.reduce_prod(x), tf.reduce_prod(y)], case="zeros", dtypes=FLOAT64)  # fmt: skip
    ask("math.reduce_max", values([1.0, 3.0, 3.0, 2.0]), case="ties", dtypes=FLOAT64)
    ask("math.reduce_min", values([1.0, 1.0, 3.0, 1.0]), case="ties", dtypes=FLOAT64)
    ask("linalg.global_norm", normal(SHAPE, (2,)), lambda tf, x, y: tf.linalg.global_norm([x, y]),
        dtypes=FLOAT64)  # fmt: skip


@family.builder
def scans() -> None:
    """Cumulative sums, products and log-sum-exps."""
    for op, dtypes in {
        "cumsum": SUMS,
        "cumprod": SUMS,
        "cumulative_logsumexp": FLOAT64,
    }.items():
        for case, options in {
            "": {},
            "axis": {"axis": 1},
            "exclusive": {"exclusive": True},
            "reverse": {"axis": -1, "reverse": True},
            "both": {"exclusive": True, "reverse": True},
        }.items():
            ask(f"math.{op}", normal(SHAPE), case=case, dtypes=dtypes if not case else FLOAT64,
                **options)  # fmt: skip


_IDS = indices([0, 2, 0])


@family.builder
def segments() -> None:
    """Reductions of segments, with sorted and with unsorted ids."""
    for kind in ("sum", "mean", "prod", "max", "min", "sqrt_n"):
        ask(f"math.unsorted_segment_{kind}",
            lambda d: [Normal(SHAPE, d), _IDS], call(f"math.unsorted_segment_{kind}", 4),
            dtypes=FLOAT64)  # fmt: skip
    for kind in ("sum", "prod", "max", "min"):
        ask(f"math.unsorted_segment_{kind}",
            lambda d: [Normal(SHAPE, d), _IDS], call(f"math.unsorted_segment_{kind}", 4),
            dtypes=("int32", "int64"))  # fmt: skip
    for kind in ("sum", "mean", "prod", "max", "min"):
        ask(f"math.segment_{kind}", normal(SHAPE), call(f"math.segment_{kind}", [0, 0, 2]),
            dtypes=FLOAT64)  # fmt: skip
    for kind in ("sum", "prod", "max", "min"):
        ask(f"math.segment_{kind}", normal(SHAPE), call(f"math.segment_{kind}", [0, 0, 2]),
            dtypes=("int32", "int64"))  # fmt: skip
    ask("math.segment_prod", values([0.0, 2.0, 3.0]), call("math.segment_prod", [0, 0, 1]),
        case="zeros", dtypes=FLOAT64)  # fmt: skip
    ask("math.unsorted_segment_prod", values([0.0, 2.0, 0.0]),
        call("math.unsorted_segment_prod", [0, 0, 1], 2), case="zeros", dtypes=FLOAT64)  # fmt: skip


@family.builder
def sorts_and_searches() -> None:
    """Sorts, the largest values, and searches in sorted values."""
    for way in ("ASCENDING", "DESCENDING"):
        ask("sort", normal(SHAPE), case=way.lower(), direction=way,
            dtypes=("float32", "float64", "int32"))  # fmt: skip
        ask("argsort", normal(SHAPE), case=way.lower(), direction=way, axis=0, stable=True,
            dtypes=("float32", "float64", "int32"), tags=NO_DERIVATIVES)  # fmt: skip
    ask("sort", normal(SHAPE), case="axis", axis=0, dtypes=FLOAT64)
    for op in ("math.top_k", "nn.top_k"):
        ask(op, normal(SHAPE), k=2, dtypes=("float32", "float64", "bfloat16", "int32", "uint8"))
    for op in ("math.in_top_k", "nn.in_top_k"):
        ask(op, normal((3, 4)), lambda tf, x: tf.math.in_top_k(tf.constant([0, 1, 3]), x, 2),
            tags=NO_DERIVATIVES)  # fmt: skip
    for side in ("left", "right"):
        ask("searchsorted", values([1.0, 2.0, 2.0, 5.0], [0.0, 2.0, 6.0]), case=side, side=side,
            dtypes=("float32", "float64", "int32", "int64"), tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def counts() -> None:
    """Counts of integers, histograms, and unique values."""
    ask("math.bincount", [indices([0, 1, 3, 1])], dtypes=["int32"], minlength=5, maxlength=5)
    ask("math.bincount", lambda d: [indices([0, 1, 3, 1]), Uniform((4,), d)],
        lambda tf, x, w: tf.math.bincount(x, w, minlength=4, maxlength=4), case="weights",
        dtypes=FLOAT64, tags=("not_jvp", "not_grad"))  # fmt: skip
    ask("math.confusion_matrix", [indices([0, 1, 3]), indices([0, 2, 3])], dtypes=["int32"],
        num_classes=4)  # fmt: skip
    ask("histogram_fixed_width", between(-1, 6, (20,)), value_range=[0.0, 5.0], nbins=5,
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("histogram_fixed_width_bins", between(-1, 6, (20,)), value_range=[0.0, 5.0], nbins=5,
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("unique", [indices([3, 1, 3, 2, 1])], dtypes=["int32"])
    ask("unique_with_counts", [indices([3, 1, 3, 2, 1])], dtypes=["int32"])


@family.builder
def refused_programs() -> None:
    """Programs with axes, dtypes or segments that do not fit."""
    for op in ("reduce_sum", "reduce_max", "cumsum", "argmax"):
        ask_raises(f"math.{op}", "axis",
                   lambda tf, op=op: getattr(tf.math, op)(tf.ones([2, 3]), 2))  # fmt: skip
    ask_raises("math.reduce_all", "floats", lambda tf: tf.reduce_all(tf.ones([2])))
    ask_raises("math.reduce_max", "bools", lambda tf: tf.reduce_max(tf.constant([True])))
    ask_raises("math.segment_sum", "order", lambda tf: tf.math.segment_sum(tf.ones([2]), [1, 0]))
    ask_raises("math.segment_sum", "length", lambda tf: tf.math.segment_sum(tf.ones([2]), [0]))
    ask_raises("math.unsorted_segment_sum", "range",
               lambda tf: tf.math.unsorted_segment_sum(tf.ones([2]), [0, 5], 2))  # fmt: skip
    ask_raises("math.top_k", "too_many", lambda tf: tf.math.top_k(tf.ones([2]), 3))
    ask_raises("sort", "direction", lambda tf: tf.sort(tf.ones([2]), direction="UP"))
    ask_raises("searchsorted", "side", lambda tf: tf.searchsorted(tf.ones([2]), tf.ones([1]), "up"))
    ask_raises("searchsorted", "batches",
               lambda tf: tf.searchsorted(tf.ones([2, 2]), tf.ones([3, 1])))  # fmt: skip
    ask_raises(
        "math.reduce_logsumexp", "integers", lambda tf: tf.reduce_logsumexp(tf.constant([1]))
    )
    ask_raises("math.reduce_std", "integers", lambda tf: tf.math.reduce_std(tf.constant([1, 2])))
