"""Arguments of the wrong type, range or kind: each is refused where it enters, in one form.

A message names the function and the argument, what was expected, what came, and what to do. Tables
give every parameter of every public function values that it does not take.
"""

from __future__ import annotations

import dataclasses
import enum
import fractions
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.extend import core as jex_core
from jax.sharding import AbstractMesh, PartitionSpec

import jax2tf
from jax2tf.keras import Layer
from tests.naming import shown

X = tf.ones([2, 3])
SPEC = jax.ShapeDtypeStruct((2, 3), jnp.float32)
MESH = AbstractMesh((1,), ("x",))

# Values of every kind. A parameter takes some of them; the others are bad.
VALUES = {
    "int": 3,
    "negative": -1,
    "text": "yes",
    "none": None,
    "nan": float("nan"),
    "list": [1],
    "dict": {"a": 1},
    "array": np.ones(3),
    "tensor": X,
    "object": object(),
    "function": jnp.sin,
    "bytes": b"x",
    "true": True,
}
KINDS = (TypeError, ValueError)  # ConversionErrors of values are one of these


def of(parameter):
    return parameter.partition(" ")[0]


def convert(**options):
    return jax2tf.convert(jnp.sin, **options)(X)


def call_tf(**options):
    return jax2tf.call_tf(tf.sin, **options)(jnp.ones(3))


def module(**options):
    return jax2tf.Module(lambda p, x: x @ p, jnp.ones([3, 2]), **options)(X)


def layer(**options):
    return Layer(lambda p, x: x @ p, jnp.ones([3, 2]), **options)(X)


def explain(**options):
    return jax2tf.explain(jnp.sin, SPEC, **{"target": "xla"} | options)


def profile(**options):
    return jax2tf.profile(jnp.sin, SPEC, **options)


def shapes(**options):
    return jax2tf.eval_polymorphic_shape(jnp.sin, **options)(SPEC)


def on_mesh(**options):
    return jax2tf.dtensor.convert(jnp.sin, MESH, **options)(X)


def target(**fields):
    return convert(target=jax2tf.Target(**{"name": "t"} | fields))


# Function, what its messages call it, and for each parameter the values that it takes.
SWITCH = {"true"}
SHAPES = {"none"}
SETS = {"dict", "list"}
TAKEN = [
    (
        *(convert, "jax2tf.convert"),
        {
            "polymorphic_shapes": SHAPES,
            "polymorphic_constraints": set(),
            "polymorphic_checks": SWITCH,
            "with_gradient": SWITCH,
            "saved_gradient_order": {"int"},
            "value_checks": set(),
            "enable_xla": SWITCH,
            "target": {"none"},
            "assume_finite": SWITCH,
            "large_constants": {"function"},
            "debug_callbacks": SWITCH,
            "eager_graphs": SWITCH,
            "native_serialization": SWITCH | {"none"},
            "native_serialization_platforms": {"none"},
            "native_serialization_disabled_checks": {"none"},
        },
    ),
    (
        *(call_tf, "jax2tf.call_tf"),
        {
            "has_side_effects": SWITCH,
            "ordered": SWITCH,
            "output_shape_dtype": {"array", "none"},
            "call_tf_graph": SWITCH,
            "compile": SWITCH,
        },
    ),
    (
        *(module, "jax2tf."),
        {
            "trainable": SWITCH,
            "polymorphic_shapes": SHAPES,
            "name": {"text", "none"},
            "large_constants": {"function"},
        },
    ),
    (
        *(layer, "jax2tf."),
        {"polymorphic_shapes": SHAPES, "convert_options": {"none"}},
    ),
    (
        *(explain, "jax2tf."),
        {
            "target": {"none"},
            "polymorphic_shapes": SHAPES,
            "polymorphic_constraints": set(),
            "assume_finite": SWITCH,
        },
    ),
    (
        *(profile, "jax2tf."),
        {
            "target": {"none"},
            "polymorphic_shapes": SHAPES,
            "polymorphic_constraints": set(),
            "assume_finite": SWITCH,
        },
    ),
    (
        *(shapes, "jax2tf.convert"),
        {"polymorphic_shapes": SHAPES, "polymorphic_constraints": set()},
    ),
    (
        *(on_mesh, "jax2tf."),
        {
            "in_shardings": {"none"},
            "out_shardings": {"none"},
            "polymorphic_shapes": SHAPES,
        },
    ),
    (
        *(target, "jax2tf.Target"),
        {
            "name": {"text"},
            "op_set": set(),
            "idioms": set(),
            "finite_idioms": set(),
            "integer_idioms": set(),
            "ops": {"none", "dict"},
            "lacks": {"dict"},
            "own_ops": {"dict"},
            "lacks_dtypes": set(),
            "most_dimensions": {"int", "none"},
            "computes_in": {"dict"},
            "most_dimensions_of": {"dict"},
            "quirks": set(),
            "optimizations": set(),
            "assume_finite": SWITCH,
            "shares_repeats": SWITCH,
        },
    ),
]
CASES = (
    [
        pytest.param(
            function, begins, parameter, value, id=f"{function.__name__}-{parameter}-{name}"
        )
        for function, begins, parameters in TAKEN
        for parameter, taken in parameters.items()
        for name, value in VALUES.items()
        if name not in taken
        # A set of names has none of these, which is one of its members.
        and not (function is target and name == "dict" and parameter in SETS_OF_NAMES)
    ]
    if (SETS_OF_NAMES := {"idioms", "finite_idioms", "integer_idioms", "lacks_dtypes"})
    else []
)


def refused(call):
    """What a call raises; nothing that Python prints above it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    error = caught.value
    seen = error
    while (seen := seen.__cause__ or seen.__context__) is not None:
        assert not isinstance(seen, KeyError), "a lookup stands above the error"
    return error


@pytest.mark.parametrize(("function", "begins", "parameter", "value"), CASES)
def test_a_value_that_a_parameter_does_not_take(function, begins, parameter, value):
    error = refused(lambda: function(**{parameter: value}))
    assert isinstance(error, (*KINDS, jax2tf.ConversionError)), type(error)
    text = str(error)
    # Keras puts its own words around an error of a layer.
    assert text.startswith(begins) or (function is layer and begins in text), text
    assert parameter in text or "polymorphic" in text, text
    assert len(text) < 700 or parameter in ("quirks", "optimizations"), text


def test_every_parameter_has_values_that_it_does_not_take():
    import inspect

    given = {function: set(parameters) for function, _, parameters in TAKEN}
    own = {convert: jax2tf.convert, call_tf: jax2tf.call_tf, explain: jax2tf.explain}
    own |= {profile: jax2tf.profile, shapes: jax2tf.eval_polymorphic_shape}
    for function, public in own.items():
        parameters = inspect.signature(public).parameters
        named = {
            n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY or p.default != p.empty
        }
        assert given[function] == named
    assert given[target] == {f.name for f in dataclasses.fields(jax2tf.Target)} - {"placement"}


FUNCTIONS = {
    "jax2tf.convert: fun_jax": jax2tf.convert,
    "jax2tf.call_tf: callable_tf": jax2tf.call_tf,
    "jax2tf.Module: fun_jax": lambda f: jax2tf.Module(f, {}),
    "jax2tf.Module.function: fun_jax": lambda f: jax2tf.Module(lambda p: p, {}).function(f),
    "jax2tf.keras.Layer: fun_jax": lambda f: Layer(f, {}),
    "jax2tf.explain: fun_jax": lambda f: jax2tf.explain(f, SPEC),
    "jax2tf.profile: fun_jax": lambda f: jax2tf.profile(f, SPEC),
    "jax2tf.eval_polymorphic_shape: fun_jax": jax2tf.eval_polymorphic_shape,
    "jax2tf.dtensor.convert: fun_jax": lambda f: jax2tf.dtensor.convert(f, MESH),
}


@pytest.mark.parametrize("where", FUNCTIONS)
@pytest.mark.parametrize("value", [v for n, v in VALUES.items() if n != "function"], ids=shown)
def test_what_is_no_function(where, value):
    error = refused(lambda: FUNCTIONS[where](value))
    assert isinstance(error, TypeError)
    assert str(error).startswith(f"{where} should be a function")
    assert str(error).endswith(f"got {type(value).__name__}")


UNKNOWN = {
    "jax2tf.Module": lambda: module(polymorphic_shape="b, _"),
    "jax2tf.Module.function": lambda: jax2tf.Module(lambda p: p, {}).function(
        lambda p: p, polymorphic_shape="b, _"
    ),
    "jax2tf.keras.Layer: convert_options": lambda: layer(
        convert_options={"polymorphic_shape": "b, _"}
    ),
    "jax2tf.dtensor.convert": lambda: on_mesh(polymorphic_shape="b, _"),
}


@pytest.mark.parametrize("where", UNKNOWN)
def test_an_option_that_convert_does_not_have(where):
    text = str(refused(UNKNOWN[where]))
    assert text.startswith(f"{where}: it has no option 'polymorphic_shape'")
    assert "polymorphic_constraints" in text


class TestIterators:
    """What gives its members once is read once."""

    def test_of_constraints(self):
        def first(x):
            return jax.lax.dynamic_slice_in_dim(x, 0, 2)

        once = iter(["b >= 2"])
        f = jax2tf.convert(first, polymorphic_shapes="b, _", polymorphic_constraints=once)
        for _ in range(2):
            assert f(tf.ones([4, 3])).shape == (2, 3)
        with pytest.raises(ValueError, match="b >= 2"):
            f(tf.ones([1, 3]))

    def test_of_platforms(self):
        platforms = (name for name in ["tpu"])
        f = jax2tf.convert(jnp.sin, native_serialization_platforms=platforms)
        graph = tf.function(f, autograph=False).get_concrete_function(X).graph
        (op,) = [op for op in graph.get_operations() if op.type == "XlaCallModule"]
        assert op.get_attr("platforms") == [b"TPU"]

    @pytest.mark.parametrize("platforms", [[], [1], [["cpu"]], ["CPU"]])
    def test_platforms_that_are_none(self, platforms):
        with pytest.raises(ValueError, match="cpu, cuda, rocm, tpu"):
            jax2tf.convert(jnp.sin, native_serialization_platforms=platforms)


class Colour(enum.IntEnum):
    RED = 1


# No array of JAX's, and a piece of what to do.
NO_ARRAYS = {
    "text": ("a", "static_argnames"),
    "a tensor of texts": (tf.constant("a"), "tf.strings.to_number"),
    "variant": (
        tf.data.experimental.to_variant(tf.data.Dataset.range(3)),
        "JAX has no dtype variant",
    ),
    "ragged": (tf.ragged.constant([[1.0], [1.0, 2.0]]), "row_lengths()"),
    "sparse": (tf.sparse.from_dense([[1.0, 0.0]]), "tf.sparse.to_dense"),
    "objects": (np.array([object()]), "astype"),
    "a date": (np.datetime64("2020"), "datetime64"),
    "records": (np.zeros(2, [("a", int)]), "astype"),
    "longdouble": (np.longdouble(1), "float128"),
    "mask": (np.ma.array([1.0, 2.0], mask=[0, 1]), "x.filled"),
    "fraction": (fractions.Fraction(1, 2), "fractions.Fraction"),
    "enum": (Colour.RED, "Colour"),
    "spec": (tf.TensorSpec([2]), "get_concrete_function"),
}


@pytest.mark.parametrize("kind", NO_ARRAYS)
def test_a_leaf_that_is_no_array(kind):
    value, remedy = NO_ARRAYS[kind]
    error = refused(lambda: jax2tf.convert(lambda tree: tree)({"a": [value]}))
    assert isinstance(error, TypeError)
    assert str(error).startswith("jax2tf.convert(<lambda>): argument tree['a'][0]: ")
    assert remedy in str(error) or kind in ("text", "fraction")


def test_a_number_that_is_too_large():
    error = refused(lambda: jax2tf.convert(jnp.sin)(10**40))
    assert isinstance(error, OverflowError)
    assert str(error).startswith("jax2tf.convert(sin): argument x: Python int 1000")


def test_a_mask_is_dropped_as_the_message_says():
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    for convert in (jax2tf.convert(jnp.exp2), jax2tf.call_tf(lambda x: 2**x)):
        with pytest.raises(TypeError, match="mask"):
            convert(masked)
        assert np.asarray(convert(masked.filled(0))).tolist() == [2.0, 1.0]


LEAVES = {
    "texts": np.array(["x"]),
    "tensor of texts": tf.constant("x"),
    "objects": np.array([object()]),
    "too large": 10**40,
    "described": SPEC,
    "spec": tf.TensorSpec([2]),
    "mask": np.ma.array(np.ones(2)),
}


@pytest.mark.parametrize("kind", LEAVES)
def test_a_parameter_that_is_no_array(kind):
    error = refused(lambda: jax2tf.Module(lambda p: p, {"a": [1.0, LEAVES[kind]]}))
    assert isinstance(error, TypeError | OverflowError)
    assert str(error).startswith("jax2tf.Module: params['a'][1]: ")


def test_a_parameter_that_is_a_tracer():
    error = refused(lambda: jax.jit(lambda w: jax2tf.Module(lambda p: p, w)())(1.0))
    assert "jax2tf.Module: params should be an array, got a JAX tracer" in str(error)


OTHERS = {
    "jax2tf.dtype_of_val: val": lambda v: jax2tf.dtype_of_val(v),
    "jax2tf.dtensor.place: a": lambda v: jax2tf.dtensor.place({"a": v}, None, MESH),
    "jax2tf.dtensor.variables: a": lambda v: jax2tf.dtensor.variables({"a": v}, None, MESH),
    "jax2tf.dtensor.values: ['a']": lambda v: jax2tf.dtensor.values({"a": v}),
}


@pytest.mark.parametrize("where", OTHERS)
@pytest.mark.parametrize("value", ["x", object(), b"x", jnp.sin, np.array(["x"])], ids=shown)
def test_other_functions_of_arrays(where, value):
    error = refused(lambda: OTHERS[where](value))
    assert isinstance(error, TypeError)
    assert str(error).startswith(where)


@pytest.mark.parametrize("name", ["place", "variables"])
@pytest.mark.parametrize("shardings", [[1], {"b": PartitionSpec()}, 3, "x"], ids=shown)
def test_shardings_that_do_not_fit(name, shardings):
    function = getattr(jax2tf.dtensor, name)
    error = refused(lambda: function({"a": np.ones(2)}, shardings, MESH))
    assert isinstance(error, jax2tf.LayoutError)
    assert str(error).startswith(f"jax2tf.dtensor.{name}: ")


def test_other_functions_of_numbers():
    split = jax2tf.split_to_logical_devices
    for value in (3, float("nan"), X, object(), "ab", [1.5, 1], [0, 2], [True, 1]):
        error = refused(functools.partial(split, X, value))
        assert str(error).startswith("jax2tf.split_to_logical_devices: partition_dimensions")
    for value in (3, "x", np.ones([2, 3]), None):
        error = refused(functools.partial(split, value, (1, 1)))
        assert str(error).startswith("jax2tf.split_to_logical_devices: tensor should be")
    for value in (-1, "x", None, 1.0):
        layout_of = functools.partial(jax2tf.dtensor.layout_of, PartitionSpec(), value, MESH)
        error = refused(layout_of)
        assert str(error).startswith("jax2tf.dtensor.layout_of: rank should be a number")


# What a function of the user's own raises, and the argument that the note names.
OF_STRUCTURE = {
    "an array for a dict": (lambda p, x: x @ p["w"], (X, {"a": X}), "for p,"),
    "a dict for an array": (lambda p, x: jnp.sin(p) + x, ({"a": X}, X), "for p,"),
    "a dict as an index": (lambda x, p: x[p], (X, {"a": X}), "for p,"),
    "a list for an array": (lambda x, p: jnp.take(x, p), (X, [X]), "for p,"),
    "another key": (lambda p: p["b"], ({"a": X},), "for p,"),
    "two of them": (lambda p, x: x @ p["w"], (X, X), "for p or x,"),
}


@pytest.mark.parametrize("kind", OF_STRUCTURE)
def test_the_note_names_the_arguments_of_another_structure(kind):
    function, args, words = OF_STRUCTURE[kind]
    (note,) = [
        note
        for note in refused(lambda: jax2tf.convert(function)(*args)).__notes__
        if note.startswith("jax2tf.convert(<lambda>) called it with")
    ]
    assert "takes another structure (a dict or a tuple of arrays)" in note
    assert words in note


def asarray_of(table):
    """What makes an index of a table: JAX's tables take arrays."""
    return jnp.asarray if isinstance(table, jax.Array) else lambda index: index


TABLE = np.arange(12.0, dtype=np.float32)
SLICES = {
    "up to": (lambda t, n: t[:n], lambda x: x[:, 0]),
    "from": (lambda t, n: t[12 - n :], lambda x: x[:, 0]),
    "of the last": (lambda t, n: t.reshape(1, 12)[:, :n], lambda x: x[:, 0]),
    "one": (lambda t, n: t[asarray_of(t)(n - 1)], lambda x: x[:, 0]),
}


@pytest.mark.parametrize("kind", SLICES)
def test_a_table_that_an_open_size_slices(kind):
    part, rest = SLICES[kind]

    def with_table(table, x):
        return part(table, x.shape[0]) + rest(x)

    wrong = functools.partial(with_table, TABLE)
    error = refused(lambda: jax2tf.convert(wrong, polymorphic_shapes="b, _")(X))
    (note,) = [n for n in error.__notes__ if "jnp.asarray(table)" in n]
    assert "polymorphic_constraints=['b <= N']" in note
    right = functools.partial(with_table, jnp.asarray(TABLE))
    f = jax2tf.convert(right, polymorphic_shapes="b, _", polymorphic_constraints=["b <= 12"])
    np.testing.assert_array_equal(f(X), wrong(X.numpy()))


class TestNothingStandsAboveAnError:
    """An error of the user's function is not printed below one of a lookup."""

    def chain(self, call):
        error, found = refused(call), []
        while error is not None:
            found.append(type(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return found

    def test_of_convert(self):
        def raising(x):
            raise ZeroDivisionError

        assert self.chain(lambda: jax2tf.convert(raising)(X)) == [ZeroDivisionError]
        assert self.chain(lambda: jax2tf.convert(jax.jit(raising))(X)) == [ZeroDivisionError]

    @pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.vmap, jax.jacfwd, jax.jacrev])
    def test_of_call_tf(self, around):
        def raising(x):
            raise ZeroDivisionError

        found = self.chain(lambda: around(jax2tf.call_tf(raising))(jnp.ones(3)))
        assert set(found) <= {ZeroDivisionError, jax2tf.CallTfError}

    def test_of_a_gradient(self):
        @jax.custom_vjp
        def f(x):
            return x

        def backward(residuals, cotangent):
            raise ZeroDivisionError

        f.defvjp(lambda x: (x, None), backward)

        def gradient():
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = jax2tf.convert(f)(X)
            return tape.gradient(y, X)

        assert KeyError not in self.chain(gradient)

    def test_of_a_primitive_without_a_rule(self):
        primitive = jex_core.Primitive("has_no_rule")
        primitive.def_abstract_eval(lambda x: x)

        def f(x):
            return jax.jit(primitive.bind)(x)

        call = tf.function(jax2tf.convert(f, target="litert"), autograph=False)
        assert KeyError not in self.chain(lambda: call.get_concrete_function(tf.ones([3, 3])))
