"""Targets: what reads the graphs that `convert` makes, and which ops it takes, as data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import jax
import tensorflow as tf

from jax2tf._src.targets import op_tables
from jax2tf._src.util import option_checks
from jax2tf._src.util.option_checks import shown

# The two sets of rules: with TensorFlow's XLA ops, and with its standard ops alone.
OpSet: TypeAlias = Literal["xla", "no_xla"]
XLA: OpSet = "xla"
NO_XLA: OpSet = "no_xla"
OP_SETS: tuple[OpSet, ...] = (XLA, NO_XLA)


# The remedy for what XLA alone runs.
FOR_XLA = "convert with enable_xla=True"

# The input whose dtype says which kernel an op is, where that is not the first.
KEY_INPUTS: Mapping[str, int] = {
    "Conv2DBackpropInput": 1,
    "Conv3DBackpropInputV2": 1,
    "Fill": 1,
    "OneHot": 2,
    "ScatterNd": 1,
    "SelectV2": 1,
    "Split": 1,
}

# Ops that others stand in for in graphs without XLA ops, which are for engines: there is an engine
# that lacks them. By type, with the dtypes; all dtypes where none is named. So are all XLA ops.
NOT_IN_EVERY_ENGINE: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("Acos", "Asin", "Atan", "Atanh", "Cosh", "Sinh", "Tan"), ()),
    **dict.fromkeys(("Expm1", "Log1p", "Erf", "Erfc"), ()),
    "ArgMax": ("bool",),
    # It is Equal, Less and more of the bits of a float.
    "Bitcast": ("float32",),
    "BroadcastTo": ("complex64", "complex128"),
    **dict.fromkeys(("Case", "EnsureShape"), ()),
    **dict.fromkeys(("Cumprod", "CumulativeLogsumexp"), ("float32", "int32")),
    "PadV2": ("bool",),
    **dict.fromkeys(("TruncateDiv", "TruncateMod"), ()),
}


# How every graph is written, because an engine misreads the other way, and both cost the same.
# Comments in the rules name them.
FORMS: Mapping[str, str] = {
    "as_it_is_fused": (
        "ops in the order in which engines look for what they have one op for: LiteRT for gelu, "
        "ONNX Runtime and OpenVINO for layer normalisation"
    ),
    "atan2_of_arrays": "LiteRT's converter fails on an Atan2 of an array and a scalar",
    "bools_by_comparison": "OpenVINO makes no bools of the int32 of a TopK by a Cast",
    "constants_reversed": (
        "OpenVINO would reverse the constant kernels of transposed convolutions in each call"
    ),
    "indices_as_the_result": (
        "OpenVINO's converter moves the transpose of what is gathered from a vector into the "
        "gather, and gives it an axis that the vector has not"
    ),
    "last_axis_by_number": (
        "TensorFlow.js counts no axes of a Cumsum from the end, and tf2onnx 1.16 miscounts -1 in a "
        "gather with batch dimensions"
    ),
    "logic_for_choice": (
        "OpenVINO refuses a choice between bools one of which is the condition itself"
    ),
    "logarithm_of_half": (
        "LiteRT's kernel takes the logarithm of the largest numbers of float32 for infinite"
    ),
    "minimum_of_maximum": (
        "LiteRT makes Relu6, which it has for floats alone, of a maximum of 0 and what is at most 6"
    ),
    "numbers_first": (
        "OpenVINO's Maximum of a NaN and a number is the second operand: the number comes first"
    ),
    "smaller_for_larger": (
        "OpenVINO takes a NaN for larger than every number in a Greater or a GreaterEqual; a Less "
        "and a LessEqual are right"
    ),
    "strides_by_gather": "OpenVINO takes other elements in a strided slice of integers",
}


# What an engine gets wrong, and a graph for it has to avoid.
QUIRKS: Mapping[str, str] = {
    "adds_integers_as_floats": (
        "OpenVINO adds int32 up in float32, which loses what is beyond 2**24; cumulative sums of "
        "int32 are exact"
    ),
    "appends_in_loops": (
        "tf2onnx 1.16 appends what a step of a loop writes into a list, whatever the place"
    ),
    "carries_in_turn": (
        "LiteRT and OpenVINO write what a step of a loop gives into the places of its arguments "
        "one after the other: an argument that the step moves to another place is overwritten first"
    ),
    "choice_by_product": (
        "tf2onnx 1.16 makes condition * x + (1 - condition) * y of a SelectV2 of floats, which is "
        "NaN where the side that was not chosen is not finite, and loses the sign of zeros"
    ),
    "chooses_integers_as_floats": (
        "OpenVINO may choose between int32 in float32, which rounds what is beyond 2**24"
    ),
    "compares_integers_as_floats": (
        "tf2onnx 1.17 makes float32 of the integers that a Greater or a Less compares; those of a "
        "GreaterEqual and a LessEqual stay"
    ),
    "computes_64_bits_in_32": (
        "OpenVINO's CPU plugin and TensorFlow.js compute int64 in int32 and float64 in float32: "
        "bits are refused that come from 64, or become them"
    ),
    "constants_by_name": (
        "tf2onnx 1.16 takes a constant of a loop's body for one of another body of the same name"
    ),
    "divides_integers_as_floats": (
        "OpenVINO divides int32 in float32, which rounds what is beyond 2**24"
    ),
    "drops_constant_results": (
        "OpenVINO's converter drops a result that is a constant; what an op makes of one stays, "
        "and of one of float16 what a Cast makes"
    ),
    "drops_transposes_around_reshape": (
        "LiteRT's converter drops two transposes, and what they do, where a Reshape between them "
        "drops a dimension of size one and the sizes are those of the array before; a Squeeze is "
        "right"
    ),
    "drops_unread_carries": (
        "OpenVINO drops what a loop carries and its body does not read: what comes out where the "
        "body does not run is memory that nobody wrote"
    ),
    "equates_large_integers": (
        "OpenVINO compares int32 in float32, in which neighbours beyond 2**24 are equal"
    ),
    "exchanges_constant_and_transpose": (
        "LiteRT's converter moves a transpose behind a difference or a quotient, and exchanges the "
        "operands where the first is a constant of one number, or of as many as the result"
    ),
    "extreme_keeps_a_nan_of_the_second": (
        "OpenVINO's Maximum and Minimum of a NaN and a number are the second operand"
    ),
    "extremes_from_a_finite_number": (
        "OpenVINO's Max and Min of nothing but infinities are the largest finite number, with the "
        "sign of these"
    ),
    "few_dimensions_in_pads": "LiteRT's PadV2 takes arrays of five dimensions",
    "few_dimensions_in_reductions": (
        "LiteRT's delegate reduces no arrays of more than six dimensions"
    ),
    "few_functions_of_float16": (
        "OpenVINO and tf2onnx have not, or get wrong, more of float16 than its arithmetic and "
        "elementary functions: the rest is computed in float32"
    ),
    "infinite_exp_of_nan": "OpenVINO's Exp of NaN is infinite",
    "infinite_subnormals": (
        "OpenVINO's IsFinite takes a number below the smallest normal one for infinite"
    ),
    "integer_reductions_saturate": (
        "ONNX Runtime ends sums and products of int32 at the largest and the smallest number, "
        "where they wrap around"
    ),
    "keeps_what_16_bits_lose": (
        "OpenVINO computes integers of 16 bits in int32: a Cast to them does not wrap around"
    ),
    "lists_of_known_shape": (
        "LiteRT takes no list of arrays (TensorListReserve) whose shape is not known at conversion"
    ),
    "magnitudes_as_floats": (
        "TensorFlow.js takes Abs of int32 in float32, which rounds what is beyond 2**24"
    ),
    "moves_casts": (
        "LiteRT's converter moves the Cast of a float of 16 bits, or of uint32, behind what moves "
        "its elements, and then lacks that of the dtype; and that of a bool behind a comparison, "
        "and then lacks that of bools"
    ),
    "nan_in_parts_of_softmax": (
        "OpenVINO's Softmax of a row with a NaN or an infinity is NaN there, and 0 elsewhere"
    ),
    "no_adjoint_of_integers": (
        "tf2onnx 1.17 drops the transposes of a product of batches of integer matrices"
    ),
    "no_bad_indices": (
        "no engine knows the bad_indices_policy of a scatter: every index has to be in bounds"
    ),
    "no_bitcast": (
        "the engine, or its converter, has no Bitcast: floats are made of their bits by arithmetic"
    ),
    "no_folding": (
        "the converter does not compute what depends on no argument: small results are constants "
        "of the graph, for the engine may lack an op of these, or fail at a loop over constants"
    ),
    "no_convolution_in_groups": (
        "TensorFlow.js refuses a Conv2D whose features are in groups: it has a depthwise op, and "
        "other groups are convolved one by one"
    ),
    "no_complex_numbers": (
        "the engine has no complex numbers, or a few functions of them: each is computed as two "
        "real ones"
    ),
    "no_bits_of_open_shape": (
        "OpenVINO computes integers among ops of floats in float32 where a dimension is open: the "
        "bits of floats lose the lowest ones"
    ),
    "no_open_number_of_groups": (
        "engines take a depthwise convolution of a known number of channels alone"
    ),
    "no_angle_of_scalars": (
        "tf2onnx 1.17 makes a vector of one number of the Atan2 of two scalars, of which graphs "
        "without XLA ops make inverse sines, cosines and tangents too"
    ),
    "no_atan2_of_scalar": "LiteRT's converter fails on an Atan2 of an array and a scalar",
    "no_axes_in_slices": (
        "DTensor ends the process at a StridedSlice that adds a dimension, and takes wrong parts "
        "at one that drops a dimension"
    ),
    "no_concat_of_parts": (
        "DTensor joins nothing along a dimension that what reads the result wants in parts"
    ),
    "no_paddings_in_numbers": (
        "OpenVINO reads a padding of the depthwise convolution by name alone, and engines read so "
        "that of a transposed one"
    ),
    "no_lists_in_functions": (
        "LiteRT's converter and tf2onnx take no list of arrays (TensorListReserve) in a function "
        "that is called several times: what writes lists is lowered at each call"
    ),
    "no_product_of_vectors": (
        "OpenVINO ends the process at a MatMul of two vectors as matrices of one row and one column"
    ),
    "no_reverse": "DTensor has no ReverseV2",
    "no_row_by_computed_matrix": (
        "LiteRT's converter takes the reshape of a vector out of its product with a matrix that is "
        "no constant, and then refuses what it made; a matrix by a vector it takes"
    ),
    "no_scalar_choice": (
        "DTensor ends the process at a SelectV2 of arrays whose condition is a scalar"
    ),
    "no_same_padding_of_dilated": (
        "ONNX Runtime refuses a convolution with a dilation whose padding is a name, as tf2onnx "
        "writes it for sizes that are not known"
    ),
    "no_strides_of_dilated": (
        "TensorFlow.js refuses a convolution that has strides and a dilation: its kernel gets zeros"
    ),
    "no_tensor_lists": "DTensor spreads no TensorList over a mesh, which a tf.TensorArray is",
    "no_uint32": (
        "TensorFlow.js has no arrays of uint32, so that none crosses the boundary of a function, a "
        "branch or the body of a loop, and multiplies integers in float64"
    ),
    "no_unpack_of_parts": "DTensor cannot give the results of an Unpack other parts than it has",
    "one_reverse_at_a_time": "there are engines whose ReverseV2 takes one dimension",
    "no_gelu_of_scalar": (
        "ONNX Runtime makes FastGelu of a gelu by the hyperbolic tangent, which takes no scalar"
    ),
    "no_gather_in_batches": (
        "OpenVINO's converter moves a transpose behind a GatherV2 of batches, and refuses what "
        "comes of it, or reads other elements"
    ),
    "no_gather_of_one_batch": (
        "OpenVINO's GatherV2 of batches reads memory that is not the array's, or ends the process, "
        "where it is of one batch"
    ),
    "no_integers_of_three_dimensions": (
        "OpenVINO merges a product or sum with a number into the reduction of integers before it, "
        "and takes other elements where that is along the middle one of three dimensions, or along "
        "neighbours of them"
    ),
    "no_integer_square": (
        "LiteRT's converter leaves SQUARE and NEG in float32 where it quantises all ops to integers"
    ),
    "orders_integers_as_floats": (
        "OpenVINO reverses int32, and takes the largest and the smallest, in float32, in which "
        "neighbours beyond 2**24 are equal"
    ),
    "overwrites_vectors": (
        "OpenVINO's Abs of a vector that a ConcatV2 or a Pack made writes into the vector itself, "
        "which others read"
    ),
    "one_window_of_one_feature": (
        "TensorFlow 2.21's oneDNN kernels of Conv2D and Conv3D give wrong numbers, or memory of "
        "others, for filters of one input feature where there is one window along the last axis, "
        "with a stride there and none along the other axes"
    ),
    "pads_lose_sizes": (
        "LiteRT's converter and tf2onnx know no size of what is padded or cut by computed sizes. "
        "The one refuses a convolution of an unknown number of channels, the other makes one group "
        "of several. Of what a Reshape gives they know the sizes that are numbers"
    ),
    "pads_integers_as_floats": (
        "OpenVINO pads int32 with a number of float32: the largest int32 becomes the smallest"
    ),
    "pads_with_constants_alone": (
        "OpenVINO pads with zeros where the value depends on an argument of the graph"
    ),
    "parts_move_at_identity": (
        "DTensor moves parts between devices at an Identity, and not at a Transpose, a GatherV2 "
        "or a Pad"
    ),
    "relu_takes_gelu_apart": (
        "LiteRT's converter merges a Relu into the product that ends a gelu by the error function "
        "before it looks for the gelu, and has no op for the error function alone"
    ),
    "sorts_integers_as_floats": (
        "tf2onnx 1.17 makes float32 of the integers that a TopKV2 puts in order, in which "
        "neighbours beyond 2**24 are equal"
    ),
    "takes_constant_branches": (
        "TensorFlow.js takes the result of a branch that is a constant, whatever the condition is"
    ),
    "truncates_quotients": (
        "tf2onnx rounds the quotients of integers in a FloorDiv and a FloorMod toward zero: sizes "
        "computed of negative numbers, as 1 - -b // 4, are corrected"
    ),
    "updates_in_place": (
        "TensorFlow.js writes what a TensorScatterUpdate writes into the memory of its operand, "
        "which may be a constant, an argument, or read by other ops"
    ),
}

# Those of one engine or another that graphs without XLA ops always avoid.
OF_ENGINES = frozenset(
    {
        "appends_in_loops",
        "carries_in_turn",
        "few_dimensions_in_reductions",
        "no_bad_indices",
        "no_open_number_of_groups",
        "no_paddings_in_numbers",
        "no_product_of_vectors",
        "one_reverse_at_a_time",
    }
)

# What DTensor, no engine, gets wrong.
OF_DTENSOR = frozenset(
    {
        "no_axes_in_slices",
        "no_concat_of_parts",
        "no_reverse",
        "no_scalar_choice",
        "no_tensor_lists",
        "no_unpack_of_parts",
        "parts_move_at_identity",
    }
)


# What makes a graph faster, and changes a result by its rounding at most.
# `Target.without_optimizations` leaves some out.
OPTIMIZATIONS: Mapping[str, str] = {
    "broadcast_choices": (
        "a choice repeats its condition or a side by itself: with a BroadcastTo before it, LiteRT "
        "takes three times as long"
    ),
    "broadcast_operands": (
        "an op of two arrays repeats one of them by itself: a bias needs no Reshape and no "
        "BroadcastTo before it is added"
    ),
    "compiled_draws": (
        "XLA compiles the generator of many random bits whose number is known: TensorFlow runs it "
        "as over a hundred ops, each of which goes through memory"
    ),
    "eigenvalues_by_kernels": (
        "XLA does not compile a jitted function by itself where that has eigenvalues of symmetric "
        "matrices or singular values: on a CPU its loops take 10 to 200 times as long as "
        "TensorFlow's kernels"
    ),
    "floats_in_top_k": (
        "what XLA compiles takes the largest of float32 with TopKV2 itself, which goes by the bits "
        "there: XLA has a kernel for floats, and sorts integers whole"
    ),
    "inferred_sizes": (
        "a reshape to a shape of which one size is unknown infers that size: no op computes it, "
        "and LiteRT plans its memory, which it cannot do behind a shape that the run computes"
    ),
    "rows_of_one_matrix": (
        "a product of many dimensions and a matrix is one MatMul: TensorFlow's BatchMatMulV2 takes "
        "1.5 times as long, and for few rows 3 times"
    ),
    "sorts_by_top_k": (
        "what XLA does not compile sorts by one integer key, along the last axis, with TopKV2: on "
        "a CPU that takes a part of the time of XlaVariadicSort"
    ),
    "unordered_bodies": (
        "TensorFlow looks for no ops with effects to put in order in loops and branches that have "
        "none: that takes as long as to make the ops, and an op for each result"
    ),
}


# Those that pay whatever reads the graph.
FOR_EVERY_READER = frozenset({"broadcast_choices", "broadcast_operands", "inferred_sizes"})


class Placement(Protocol):
    """Says where in a mesh a value of a graph is."""

    def placed(
        self, tensor: tf.Tensor, sharding: jax.sharding.Sharding, open_dims: Iterable[int] = ()
    ) -> tf.Tensor:
        """The tensor, spread as a jax.sharding.Sharding says, and in open dimensions in any way."""

    def whole(self, tensor: tf.Tensor) -> tf.Tensor:
        """The tensor, whole on every device."""


# The fields of a target that hold names, and those that hold something by name.
_SETS = (
    *("idioms", "finite_idioms", "integer_idioms"),
    *("lacks_dtypes", "quirks", "optimizations"),
)
_MAPPINGS = ("ops", "lacks", "own_ops", "computes_in")


@dataclasses.dataclass(frozen=True)
class Target:
    """What reads a graph, and which ops it takes.

    >>> tiny = Target("tiny", ops={"AddV2": ("float32",), "Mul": ("float32", "int32")})
    >>> sorted(TARGETS["litert"].idioms - TARGETS["litert"].without_idioms("gelu", "mean").idioms)
    ['gelu', 'mean']

    Attributes:
      name: what messages call it.
      op_set: the rules that lower for it: "xla", or "no_xla" for TensorFlow's standard ops alone.
      idioms: the names of the idioms (lowering/passes/idioms) that it has ops for. The op of an
        engine may differ from JAX in the last bits, and TensorFlow's own kernel of it from the
        engine's where a number is NaN: see docs/guides/engines.md.
      finite_idioms: those whose ops lose a NaN or an infinity in the engine: they are used where
        `assume_finite` is set.
      integer_idioms: those that keep numbers in a range that integers of 8 bits can tell apart:
        `for_integers` gives a target that has them.
      ops: the ops of TensorFlow that it takes, by type, each with the dtypes of its first input
        (of that which KEY_INPUTS says, and of the first output, for an op without inputs). None
        where every op is taken.
      lacks: the ops that it does not take, by type, each with those of these dtypes for which it
        does not; all of them where none is named. An op of constants alone is taken where
        the engine's converter computes it (quirk "no_folding").
      own_ops: ops of NOT_IN_EVERY_ENGINE that it takes, and graphs for it hold: by type, each with
        the dtypes.
      lacks_dtypes: those of which it has no arrays.
      most_dimensions: how many its arrays have at most. None where there is no limit.
      computes_in: the dtypes that it does not compute with, each with the one that stands in: int32
        holds the bits of uint32, and the numbers of narrower integers.
      quirks: the ids, among QUIRKS, of what the engine gets wrong. Those of OF_ENGINES are added
        where the op set is "no_xla".
      optimizations: the names, among OPTIMIZATIONS, of what makes its graphs faster.
      assume_finite: whether what guards NaN and infinity is left out.
      shares_repeats: whether equations that repeat, as the layers of a Python loop do, become calls
        of one function.
      placement: what shardings become. None makes them XlaSharding ops, where it takes XLA ops.
    """

    name: str
    op_set: OpSet = NO_XLA
    idioms: frozenset[str] = frozenset()
    finite_idioms: frozenset[str] = frozenset()
    integer_idioms: frozenset[str] = frozenset()
    ops: Mapping[str, Sequence[str]] | None = dataclasses.field(default=None, hash=False)
    lacks: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict, hash=False)
    own_ops: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict, hash=False)
    lacks_dtypes: frozenset[str] = frozenset()
    most_dimensions: int | None = None
    computes_in: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    quirks: frozenset[str] = frozenset()
    optimizations: frozenset[str] = FOR_EVERY_READER
    assume_finite: bool = False
    shares_repeats: bool = True
    placement: Placement | None = None

    def __post_init__(self) -> None:
        # A target is a key of caches, so any collection of names becomes one that can be hashed.
        where = f"jax2tf.Target({self.name!r})"
        if not isinstance(self.name, str):
            raise TypeError(f"jax2tf.Target: name should be a text, got {shown(self.name)}")
        option_checks.switches(
            where, assume_finite=self.assume_finite, shares_repeats=self.shares_repeats
        )
        for field in _MAPPINGS:
            value = getattr(self, field)
            if not (isinstance(value, Mapping) or (value is None and field == "ops")):
                raise TypeError(f"{where}: {field} should be a dict by name, got {shown(value)}")
        if self.most_dimensions is not None:
            remedy = "None is any number"
            option_checks.whole_number(self.most_dimensions, f"{where}: most_dimensions", 0, remedy)
        for field in _SETS:
            argument = f"{where}: {field}"
            names = option_checks.sequence(getattr(self, field), argument, "names", "{'gelu'}")
            if not all(isinstance(name, str) for name in names):
                raise TypeError(f"{argument} should be a set of names, got {shown(names)}")
            object.__setattr__(self, field, frozenset(names))
        option_checks.one_of(self.op_set, f"{where}: op_set", OP_SETS)
        if self.op_set == NO_XLA:
            object.__setattr__(self, "quirks", self.quirks | OF_ENGINES)
        for field, known in (("quirks", QUIRKS), ("optimizations", OPTIMIZATIONS)):
            unknown = getattr(self, field) - known.keys()
            if unknown:
                raise ValueError(
                    f"jax2tf.Target({self.name!r}): {field} should be among {', '.join(known)}, "
                    f"got {', '.join(sorted(unknown))}"
                )

    @property
    def enable_xla(self) -> bool:
        """Whether XLA ops may be used."""
        return self.op_set == XLA

    @property
    def takes_all(self) -> bool:
        """Whether every op is taken."""
        has_limits = self.lacks or self.lacks_dtypes or self.most_dimensions is not None
        return self.ops is None and not has_limits

    @functools.cached_property
    def is_complete(self) -> bool:
        """Whether it takes every op, computes in every dtype and gets nothing wrong."""
        return self.takes_all and not (self.quirks or self.computes_in)

    def lacks_op(self, op: str, dtype: str) -> bool:
        """Whether it does not take an op of a dtype."""
        if self.ops is not None:
            return dtype not in self.ops.get(op, ())
        return _is_listed(self.lacks, op, dtype)

    def uses(self, op: str, dtype: str | None = None) -> bool:
        """Whether graphs for it are to hold an op of a dtype.

        Not where it lacks the op, nor, in the set of standard ops, where an engine does. Where no
        dtype is named: whether it takes the op with any, and every engine with all.
        """
        is_spared = op.startswith("Xla") or _is_listed(NOT_IN_EVERY_ENGINE, op, dtype)
        if self.op_set == NO_XLA and is_spared and not _is_listed(self.own_ops, op, dtype):
            return False
        if self.ops is not None:
            return op in self.ops if dtype is None else dtype in self.ops.get(op, ())
        if dtype is None:
            return op not in self.lacks or bool(self.lacks[op])
        return not _is_listed(self.lacks, op, dtype)

    def without_idioms(self, *names: str) -> Target:
        """The target with these idioms switched off, or all of them where none is named.

        Raises:
          ValueError: the target has no idiom of that name.
        """
        has = self.idioms | self.finite_idioms
        left_out = frozenset(names) if names else has
        unknown = left_out - has
        if unknown:
            raise ValueError(
                f"jax2tf.Target({self.name!r}): it has no idiom {', '.join(sorted(unknown))}; it "
                f"has {', '.join(sorted(has))}"
            )
        return dataclasses.replace(
            self, idioms=self.idioms - left_out, finite_idioms=self.finite_idioms - left_out
        )

    def for_integers(self) -> Target:
        """The target for graphs whose numbers become integers of 8 bits, which are finite."""
        return dataclasses.replace(
            self, idioms=self.idioms | self.integer_idioms, assume_finite=True
        )

    def without_optimizations(self, *names: str) -> Target:
        """The target with these optimisations switched off, or all of them where none is named.

        Raises:
          ValueError: the target has no optimisation of that name.
        """
        left_out = frozenset(names) if names else self.optimizations
        unknown = left_out - self.optimizations
        if unknown:
            raise ValueError(
                f"jax2tf.Target({self.name!r}): it has no optimisation "
                f"{', '.join(sorted(unknown))}; it has {', '.join(sorted(self.optimizations))}"
            )
        return dataclasses.replace(self, optimizations=self.optimizations - left_out)

    def has_idiom(self, name: str) -> bool:
        """Whether the idiom of that name is used, given whether numbers are finite."""
        return name in self.idioms or (self.assume_finite and name in self.finite_idioms)


def _is_listed(table: Mapping[str, Sequence[str]], op: str, dtype: str | None) -> bool:
    """Whether a table names an op with a dtype, or, where no dtype is asked for, with any."""
    return op in table and (not table[op] or dtype is None or dtype in table[op])


# The uses that rules make of ops, where these are not the plain ones.
_NEEDS = ("FloorDiv: of numbers of one sign", "FloorMod: of numbers of one sign")
_TF2ONNX = frozenset({"choice_by_product", "constants_by_name"})
_EXCHANGES = frozenset({"exchanges_constant_and_transpose"})
_LITERT = _EXCHANGES | {
    "drops_transposes_around_reshape",
    "few_dimensions_in_pads",
    "lists_of_known_shape",
    "moves_casts",
    "no_atan2_of_scalar",
    "no_integer_square",
    "no_lists_in_functions",
    "no_row_by_computed_matrix",
    "pads_lose_sizes",
    "relu_takes_gelu_apart",
}
_REAL = frozenset({"no_complex_numbers"})
_BITS = frozenset({"no_bitcast"})
# Of these no engine has arrays that its converter knows.
_NARROW = frozenset(
    {
        *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float4_e2m1fn", "int2", "int4", "uint2", "uint4"),
    }
)
# Its converter makes float16 of it.
_BFLOAT16 = frozenset({"bfloat16"})
# Integers of fewer bits, in which few kernels compute.
_IN_INT32 = dict.fromkeys(("int8", "int16", "uint8", "uint16"), "int32")
_ACTIVATIONS = frozenset({"relu", "relu6", "leaky_relu", "elu", "hard_swish", "gelu"})
_SOFTMAX = frozenset({"softmax", "log_softmax"})
_NORMS = frozenset({"layer_norm", "batch_norm"})
_SIZES = frozenset({"resize_by_products", "resize_nearest"})
_IDIOMS = _ACTIVATIONS | _SOFTMAX | _SIZES | {"mean", "variance", "one_hot"}
# JAX resizes by products, in which a NaN reaches all pixels, and an op those beside it.
_RESIZE = frozenset({"resize"})

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            "xla",
            XLA,
            quirks=frozenset({"one_window_of_one_feature"}),
            optimizations=frozenset(OPTIMIZATIONS),
        ),
        # What every engine takes.
        Target(
            "tensorflow",
            quirks=_TF2ONNX
            | _EXCHANGES
            | {
                "drops_transposes_around_reshape",
                "few_dimensions_in_pads",
                "no_lists_in_functions",
                "one_window_of_one_feature",
                "pads_lose_sizes",
                "takes_constant_branches",
            },
        ),
        Target(
            "litert",
            idioms=_IDIOMS | {"dynamic_update_slice"},
            finite_idioms=_RESIZE,
            integer_idioms=frozenset({"masked_softmax"}),
            quirks=_LITERT | _REAL,
            lacks_dtypes=_NARROW,
            # Its converter makes sums of writes: where indices repeat, the updates are added. And
            # sums of floats lose what was there where that is a negative zero. What it makes of
            # Lgamma is further from JAX than what is made of it here.
            lacks=op_tables.lacks(
                "litert",
                needs=(
                    *_NEEDS,
                    "RightShift: by a distance that is checked",
                    "TensorScatterUpdate: where indices repeat",
                ),
                edges={"TensorScatterAdd": "zeros"},
            )
            | {"Lgamma": ()},
            computes_in=_IN_INT32
            | {"uint32": "int32", "float16": "float32", "bfloat16": "float32"},
        ),
        # ONNX counts negative classes from the end.
        Target(
            "onnx",
            idioms=(_IDIOMS - {"one_hot"}) | _NORMS | {"erf"},
            finite_idioms=_RESIZE,
            quirks=_TF2ONNX
            | _REAL
            | _BITS
            | {
                "compares_integers_as_floats",
                "few_functions_of_float16",
                "integer_reductions_saturate",
                "no_adjoint_of_integers",
                "no_angle_of_scalars",
                "no_gelu_of_scalar",
                "no_lists_in_functions",
                "no_same_padding_of_dilated",
                "pads_lose_sizes",
                "sorts_integers_as_floats",
                "truncates_quotients",
            },
            lacks_dtypes=_NARROW | _BFLOAT16,
            lacks=op_tables.lacks(
                "onnx",
                needs=_NEEDS,
                edges={
                    "MirrorPad": "large",
                    "Pad": "large",
                    "TensorScatterMax": "nan",
                    "TensorScatterMin": "nan",
                },
            ),
            computes_in={"uint16": "int32"},
        ),
        # A row with a NaN is no NaN in OpenVINO's log_softmax, and gelu of infinity is one.
        Target(
            "openvino",
            idioms=(_IDIOMS - {"log_softmax"}) | _NORMS,
            finite_idioms=_RESIZE | {"erf", "log_softmax"},
            quirks=_REAL
            | _BITS
            | {
                "adds_integers_as_floats",
                "chooses_integers_as_floats",
                "computes_64_bits_in_32",
                "divides_integers_as_floats",
                "drops_constant_results",
                "drops_unread_carries",
                "equates_large_integers",
                "extreme_keeps_a_nan_of_the_second",
                "extremes_from_a_finite_number",
                "few_functions_of_float16",
                "infinite_exp_of_nan",
                "infinite_subnormals",
                "keeps_what_16_bits_lose",
                "nan_in_parts_of_softmax",
                "no_bits_of_open_shape",
                "no_folding",
                "no_gather_in_batches",
                "no_gather_of_one_batch",
                "no_integers_of_three_dimensions",
                "orders_integers_as_floats",
                "overwrites_vectors",
                "pads_integers_as_floats",
                "pads_with_constants_alone",
            },
            lacks_dtypes=_NARROW | _BFLOAT16,
            # It computes bits of uint32 as if they had a sign, and has no more than those in int64;
            # and where indices repeat it writes, and does not add.
            lacks=op_tables.lacks(
                "openvino",
                needs=(*_NEEDS, "ScatterNd: where indices repeat"),
                edges={"RightShift": "large"},
            ),
            computes_in=_IN_INT32 | {"uint32": "int32"},
        ),
        Target(
            "tfjs",
            idioms=_IDIOMS | {"erf"},
            finite_idioms=_RESIZE,
            quirks=_REAL
            | _BITS
            | {
                "computes_64_bits_in_32",
                "magnitudes_as_floats",
                "no_convolution_in_groups",
                "no_folding",
                "no_strides_of_dilated",
                "no_uint32",
                "takes_constant_branches",
                "updates_in_place",
            },
            lacks_dtypes=_NARROW,
            lacks=op_tables.lacks("tfjs", needs=_NEEDS),
            computes_in={"uint32": "int32"},
        ),
        # Its models run on Apple's systems alone: what is known is what its converter takes.
        Target(
            "coreml",
            quirks=_REAL | _BITS,
            lacks_dtypes=_NARROW | _BFLOAT16,
            lacks=op_tables.lacks(
                "coreml",
                needs=(
                    *_NEEDS,
                    "Conv2DBackpropInput: by a constant kernel",
                    "Conv3DBackpropInputV2: by a constant kernel",
                    "Fill: with a constant number",
                ),
            ),
            own_ops=op_tables.taken("coreml", NOT_IN_EVERY_ENGINE),
            most_dimensions=5,
        ),
    )
}


def chosen(target: str | Target | None, *, enable_xla: bool, assume_finite: bool) -> Target:
    """The target that the options of `convert` ask for.

    Raises:
      TypeError: `target` is neither a name nor a Target.
      ValueError: there is no target of that name; or enable_xla=False beside one with XLA ops.
    """
    if target is None:
        target = TARGETS["xla" if enable_xla else "tensorflow"]
    elif isinstance(target, str):
        if target not in TARGETS:
            raise ValueError(
                f"jax2tf.convert: target should be one of {', '.join(TARGETS)}, or a "
                f"jax2tf.Target; got {target!r}"
            )
        target = TARGETS[target]
    elif not isinstance(target, Target):
        raise TypeError(
            "jax2tf.convert: target should be the name of a target or a jax2tf.Target, got "
            f"{type(target).__name__}"
        )
    if target.enable_xla and not enable_xla:
        raise ValueError(
            f"jax2tf.convert: enable_xla=False forbids XLA ops, and the target {target.name!r} has "
            "them; leave one of the two out"
        )
    return dataclasses.replace(target, assume_finite=target.assume_finite or assume_finite)
