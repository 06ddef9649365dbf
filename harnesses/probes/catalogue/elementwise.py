"""Ops of each element alone."""

from __future__ import annotations

import tensorflow as tf

from harnesses.probes.probe import (
    ABOVE_ONE,
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    FRACTION,
    INTEGERS,
    NOT_ZERO,
    NUMBERS,
    POSITIVE,
    REALS,
    UNIT,
    Of,
    Probe,
    of_ops,
)

_X = (Of(),)
_XY = (Of(), Of())
_INEXACT = (*FLOATS, *COMPLEX)
_ANALYTIC = ("Cos", "Exp", "Expm1", "Sigmoid", "Sin", "Sinh", "Cosh", "Tan", "Tanh")
# What their results are tried with large numbers for is of no use: they are infinite.
_OF_PAIR = ("Sub", "Mul")
_ORDERS = ("Less", "LessEqual", "Greater", "GreaterEqual")
_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")


def probes() -> list[Probe]:
    """Uses of one tensor, of two, of more, and casts."""
    return [*_of_one(), *_of_two(), *_of_more(), *_casts()]


def _of_one() -> list[Probe]:
    return [
        *of_ops(_ANALYTIC, _X, _INEXACT),
        *of_ops(("Asinh", "Atan"), _X, _INEXACT),
        *of_ops(("Acos", "Asin", "Atanh"), (Of(range=UNIT),), _INEXACT),
        *of_ops(("Log", "Log1p", "Rsqrt", "Sqrt"), (Of(range=POSITIVE),), _INEXACT),
        *of_ops(("Acosh",), (Of(range=ABOVE_ONE),), _INEXACT),
        *of_ops(("Reciprocal",), (Of(range=NOT_ZERO),), _INEXACT),
        *of_ops(("Erf", "Erfc", "BesselI0e", "BesselI1e", "Elu"), _X, FLOATS),
        *of_ops(("Digamma", "Lgamma"), _X, FLOATS),
        *of_ops(("Erfinv",), (Of(range=UNIT),), FLOATS),
        *of_ops(("Ceil", "Floor", "Rint", "IsFinite", "IsInf", "IsNan"), _X, FLOATS),
        *of_ops(("Abs", "Sign", "Neg", "Square", "Round"), _X, NUMBERS),
        *of_ops(("Relu", "Relu6"), _X, REALS),
        *of_ops(("LeakyRelu",), _X, FLOATS, alpha=0.125),
        *of_ops(("LogicalNot",), _X, BOOL),
        *of_ops(("Invert", "PopulationCount"), _X, INTEGERS),
        *of_ops(("Conj", "Real", "Imag"), _X, COMPLEX),
        *of_ops(("Identity", "ZerosLike", "OnesLike"), _X, ALL),
    ]


def _of_two() -> list[Probe]:
    safe = (Of(), Of(range=NOT_ZERO, edges=False))
    positive = (Of(range=(0.0, 9.0), edges=False), Of(range=NOT_ZERO, edges=False))
    shifts = (Of(), Of(range=(0.0, 6.0), edges=False))
    row = (Of(), Of((4,)))
    scalar = (Of(), Of(()))
    return [
        *of_ops(("AddV2", *_OF_PAIR), _XY, NUMBERS),
        *of_ops(("AddV2", *_OF_PAIR), row, NUMBERS, "with a row"),
        *of_ops(
            ("AddV2", *_OF_PAIR),
            (Of((2, 1, 2, 3, 1, 2)), Of((2,))),
            ("int32", "float32"),
            "of six dimensions",
        ),
        *of_ops(("Maximum", "Minimum"), _XY, REALS),
        *of_ops(("SquaredDifference",), _XY, NUMBERS),
        *of_ops(("Equal", "NotEqual"), _XY, ALL),
        *of_ops(_ORDERS, _XY, REALS),
        *of_ops(("RealDiv",), safe, _INEXACT),
        *of_ops(("Xdivy", "Xlogy"), (Of(), Of(range=POSITIVE)), _INEXACT),
        *of_ops(("FloorDiv", "FloorMod"), safe, REALS),
        *of_ops(("FloorDiv", "FloorMod"), positive, REALS, "of numbers of one sign"),
        *of_ops(("TruncateDiv", "TruncateMod"), safe, REALS),
        *of_ops(("Pow",), (Of(range=POSITIVE), Of(range=(0.0, 3.0), edges=False)), NUMBERS),
        *of_ops(("Atan2",), _XY, FLOATS),
        *of_ops(("Atan2",), scalar, FLOATS, "of an array and a scalar"),
        *of_ops(("NextAfter",), _XY, FLOATS),
        *of_ops(("LogicalAnd", "LogicalOr"), _XY, BOOL),
        *of_ops(_BITWISE, _XY, INTEGERS),
        *of_ops(("LeftShift", "RightShift"), shifts, INTEGERS),
        Probe("RightShift", _shifted_in_range, shifts, INTEGERS, "by a distance that is checked"),
        *of_ops(
            ("Igamma", "Igammac", "IgammaGradA"), (Of(range=POSITIVE), Of(range=POSITIVE)), FLOATS
        ),
        *of_ops(("Zeta",), (Of(range=(1.5, 4.0)), Of(range=POSITIVE)), FLOATS),
        *of_ops(("Complex",), _XY, ("float32", "float64")),
    ]


def _of_more() -> list[Probe]:
    condition = Of(dtype="bool")
    return [
        *of_ops(("Betainc",), (Of(range=POSITIVE), Of(range=POSITIVE), Of(range=FRACTION)), FLOATS),
        _chosen("", condition, Of(), Of()),
        _chosen("by a scalar", Of((), "bool"), Of(), Of()),
        _chosen("of a scalar", condition, Of(), Of(())),
        Probe(
            "Minimum",
            _between_0_and_6,
            (Of(range=(-9.0, 9.0)),),
            ("int32", "float32"),
            "of 6 and a maximum of 0",
        ),
        Probe("AddN", lambda x, y: tf.add_n([x, y]), _XY, NUMBERS),
    ]


def _shifted_in_range(x: tf.Tensor, distance: tf.Tensor) -> tf.Tensor:
    last = tf.constant(8 * x.dtype.size - 1, x.dtype)
    beyond = tf.raw_ops.Greater(x=distance, y=last)
    shifted = tf.raw_ops.RightShift(x=x, y=tf.raw_ops.Minimum(x=distance, y=last))
    return tf.raw_ops.SelectV2(condition=beyond, t=tf.zeros_like(x), e=shifted)


def _between_0_and_6(x: tf.Tensor) -> tf.Tensor:
    largest = tf.raw_ops.Maximum(x=x, y=tf.zeros([], x.dtype))
    return tf.raw_ops.Minimum(x=largest, y=tf.constant(6, x.dtype))


def _chosen(use: str, condition: Of, x: Of, y: Of) -> Probe:
    # The dtype that is tried is that of the choices, although the condition comes first.
    return Probe(
        "SelectV2",
        lambda c, x, y: tf.raw_ops.SelectV2(condition=c, t=x, e=y),
        (condition, x, y),
        ALL,
        use,
    )


def _casts() -> list[Probe]:
    """A cast of each dtype: to the float or the integer that stands for it, and to each other."""
    plain = Probe("Cast", _cast(""), (Of(edges=False),), ALL)
    return [
        plain,
        *(
            Probe(
                "Cast", _cast(to), (Of(edges=False),), tuple(d for d in ALL if d != to), f"to {to}"
            )
            for to in ALL
        ),
        _bitcast(
            "",
            {
                **dict.fromkeys(("float32", "uint32"), "int32"),
                "int32": "float32",
                "float64": "int64",
                "int64": "float64",
                "uint64": "int64",
                "float16": "int16",
                "bfloat16": "int16",
                "int16": "uint16",
                "uint16": "int16",
                "int8": "uint8",
                "uint8": "int8",
            },
        ),
    ]


def _cast(to: str):
    def cast(x: tf.Tensor) -> tf.Tensor:
        other = "int32" if x.dtype.is_floating or x.dtype == tf.bool else "float32"
        return tf.raw_ops.Cast(x=x, DstT=tf.as_dtype(to or other))

    return cast


def _bitcast(use: str, to: dict[str, str]) -> Probe:
    def bitcast(x: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.Bitcast(input=x, type=tf.as_dtype(to[x.dtype.name]))

    return Probe("Bitcast", bitcast, (Of(edges=False),), tuple(to), use)
