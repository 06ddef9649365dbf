"""Arithmetic, comparisons and special functions: TensorFlow's values, dtypes and errors."""

from __future__ import annotations

import numpy as np

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

NAN, INF = np.nan, np.inf
EVERYWHERE = [-INF, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.5, 2.5, 30.0, INF, NAN]
POSITIVE = [0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 20.0, INF, NAN]
UNIT = [-1.0, -0.75, -0.1, 0.0, 0.3, 0.9, 1.0, 2.0, NAN]

# A name and where it is evaluated: functions that are not finite everywhere have their own points.
UNARY = {
    "abs": EVERYWHERE, "math.acos": UNIT, "math.acosh": POSITIVE, "math.asin": UNIT,
    "math.asinh": EVERYWHERE, "math.atan": EVERYWHERE, "math.atanh": UNIT, "math.ceil": EVERYWHERE,
    "cos": EVERYWHERE, "math.cosh": EVERYWHERE, "math.digamma": POSITIVE,
    "math.erf": [-3.0, -0.5, -0.0, 0.25, 5.0, NAN],
    "math.erfc": EVERYWHERE, "math.erfinv": UNIT, "math.erfcinv": [0.1, 0.5, 1.0, 1.9, 2.0],
    "exp": EVERYWHERE, "math.expm1": EVERYWHERE, "math.floor": EVERYWHERE,
    "math.is_finite": EVERYWHERE, "math.is_inf": EVERYWHERE, "math.is_nan": EVERYWHERE,
    "math.lgamma": POSITIVE, "math.log": POSITIVE, "math.log1p": POSITIVE,
    "math.log_sigmoid": EVERYWHERE, "negative": EVERYWHERE, "math.ndtri": [0.0, 0.1, 0.5, 0.9, 1.0],
    "math.reciprocal": EVERYWHERE, "math.reciprocal_no_nan": EVERYWHERE, "math.rint": EVERYWHERE,
    "round": EVERYWHERE, "math.rsqrt": POSITIVE, "sigmoid": EVERYWHERE, "sign": EVERYWHERE,
    "sin": EVERYWHERE, "math.sinh": EVERYWHERE, "math.softplus": EVERYWHERE,
    "math.softsign": [-2.0, 0.0, 3.0], "sqrt": POSITIVE, "square": EVERYWHERE,
    "tan": [-1.0, 0.0, 0.5, NAN], "tanh": EVERYWHERE,
    "math.bessel_i0": [-3.0, 0.0, 1.0, 5.0], "math.bessel_i0e": [-3.0, 0.0, 1.0, 50.0],
    "math.bessel_i1": [-3.0, 0.0, 1.0, 5.0], "math.bessel_i1e": [-3.0, 0.0, 1.0, 50.0],
}  # fmt: skip
# TensorFlow's float32 kernels approximate these, further from the exact value than ours.
LOOSE = {
    "math.erfinv": 2e-5, "math.erfcinv": 2e-5, "math.digamma": 1e-5, "math.lgamma": 1e-5,
    "math.ndtri": 1e-5, "math.acosh": 1e-5, "math.atanh": 1e-5, "math.erfc": 1e-5,
}  # fmt: skip

BINARY = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "math.floordiv",
    "math.floormod",
    "math.squared_difference",
    "truncatemod",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "pow",
    "math.truediv",
    "divide",
]
FLOAT_BINARY = [
    "math.xlogy",
    "math.xlog1py",
    "math.xdivy",
    "math.divide_no_nan",
    "math.multiply_no_nan",
    "atan2",
    "math.nextafter",
]


def _of(tf, name):
    for part in name.split("."):
        tf = getattr(tf, part)
    return tf


def _unary(name, points, dtype):
    def program(tf):
        return _of(tf, name)(tf.constant(points, dtype))

    rtol = {"float32": LOOSE.get(name), "float64": 1e-7 if name == "math.erfcinv" else None}[dtype]
    atol = 1e-6 if dtype == "float32" else 1e-13
    # On JAX each is a program that XLA compiles: float64 is for what depends on the dtype.
    only = SUBSTRATES if dtype == "float32" or name in LOOSE else ("numpy",)
    return Case(f"{name}-{dtype}", program, rtol=rtol, atol=atol, only=only)


def _binary(name, x, y, dtype):
    def program(tf):
        return _of(tf, name)(tf.constant(x, dtype)[:, None], tf.constant(y, dtype))

    return Case(f"{name}-{dtype}-{len(x)}", program, atol=1e-6)


NUMBERS = [-2.5, -1.0, 0.0, 1.0, 3.5]
CASES = (
    [_unary(name, points, d) for name, points in UNARY.items() for d in ("float32", "float64")]
    + [_binary(name, [-7, -1, 0, 5], [1, 2, 3], "int32") for name in BINARY]
    + [
        _binary(name, NUMBERS, [0.5, 2.0, INF, NAN], "float32")
        for name in BINARY
        if "mod" not in name
    ]
    + [
        _binary(name, NUMBERS, [-2.0, 0.5, 3.0], "float32")
        for name in ("math.floormod", "truncatemod")
    ]
    + [_binary(name, [0.0, 1.0, 2.5], [0.0, 0.5, 3.0, INF], "float32") for name in FLOAT_BINARY]
    + [
        _binary(name, [1.0, 2.5, 4.0], [0.0, 0.5, 3.0, 9.0], "float64")
        for name in ("math.igamma", "math.igammac")
    ]
)


def f32(tf):
    return tf.constant([1.0, 2.0])


def i32(tf):
    return tf.constant([1, 2])


# Which dtype an operand takes, and what is refused. An operation on JAX's own arrays is JAX's, so
# operators are asked of NumPy's tensors alone.
RULES = [
    Case("tensor and np.float64 scalar", lambda tf: tf.add(f32(tf), np.float64(1))),
    Case("tensor and float64 array", lambda tf: tf.add(f32(tf), np.array([1.0, 2.0]))),
    Case("float tensor and int array", lambda tf: tf.add(f32(tf), np.array([1, 2]))),
    Case("tensor and Python int", lambda tf: tf.add(f32(tf), 1)),
    Case("Python int and tensor", lambda tf: tf.add(1, f32(tf))),
    Case("tensor and bool", lambda tf: tf.add(f32(tf), True)),
    Case("tensor and list", lambda tf: tf.add(f32(tf), [1, 2])),
    Case("int tensor and Python float", lambda tf: tf.add(i32(tf), 1.5)),
    Case("two dtypes", lambda tf: tf.add(f32(tf), tf.constant([1.0, 2.0], tf.float64))),
    Case("float tensor and complex number", lambda tf: tf.add(f32(tf), 1j)),
    Case("shapes that do not broadcast", lambda tf: tf.add(f32(tf), tf.constant([1.0, 2.0, 3.0]))),
    Case("tensor and None", lambda tf: tf.add(f32(tf), None)),
    Case("Python numbers", lambda tf: [tf.multiply(2.0, 3), tf.add(1, 2)]),
    Case("Python int and float", lambda tf: tf.add(1, 2.0)),
    Case("np.float64 scalars", lambda tf: tf.add(np.float64(1), np.float64(2))),
    Case("Python float and np.float64", lambda tf: tf.add(1.0, np.float64(2))),
    Case(
        "quotient of small integers",
        lambda tf: tf.divide(tf.constant(1, tf.int16), tf.constant(2, tf.int16)),
    ),
    Case("quotient of Python ints", lambda tf: tf.divide(1, 2)),
    Case(
        "quotient of two dtypes", lambda tf: tf.math.truediv(f32(tf), tf.constant(1.0, tf.float64))
    ),
    Case("integer division by zero", lambda tf: tf.math.floordiv(i32(tf), 0)),
    Case("integer remainder by zero", lambda tf: tf.math.floormod(i32(tf), 0)),
    Case("negative integer power", lambda tf: tf.pow(i32(tf), -1)),
    Case("power of Python int and float", lambda tf: tf.pow(2, 3.0)),
    Case("exp of integers", lambda tf: tf.exp(i32(tf))),
    Case("sqrt of a Python int", lambda tf: tf.sqrt(4)),
    Case("floor of integers", lambda tf: tf.floor(i32(tf))),
    Case("negative of a bool", lambda tf: tf.negative(True)),
    Case("abs of complex", lambda tf: tf.abs(tf.constant(3 + 4j))),
    Case("abs of uint8", lambda tf: tf.abs(tf.constant(3, tf.uint8))),
    Case("round to even", lambda tf: tf.round([0.5, 1.5, 2.5, -0.5])),
    Case("round of integers", lambda tf: tf.round(i32(tf))),
    Case("less of bools", lambda tf: tf.less(True, False)),
    Case("logical_and of ints", lambda tf: tf.logical_and(1, 0)),
    Case("logical_and of int tensors", lambda tf: tf.logical_and(i32(tf), i32(tf))),
    Case(
        "logical table",
        lambda tf: [
            f(tf.constant([True, True, False, False]), [True, False, True, False])
            for f in (tf.logical_and, tf.logical_or, tf.math.logical_xor)
        ],
    ),
    Case(
        "complex parts",
        lambda tf: [
            f(tf.complex([1.0, -2.0], 3.0))
            for f in (tf.math.real, tf.math.imag, tf.math.angle, tf.math.conj, tf.abs)
        ],
    ),
    Case("lgamma at minus infinity", lambda tf: tf.math.lgamma([-INF, INF])),
    Case("bits of another size", lambda tf: tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.int32)),
    Case("limit of another dtype", lambda tf: tf.clip_by_value(i32(tf), tf.constant(0.5), 2)),
    Case("limit that is a float", lambda tf: tf.clip_by_value(i32(tf), 0.5, 2)),
    Case("static division by zero", lambda tf: tf.math.floordiv(7, 0)),
    Case(
        "complex of infinite parts",
        lambda tf: tf.complex([1.0, np.inf, -np.inf, 0.0], [np.inf, 2.0, np.nan, -0.0]),
    ),
    Case("complex of two dtypes", lambda tf: tf.complex(f32(tf), tf.constant(1.0, tf.float64))),
    Case("add_n", lambda tf: tf.add_n([f32(tf), f32(tf), f32(tf)])),
    Case("add_n of two shapes", lambda tf: tf.add_n([f32(tf), tf.constant(1.0)])),
    Case("add_n of nothing", lambda tf: tf.add_n([])),
    Case(
        "bits",
        lambda tf: [
            f(tf.constant([12, 5]), tf.constant([10, 2]))
            for f in (
                tf.bitwise.bitwise_and,
                tf.bitwise.bitwise_or,
                tf.bitwise.bitwise_xor,
                tf.bitwise.left_shift,
                tf.bitwise.right_shift,
            )
        ],
    ),
    Case("invert", lambda tf: tf.bitwise.invert(tf.constant([0, 7], tf.int8))),
    Case(
        "bitcast",
        lambda tf: [
            tf.bitcast(f32(tf), tf.int32),
            tf.bitcast(f32(tf), tf.uint8),
            tf.bitcast(tf.constant([[1, 2]]), tf.int64),
        ],
    ),
    Case(
        "polygamma",
        lambda tf: tf.math.polygamma([0.0, 1.0, 2.0, 1.5], [0.7, 1.5, 3.0, 1.0]),
        rtol=1e-5,
    ),
    Case("zeta", lambda tf: tf.math.zeta([2.0, 3.5], [1.0, 2.5]), rtol=1e-5),
    Case("betainc", lambda tf: tf.math.betainc([1.0, 2.0], [0.5, 3.0], [0.2, 0.9]), rtol=1e-5),
    Case(
        "increasing",
        lambda tf: [
            f(tf.constant(v))
            for f in (tf.math.is_strictly_increasing, tf.math.is_non_decreasing)
            for v in ([1, 2, 2], [1, 2, 3], [3, 1], [1])
        ],
    ),
    Case(
        "float16 keeps its dtype",
        lambda tf: [
            f(tf.constant([0.5, 2.0], tf.float16))
            for f in (tf.exp, tf.math.lgamma, tf.math.erf, tf.math.softplus)
        ],
    ),
    Case(
        "bfloat16 keeps its dtype",
        lambda tf: [
            f(tf.constant([0.5, 2.0], tf.bfloat16)) for f in (tf.exp, tf.sqrt, tf.math.log)
        ],
    ),
]

CONVERSIONS = [
    Case(f"convert {name}", lambda tf, value=value: tf.convert_to_tensor(value))
    for name, value in {
        "ints and floats": [1, 2.5],
        "ints and bools": [1, True],
        "nothing": [],
        "a large int": 2**40,
        "complex": 1j,
        "np.float32": np.float32(1),
        "int64 array": np.array([1, 2]),
        "np.int32": np.int32(3),
        "None": None,
        "a None inside": [None],
        "ragged": [[1, 2], [3]],
        "a string": "abc",
        "strings": np.array(["a", "b"]),
        "np.float64 scalars": [np.float64(1.0)],
        "int and np.float64": [1, np.float64(2.0)],
        "a range": range(3),
        "a tuple": (1, 2),
        "bools": [True, False],
        "empty array": np.zeros([0, 3]),
    }.items()
] + [
    Case("convert tensors", lambda tf: tf.convert_to_tensor([f32(tf), f32(tf)])),
    Case("convert a tensor and an int", lambda tf: tf.convert_to_tensor([f32(tf)[0], 2])),
    Case(
        "convert np.float64 and a tensor",
        lambda tf: tf.convert_to_tensor([np.float64(1), f32(tf)[0]]),
    ),
    Case("convert a TensorShape", lambda tf: tf.convert_to_tensor(tf.TensorShape([1, 2]))),
    Case("float to an int dtype", lambda tf: tf.constant(1.5, tf.int32)),
    Case("float array to an int dtype", lambda tf: tf.constant(np.array([1.5]), tf.int32)),
    Case("int to a float dtype", lambda tf: tf.constant(1, tf.float32)),
    Case("complex to a float dtype", lambda tf: tf.constant(1j, tf.float32)),
    Case("tensor to another dtype", lambda tf: tf.constant(f32(tf), tf.float64)),
    Case("convert a tensor to another dtype", lambda tf: tf.convert_to_tensor(f32(tf), tf.float64)),
    Case("float64 array to float32", lambda tf: tf.convert_to_tensor(np.array([1.0]), tf.float32)),
    Case("a hint", lambda tf: tf.convert_to_tensor(1, dtype_hint=tf.float64)),
    Case("a hint that does not fit", lambda tf: tf.convert_to_tensor(1.5, dtype_hint=tf.int32)),
    Case(
        "a hint for an array",
        lambda tf: tf.convert_to_tensor(np.array([1.0]), dtype_hint=tf.float32),
    ),
    Case("ints wrap", lambda tf: [tf.constant(300, tf.uint8), tf.constant(-1, tf.uint8)]),
    Case("constant of a shape", lambda tf: tf.constant([1, 2, 3, 4], shape=[2, 2])),
    Case("constant filled", lambda tf: tf.constant(1, shape=[2, 2])),
    Case("constant of a wrong shape", lambda tf: tf.constant([1, 2], shape=[2, 2])),
    Case("cast floats", lambda tf: tf.cast([1.7, -1.7, 0.0], tf.int32)),
    Case("cast what does not fit", lambda tf: tf.cast([NAN, INF, 3e9], tf.int32), only=("numpy",)),
    Case("cast complex", lambda tf: tf.cast(1 + 2j, tf.float32)),
    Case("cast to bool", lambda tf: tf.cast([0.5, 0.0], tf.bool)),
    Case("cast ints wrap", lambda tf: tf.cast([300, -1], tf.uint8)),
    Case("cast by name", lambda tf: tf.cast(1, "float64")),
    Case("saturate", lambda tf: tf.saturate_cast([300.0, -1.0], tf.uint8)),
    Case("saturate to int32", lambda tf: tf.saturate_cast([3e9, -3e9], tf.int32)),
]

OPERATORS = [
    Case(
        "operators",
        lambda tf: [
            f32(tf) + np.float64(1),
            np.float64(2) * f32(tf),
            np.array([1.0, 2.0]) - f32(tf),
            1 - f32(tf),
            f32(tf) / 2,
            f32(tf) // 2.0,
            -f32(tf),
            abs(f32(tf)),
            f32(tf) ** 2,
            2 ** f32(tf),
            f32(tf) % 2,
            i32(tf) / i32(tf),
            i32(tf) & i32(tf),
            i32(tf) | 4,
            i32(tf) ^ 1,
            ~i32(tf),
            f32(tf) < 2,
            f32(tf) == 1.0,
            f32(tf) != 1.0,
            True & tf.constant(True),
        ],
    ),
    Case("equals None", lambda tf: [f32(tf) == None, f32(tf) != None]),  # noqa: E711
    Case("equals another shape", lambda tf: f32(tf) == tf.constant([1.0, 2.0, 3.0])),
    Case("equals another dtype", lambda tf: f32(tf) == tf.constant([1.0, 2.0], tf.float64)),
    Case("Python float + int tensor", lambda tf: 1.5 + i32(tf)),
    Case("int tensor + Python float", lambda tf: i32(tf) + 1.5),
    Case(
        "slices",
        lambda tf: [
            f32(tf)[0],
            f32(tf)[-1],
            f32(tf)[::-1],
            f32(tf)[..., tf.newaxis],
            f32(tf)[tf.constant(1)],
            f32(tf)[tf.constant(0) : tf.constant(1)],
            f32(tf)[tf.constant([True, False])],
        ],
    ),
    Case("a slice outside", lambda tf: f32(tf)[5]),
    Case("too many slices", lambda tf: f32(tf)[0, 1]),
    Case("bool of many", lambda tf: bool(f32(tf))),
    Case(
        "assigning to an element",
        lambda tf: (
            f32(tf).__setitem__(0, 1.0)
            if hasattr(f32(tf), "__setitem__")
            else (_ for _ in ()).throw(TypeError)
        ),
    ),
    Case("printed", lambda tf: [str(f32(tf)), repr(tf.constant(1)), f"{f32(tf)[0]:.2f}"]),
    Case("iteration", lambda tf: [x + np.float64(1) for x in f32(tf)]),
]


@over(CASES)
def test_functions(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(RULES)
def test_rules(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(CONVERSIONS)
def test_conversions(case, substrate):
    assert_as_tensorflow(case, substrate)


@over([Case(c.name, c.program, c.rtol, c.atol, ("numpy",)) for c in OPERATORS])
def test_operators(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_numpy_writes_into_arrays_by_way_of_its_own_functions():
    tf = tf_of("numpy")
    x, mask = tf.constant([1.0, NAN]), tf.constant([True, False])
    assert np.isclose(x, x, equal_nan=True).all()
    written = np.zeros(2, np.float32)
    np.add(x, 1, out=written, where=mask)
    np.testing.assert_array_equal(written, [2, 0])
    into = tf.constant([0.0, 0.0])
    np.add([1.0, 2.0], 1, out=into)
    np.testing.assert_array_equal(into, [2, 3])
