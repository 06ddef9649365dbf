"""Quirks: what the readers of graphs get wrong, so that a graph for them has to avoid it.

Each quirk is shown by a program that its reader gets wrong without it: that of its name in
tests/consumers/test_quirks.py, for DTensor in tests/impl/dtensor_quirks.py, and for TensorFlow in
tests/impl/test_tensorflow_quirks.py. A quirk whose program passes without it fails there.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Literal, TypeAlias

# The converter reads TensorFlow's graph and writes the engine's model. The kernel is everything
# that runs the model, the engine's own rewriting of it included.
Part: TypeAlias = Literal["converter", "kernel"]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A piece of software that gets something wrong.

    Attributes:
      target: the name of the target whose graphs it reads; "dtensor" for graphs on a mesh.
      library: the one that is wrong.
      part: the part of the library that is wrong.
      versions: those in which it was seen.
    """

    target: str
    library: str
    part: Part
    versions: str


# A quirk has several of these where several libraries get it wrong.
_LITERT_CONVERTER = (Fault("litert", "TensorFlow's converter for LiteRT", "converter", "2.21"),)
_LITERT = (Fault("litert", "LiteRT", "kernel", "2.3"),)
_ONNX = (Fault("onnx", "ONNX", "converter", "opset 25"),)
_ONNX_RUNTIME = (Fault("onnx", "ONNX Runtime", "kernel", "1.31"),)
_OPENVINO_CONVERTER = (Fault("openvino", "OpenVINO", "converter", "2026.4"),)
_OPENVINO = (Fault("openvino", "OpenVINO", "kernel", "2026.4"),)
_TFJS = (Fault("tfjs", "TensorFlow.js", "kernel", "4.22"),)
_TENSORFLOW = (Fault("tensorflow", "TensorFlow with oneDNN", "kernel", "2.21"),)
_TENSORFLOW_XLA = (Fault("xla", "TensorFlow's translation to XLA", "converter", "2.21"),)
_DTENSOR = (Fault("dtensor", "DTensor", "kernel", "TensorFlow 2.21"),)


class Quirk(enum.StrEnum):
    """What a reader gets wrong: its name as a text, the faults, and the meaning in a sentence.

    >>> Quirk.INFINITE_EXP_OF_NAN.faults[0].library, Quirk.INFINITE_EXP_OF_NAN.faults[0].part
    ('OpenVINO', 'kernel')
    >>> Quirk.INFINITE_EXP_OF_NAN == Quirk("infinite_exp_of_nan") == "infinite_exp_of_nan"
    True
    """

    faults: tuple[Fault, ...]
    meaning: str

    def __new__(cls, name: str, faults: tuple[Fault, ...], meaning: str) -> Quirk:
        """A member: a text that knows more."""
        quirk = str.__new__(cls, name)
        quirk._value_, quirk.faults, quirk.meaning = name, faults, meaning
        return quirk

    ADDS_INTEGERS_AS_FLOATS = (
        "adds_integers_as_floats",
        _OPENVINO,
        "OpenVINO adds int32 up in float32, which loses what is beyond 2**24; its cumulative sums "
        "of int32 are exact",
    )
    CARRIES_IN_TURN = (
        "carries_in_turn",
        _LITERT + _OPENVINO,
        "LiteRT and OpenVINO write the results of a step of a loop one after the other into the "
        "places of its arguments: they overwrite an argument that the step moves to another place",
    )
    CHOOSES_INTEGERS_AS_FLOATS = (
        "chooses_integers_as_floats",
        _OPENVINO,
        "OpenVINO may choose between int32 in float32, which rounds what is beyond 2**24",
    )
    COMPUTES_64_BITS_IN_32 = (
        "computes_64_bits_in_32",
        _OPENVINO + _TFJS,
        "OpenVINO's CPU plugin and TensorFlow.js compute int64 in int32 and float64 in float32: "
        "bits are refused that come from 64, or become them",
    )
    DIVIDES_INTEGERS_AS_FLOATS = (
        "divides_integers_as_floats",
        _OPENVINO,
        "OpenVINO divides int32 in float32, which rounds what is beyond 2**24",
    )
    DROPS_CONSTANT_RESULTS = (
        "drops_constant_results",
        _OPENVINO_CONVERTER,
        "OpenVINO's converter drops a result that is a constant; it keeps the result of an op on a "
        "constant, and for a constant of float16 the result of a Cast",
    )
    DROPS_TRANSPOSES_AROUND_RESHAPE = (
        "drops_transposes_around_reshape",
        _LITERT_CONVERTER,
        "LiteRT's converter drops two transposes, and what they do, where a Reshape between them "
        "drops a dimension of size one and the sizes are those of the array before; a Squeeze is "
        "right",
    )
    DROPS_UNREAD_CARRIES = (
        "drops_unread_carries",
        _OPENVINO,
        "OpenVINO drops a value that a loop carries and its body does not read: where the body "
        "does not run, the result is memory that nobody wrote",
    )
    EQUATES_LARGE_INTEGERS = (
        "equates_large_integers",
        _OPENVINO,
        "OpenVINO compares int32 in float32, in which neighbours beyond 2**24 are equal",
    )
    EXCHANGES_CONSTANT_AND_TRANSPOSE = (
        "exchanges_constant_and_transpose",
        _LITERT_CONVERTER,
        "LiteRT's converter moves a transpose behind a difference or a quotient, and exchanges the "
        "operands where the first is a constant of one number, or of as many as the result",
    )
    EXTREME_KEEPS_A_NAN_OF_THE_SECOND = (
        "extreme_keeps_a_nan_of_the_second",
        _OPENVINO,
        "OpenVINO's Maximum and Minimum of a NaN and a number are the second operand",
    )
    EXTREMES_FROM_A_FINITE_NUMBER = (
        "extremes_from_a_finite_number",
        _OPENVINO,
        "OpenVINO's Max and Min of nothing but infinities are the largest finite number, with the "
        "sign of these",
    )
    FACTORS_REPEAT_IN_PRODUCTS = (
        "factors_repeat_in_products",
        _LITERT_CONVERTER,
        "LiteRT's converter multiplies a constant matrix by the constant vector that scales its "
        "other operand, also where that vector repeats the operand: it fails, or the file does not "
        "load",
    )
    FEW_FUNCTIONS_OF_FLOAT16 = (
        "few_functions_of_float16",
        _ONNX_RUNTIME + _OPENVINO,
        "ONNX Runtime and OpenVINO lack, or get wrong, the functions of float16 that are neither "
        "arithmetic nor elementary: these are computed in float32",
    )
    INFINITE_EXP_OF_NAN = (
        "infinite_exp_of_nan",
        _OPENVINO,
        "OpenVINO's Exp of NaN is infinite",
    )
    INFINITE_SUBNORMALS = (
        "infinite_subnormals",
        _OPENVINO,
        "OpenVINO's IsFinite takes a number below the smallest normal one for infinite",
    )
    KEEPS_WHAT_16_BITS_LOSE = (
        "keeps_what_16_bits_lose",
        _OPENVINO,
        "OpenVINO computes integers of 16 bits in int32: a Cast to them does not wrap around",
    )
    LISTS_OF_KNOWN_SHAPE = (
        "lists_of_known_shape",
        _LITERT_CONVERTER,
        "LiteRT's converter refuses a list of arrays (TensorListReserve) whose shape is not known "
        "at conversion",
    )
    MAGNITUDES_AS_FLOATS = (
        "magnitudes_as_floats",
        _TFJS,
        "TensorFlow.js takes Abs of int32 in float32, which rounds what is beyond 2**24",
    )
    MOVES_CASTS = (
        "moves_casts",
        _LITERT_CONVERTER,
        "LiteRT's converter moves the Cast of a float of 16 bits, or of uint32, behind the op that "
        "moves its elements, and LiteRT lacks that op of the dtype; it moves the Cast of a bool "
        "behind a comparison, which LiteRT lacks of bools",
    )
    NAN_IN_PARTS_OF_SOFTMAX = (
        "nan_in_parts_of_softmax",
        _OPENVINO,
        "OpenVINO's Softmax of a row with a NaN or an infinity is NaN there, and 0 elsewhere",
    )
    NO_ATAN2_OF_SCALAR = (
        "no_atan2_of_scalar",
        _LITERT_CONVERTER,
        "LiteRT's converter fails on an Atan2 of an array and a scalar",
    )
    NO_AXES_IN_SLICES = (
        "no_axes_in_slices",
        _DTENSOR,
        "DTensor ends the process at a StridedSlice that adds a dimension, and takes wrong parts "
        "at one that drops a dimension",
    )
    NO_BAD_INDICES = (
        "no_bad_indices",
        _LITERT + _ONNX_RUNTIME + _OPENVINO,
        "LiteRT, ONNX Runtime and OpenVINO ignore the bad_indices_policy of a scatter: every index "
        "has to be in bounds",
    )
    NO_BITS_OF_OPEN_SHAPE = (
        "no_bits_of_open_shape",
        _OPENVINO,
        "OpenVINO computes integers among ops of floats in float32 where a dimension is open: the "
        "bits of floats lose the lowest ones",
    )
    NO_CONCAT_OF_PARTS = (
        "no_concat_of_parts",
        _DTENSOR,
        "DTensor joins nothing along a dimension that the reader of the result wants in parts",
    )
    NO_CONSTANT_BY_OPEN_MATRIX = (
        "no_constant_by_open_matrix",
        _LITERT_CONVERTER,
        "LiteRT's converter turns the product of a constant matrix and one of an open size round, "
        "and writes a reshape of the result without the open size: LiteRT does not load the file",
    )
    NO_CONVOLUTION_IN_GROUPS = (
        "no_convolution_in_groups",
        _TFJS,
        "TensorFlow.js refuses a Conv2D whose features are in groups: it has a depthwise op, and "
        "other groups are convolved one by one",
    )
    NO_FOLDING = (
        "no_folding",
        _OPENVINO_CONVERTER + _TFJS,
        "OpenVINO and TensorFlow.js do not compute at conversion what depends on no argument: "
        "small results are made constants of the graph, for the engine may lack an op of these, "
        "or fail at a loop over constants",
    )
    NO_GATHER_IN_BATCHES = (
        "no_gather_in_batches",
        _OPENVINO_CONVERTER,
        "OpenVINO's converter moves a transpose behind a GatherV2 of batches, and refuses the "
        "result, or reads other elements",
    )
    NO_GATHER_OF_ONE_BATCH = (
        "no_gather_of_one_batch",
        _OPENVINO,
        "OpenVINO's GatherV2 of batches reads memory that is not the array's, or ends the process, "
        "where it is of one batch",
    )
    NO_INTEGER_SQUARE = (
        "no_integer_square",
        _LITERT_CONVERTER,
        "LiteRT's converter leaves SQUARE and NEG in float32 where it quantises all ops",
    )
    NO_INTEGERS_OF_THREE_DIMENSIONS = (
        "no_integers_of_three_dimensions",
        _OPENVINO,
        "OpenVINO merges a product or sum with a number into the reduction of integers before it, "
        "and takes other elements where that is along the middle one of three dimensions, or along "
        "neighbours of them",
    )
    NO_LISTS_IN_FUNCTIONS = (
        "no_lists_in_functions",
        _LITERT_CONVERTER,
        "LiteRT's converter refuses a list of arrays (TensorListReserve) in a function that is "
        "called several times: a function that writes lists is lowered at each call",
    )
    NO_OPEN_NUMBER_OF_GROUPS = (
        "no_open_number_of_groups",
        _LITERT_CONVERTER + _ONNX + _OPENVINO_CONVERTER,
        "The converters of LiteRT and OpenVINO refuse a depthwise convolution of an unknown number "
        "of channels; the groups of ONNX's Conv are a number of the file",
    )
    NO_PADDINGS_IN_NUMBERS = (
        "no_paddings_in_numbers",
        _OPENVINO_CONVERTER,
        "OpenVINO's converter reads a padding of a depthwise and of a transposed convolution only "
        "by its name, VALID or SAME",
    )
    NO_PRODUCT_OF_VECTORS = (
        "no_product_of_vectors",
        _OPENVINO,
        "OpenVINO ends the process at a MatMul of a matrix of one row and a matrix of one column",
    )
    NO_ROW_BY_COMPUTED_MATRIX = (
        "no_row_by_computed_matrix",
        _LITERT_CONVERTER,
        "LiteRT's converter takes the reshape of a vector out of its product with a matrix that is "
        "no constant, and then refuses the result; a matrix by a vector is right",
    )
    NO_SCALAR_CHOICE = (
        "no_scalar_choice",
        _DTENSOR,
        "DTensor ends the process at a SelectV2 of arrays whose condition is a scalar",
    )
    NO_STRIDES_OF_DILATED = (
        "no_strides_of_dilated",
        _TFJS,
        "TensorFlow.js refuses a convolution with strides and a dilation: its kernel gets zeros",
    )
    NO_UNPACK_OF_PARTS = (
        "no_unpack_of_parts",
        _DTENSOR,
        "DTensor cannot give the results of an Unpack other parts than it has",
    )
    ONE_REVERSE_AT_A_TIME = (
        "one_reverse_at_a_time",
        _OPENVINO_CONVERTER,
        "OpenVINO's converter refuses a ReverseV2 along several dimensions",
    )
    ORDERS_INTEGERS_AS_FLOATS = (
        "orders_integers_as_floats",
        _OPENVINO,
        "OpenVINO reverses int32, and takes the largest and the smallest, in float32, in which "
        "neighbours beyond 2**24 are equal",
    )
    OVERWRITES_VECTORS = (
        "overwrites_vectors",
        _OPENVINO,
        "OpenVINO's Abs of a vector that a ConcatV2 or a Pack made writes into the vector itself, "
        "which others read",
    )
    PADS_INTEGERS_AS_FLOATS = (
        "pads_integers_as_floats",
        _OPENVINO,
        "OpenVINO pads int32 with a number of float32: the largest int32 becomes the smallest",
    )
    ONE_WINDOW_OF_ONE_FEATURE = (
        "one_window_of_one_feature",
        _TENSORFLOW,
        "TensorFlow's oneDNN kernels of Conv2D and Conv3D give wrong numbers or foreign memory if "
        "the filter has one input feature, and the last axis has one window and a stride, and no "
        "other axis has a stride",
    )
    PADS_LOSE_SIZES = (
        "pads_lose_sizes",
        _LITERT_CONVERTER,
        "LiteRT's converter knows no size of what is padded or cut by computed sizes, and refuses "
        "a convolution of an unknown number of channels. It knows those sizes of a Reshape that "
        "are numbers",
    )
    PADS_WITH_CONSTANTS_ALONE = (
        "pads_with_constants_alone",
        _OPENVINO,
        "OpenVINO pads with zeros where the value depends on an argument of the graph",
    )
    PARTS_MOVE_AT_IDENTITY = (
        "parts_move_at_identity",
        _DTENSOR,
        "DTensor moves parts between devices at an Identity, and not at a Transpose, a GatherV2 "
        "or a Pad",
    )
    RELU_TAKES_GELU_APART = (
        "relu_takes_gelu_apart",
        _LITERT_CONVERTER,
        "LiteRT's converter merges a Relu into the product that ends a gelu by the error function "
        "before it looks for the gelu, and LiteRT has no op for the error function",
    )
    SEEKS_STARTS_OF_SLICES = (
        "seeks_starts_of_slices",
        _TENSORFLOW_XLA,
        "TensorFlow's translation to XLA looks for the value of a Slice's start in the operands of "
        "loops and branches, and ends the process if that value is made of sorted ones; the start "
        "of an XlaDynamicSlice may be any value",
    )
    TAKES_CONSTANT_BRANCHES = (
        "takes_constant_branches",
        _TFJS,
        "TensorFlow.js takes the result of a branch that is a constant, whatever the condition is",
    )
    UPDATES_IN_PLACE = (
        "updates_in_place",
        _TFJS,
        "TensorFlow.js writes what a TensorScatterUpdate writes into the memory of its operand, "
        "which may be a constant, an argument, or read by other ops",
    )


# Every graph without XLA ops avoids these, whichever engine reads it.
AVOIDED_WITHOUT_XLA = frozenset(
    {
        Quirk.CARRIES_IN_TURN,
        Quirk.NO_BAD_INDICES,
        Quirk.NO_OPEN_NUMBER_OF_GROUPS,
        Quirk.NO_PADDINGS_IN_NUMBERS,
        Quirk.NO_PRODUCT_OF_VECTORS,
        Quirk.ONE_REVERSE_AT_A_TIME,
    }
)


def quirks_of(target: str) -> frozenset[Quirk]:
    """The quirks of what reads the graphs of a target, by the target's name."""
    return frozenset(q for q in Quirk if any(fault.target == target for fault in q.faults))
