"""Variables, modules and scopes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of


def program_of_a_module(tf):
    class Dense(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            self.w = tf.Variable(tf.ones([2, 2]), name="w")
            self.b = [tf.Variable(0.0, trainable=False), {"x": tf.Variable(1)}]
            self.again = self.w

    class Both(tf.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Dense(), Dense("other")

    both = Both()
    return [
        both.name,
        both.second.name,
        str(len(both.variables)),
        str(len(both.trainable_variables)),
        str(len(both.submodules)),
        [m.name for m in both.submodules],
    ]


CASES = [
    Case("a module", program_of_a_module),
    Case("a module's name", lambda tf: tf.Module(name="not a name")),
    Case(
        "arithmetic",
        lambda tf: [tf.Variable([1.0, 2.0]) + 1, 2 - tf.Variable(3), tf.Variable(2.0) ** 2],
    ),
    Case("in a function", lambda tf: tf.exp(tf.Variable([1.0, 2.0]))),
    Case("slices", lambda tf: tf.Variable([1.0, 2.0])[1]),
    Case(
        "assign",
        lambda tf: [
            tf.Variable(1.0).assign(3.0).numpy(),
            tf.Variable(1.0).assign_add(2).numpy(),
            tf.Variable([1, 2]).assign_sub([1, 1]).numpy(),
        ],
    ),
    Case("assign another shape", lambda tf: tf.Variable(1.0).assign([1.0, 2.0])),
    Case(
        "assign another dtype",
        lambda tf: tf.Variable(1.0).assign(tf.constant(1, tf.int32)),
        only=("numpy",),
    ),
    Case("nothing", lambda tf: tf.Variable()),
    Case("a function", lambda tf: tf.Variable(lambda: 2.0).numpy()),
    Case("a dtype", lambda tf: tf.Variable(1, dtype=tf.float64).numpy()),
    Case("printed", lambda tf: [repr(tf.Variable([1.0, 2.0])), tf.Variable(1, name="a").name]),
    Case(
        "DType",
        lambda tf: [
            str(
                [
                    d.name,
                    d.size,
                    d.is_floating,
                    d.is_integer,
                    d.is_unsigned,
                    d.is_complex,
                    d.is_bool,
                    d.real_dtype.name,
                ]
            )
            for d in (
                tf.float16,
                tf.bfloat16,
                tf.float32,
                tf.float64,
                tf.int8,
                tf.uint16,
                tf.int64,
                tf.bool,
                tf.complex64,
                tf.complex128,
                tf.string,
            )
        ],
    ),
    Case(
        "limits",
        lambda tf: [str([float(d.min), float(d.max)]) for d in (tf.float32, tf.int32, tf.uint8)],
    ),
    Case(
        "as_dtype",
        lambda tf: [
            tf.as_dtype(d).name
            for d in ("float", "double", "half", float, bool, np.int64, np.dtype("u1"), tf.int8)
        ],
    ),
    Case("as_dtype of nothing known", lambda tf: tf.as_dtype("floaty")),
    Case("dtypes printed", lambda tf: [repr(tf.float32), str(tf.int32)]),
    Case(
        "TensorShape",
        lambda tf: [
            str(v)
            for v in (
                tf.TensorShape([2, None]),
                tf.TensorShape(None),
                tf.TensorShape([2]).concatenate([3]),
                tf.TensorShape([2, None]).merge_with([None, 3]),
                tf.TensorShape([2, 3])[1:],
                tf.TensorShape([2, 3]).num_elements(),
                tf.TensorShape([2, None]).is_compatible_with([2, 7]),
                tf.TensorShape([2, None]).is_fully_defined(),
                tf.TensorShape([1, 2]).most_specific_compatible_shape([1, 3]),
                repr(tf.TensorShape([2, None])),
                tf.TensorShape([]).rank,
                tf.TensorShape(None).rank,
                tf.TensorShape([2, 3]) == [2, 3],
                list(tf.TensorShape([4])),
            )
        ],
    ),
    Case("TensorShapes that do not merge", lambda tf: tf.TensorShape([2]).merge_with([3])),
    Case("TensorShape of a negative size", lambda tf: tf.TensorShape([-1])),
    Case("as_list of unknown", lambda tf: tf.TensorShape(None).as_list()),
    Case("len of unknown", lambda tf: len(tf.TensorShape(None))),
    Case(
        "broadcast_static_shape",
        lambda tf: tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3])),
    ),
    Case(
        "TensorSpec",
        lambda tf: [
            repr(tf.TensorSpec([None, 2], tf.int32, "x")),
            str(tf.TensorSpec([2]) == tf.TensorSpec([2])),
        ],
    ),
    Case("name_scope of no string", lambda tf: tf.name_scope(3)),
    Case(
        "nest",
        lambda tf: [
            tf.nest.flatten({"b": 1.0, "a": [2.0, (3.0,)]}),
            str(tf.nest.flatten(None)),
            str(tf.nest.flatten([None, []])),
            str(
                tf.nest.map_structure(lambda x, y: x + y, {"b": 1, "a": (2,)}, {"a": (3,), "b": 4})
            ),
            str(tf.nest.pack_sequence_as({"a": 1, "b": [2]}, [5, 6])),
            str(tf.nest.is_nested("abc")),
        ],
    ),
    Case("nest of keys that do not sort", lambda tf: tf.nest.flatten({1: 2, "a": 3})),
    Case("nest of list and tuple", lambda tf: tf.nest.assert_same_structure([1, 2], (1, 2))),
    Case("nest of two lengths", lambda tf: tf.nest.assert_same_structure([1, 2], [1])),
    Case("nest of a scalar", lambda tf: tf.nest.assert_same_structure(1, [1])),
    Case("nest of other keys", lambda tf: tf.nest.assert_same_structure({"a": 1}, {"b": 1})),
    Case("pack too few", lambda tf: tf.nest.pack_sequence_as([1, 2], [1])),
    Case("pack no sequence", lambda tf: tf.nest.pack_sequence_as([1], 1)),
    Case("pack many as one", lambda tf: tf.nest.pack_sequence_as(1, [1, 2])),
    Case("map nothing", lambda tf: tf.nest.map_structure(lambda x: x)),
    Case("map no function", lambda tf: tf.nest.map_structure(1, [1])),
    Case("map with an unknown keyword", lambda tf: tf.nest.map_structure(lambda x: x, [1], foo=1)),
] + [
    Case(
        f"debugging {name}{args}",
        lambda tf, name=name, args=args: (getattr(tf.debugging, name)(*args) and None) or "passes",
    )
    for name, args in (
        ("assert_equal", ([1, 2], [1, 2])),
        ("assert_equal", (1, 2)),
        ("assert_less", (1, [2, 3])),
        ("assert_less", (3, [2, 3])),
        ("assert_greater_equal", (1.0, 2.0)),
        ("assert_none_equal", (1, 1)),
        ("assert_positive", ([1, 0],)),
        ("assert_non_negative", ([1, 0],)),
        ("assert_near", (1.0, 1.0 + 1e-7)),
        ("assert_near", (1.0, 1.1)),
        ("assert_rank", ([1], 1)),
        ("assert_rank", ([1], 2)),
        ("assert_rank_at_least", ([1], 2)),
        ("assert_rank_in", ([1], (0, 1))),
        ("assert_scalar", ([1],)),
        ("assert_integer", (1.0,)),
        ("assert_all_finite", ([1.0, np.nan], "no")),
        ("Assert", (False, ["no"])),
        ("assert_equal", ([1, 2], [1, 2, 3])),
    )
]


CASES += [
    Case(
        f"assertions of TensorFlow 1: {name}",
        lambda tf, name=name: (
            getattr(tf.compat.v1, name)(tf.constant([1, 2]), tf.constant(2), data=["x"]) or "passes"
        ),
    )
    for name in ("assert_less_equal", "assert_greater_equal")
]


def test_a_graph_is_named_and_not_made():
    with pytest.raises(NotImplementedError, match="the substrates build no graphs"):
        tf_of("numpy").compat.v1.GraphDef()


@over(CASES)
def test_state(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize(
    "assign",
    [
        lambda tf, v, x: v.assign(x),
        lambda tf, v, x: v.assign(2.0),
        lambda tf, v, x: tf.cond(x > 1, lambda: v.assign(2.0), lambda: v.assign(3.0)),
        lambda tf, v, x: tf.switch_case(
            tf.cast(x, tf.int32), [lambda: v.assign(2.0), lambda: v.assign(3.0)]
        ),
        lambda tf, v, x: tf.while_loop(lambda y: y < 5, lambda y: [y + v.assign(2.0)], [x]),
    ],
    ids=["a value", "a constant", "in a branch", "in a case", "in a loop"],
)
def test_assigning_under_jit_is_refused(assign):
    tf = tf_of("jax")
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match=r"Variable:0 is assigned in what JAX traces"):
        jax.jit(lambda x: [assign(tf, v, x), v + 0.0][1])(2.0)
    assert v.numpy() == 1.0


def test_assertions_under_jit_pass():
    tf = tf_of("jax")

    @jax.jit
    def checked(x):
        tf.debugging.assert_positive(x)
        return tf.debugging.check_numerics(x, "not finite")

    assert checked(-1.0) == -1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x > 0"):
        tf.debugging.assert_positive(tf.constant(-1.0))


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_concrete_functions_say_what_they_return(substrate):
    def described(tf):
        @tf.function
        def f(x, scale):
            return {"y": x * scale, "count": (tf.size(x), tf.random.normal([3]))}

        @tf.function(input_signature=[tf.TensorSpec([2], tf.int32)])
        def g(x):
            return x + 1

        concrete = f.get_concrete_function(tf.TensorSpec([2, 3], tf.float64), 2.0)
        fixed = g.get_concrete_function()
        shapes = tf.nest.map_structure(lambda s: s.as_list(), concrete.output_shapes)
        names = tf.nest.map_structure(lambda d: d.name, concrete.output_dtypes)
        return shapes, names, fixed.output_shapes.as_list(), np.asarray(fixed(tf.constant([1, 2])))

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        *actual, value = described(tf_of(substrate))
    finally:
        jax.config.update("jax_enable_x64", before)
    *expected, _ = described(tensorflow)
    assert actual == expected
    assert value.tolist() == [2, 3]


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_concrete_functions_draw_no_samples(substrate):
    tf = tf_of(substrate)
    draw = tf.function(lambda: tf.random.uniform([2]))
    tf.random.set_seed(5)
    expected = np.asarray(draw.python_function())
    tf.random.set_seed(5)
    assert draw.get_concrete_function().output_shapes.as_list() == [2]
    np.testing.assert_array_equal(np.asarray(draw.python_function()), expected)


def test_concrete_functions_need_known_dimensions():
    tf = tf_of("numpy")
    double = tf.function(lambda x: x * 2)
    with pytest.raises(ValueError, match=r"every dimension of TensorSpec.*What to do"):
        double.get_concrete_function(tf.TensorSpec([None], tf.float32))
