"""The judge of the third direction: what it sees, and what it does not let pass."""

import argparse
import types

import numpy as np
import pytest
import tensorflow

from harnesses.cell.cells import Cell, direction_of, modes_of, tape_modes_of
from harnesses.cell.names import (
    EAGER,
    ROUND_TRIP,
    SUBSTRATE_LOWERINGS,
    SUBSTRATE_MODES,
    TAPE_MODES,
)
from harnesses.engine.adapter import Adapter
from harnesses.engine.options import TargetError, add_options, selection
from harnesses.engine.substrates import SubstrateJudge
from harnesses.harness import CALL_TF, CONVERT, SUBSTRATES, Normal
from harnesses.harness.definition import Harness

OPERAND = Normal((3,), "float32")
EVERY_MODE = [("on_numpy", EAGER), *(("on_jax", mode) for mode in SUBSTRATE_MODES)]


def harness(program, *tags, args=(OPERAND,)):
    fields = (SUBSTRATES, "tf.it", "tf.it_float32", program, list(args), np.dtype("float32"))
    return Harness(*fields, {}, 4, "array", True, frozenset(tags), None, "here:1")


def seen(program, lowering, mode, *tags, args=(OPERAND,)):
    cell = Cell(harness(program, *tags, args=args), "cpu", lowering, mode)
    return SubstrateJudge("jax2tf").run(cell)


def off(fault):
    """exp on TensorFlow; what `fault` makes of it elsewhere."""

    def program(tf, x):
        return tf.exp(x) if tf is tensorflow else fault(tf, x)

    return program


@pytest.mark.parametrize(("lowering", "mode"), EVERY_MODE)
def test_a_right_program_passes(lowering, mode):
    row = seen(lambda tf, x: {"a": tf.exp(x), "b": [tf.sin(x)]}, lowering, mode)
    assert (row["outcome"], row["message"]) == ("pass", None)


@pytest.mark.parametrize(("lowering", "mode"), EVERY_MODE)
def test_a_wrong_value_is_a_mismatch(lowering, mode):
    row = seen(off(lambda tf, x: tf.exp(x) * 1.001), lowering, mode)
    assert row["outcome"] == "mismatch"
    assert "ULPs of float32 away" in row["message"]


@pytest.mark.parametrize("lowering", SUBSTRATE_LOWERINGS)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda tf, x: tf.cast(tf.exp(x), tf.float64), "dtype=float64, but should be float32"),
        (lambda tf, x: tf.exp(x)[None], "shape=(1, 3), but should be (3,)"),
        (lambda tf, x: [tf.exp(x)], "the result's tree"),
    ],
)
def test_a_wrong_dtype_shape_or_tree_is_a_mismatch(lowering, fault, words):
    row = seen(off(fault), lowering, EAGER)
    assert row["outcome"] == "mismatch"
    assert words in row["message"]


def test_texts_and_numbers_of_python_are_compared():
    assert seen(lambda tf, x: (x.dtype.name, 3), "on_numpy", EAGER)["outcome"] == "pass"
    other = off(lambda tf, x: "exq")
    assert seen(other, "on_numpy", EAGER)["outcome"] == "mismatch"


def test_an_exception_of_the_substrate_is_an_error_with_a_phase():
    fails_here = off(lambda tf, x: tf.exp(x, 1, 2, 3))
    for lowering, mode, phase in (
        ("on_numpy", EAGER, "run"),
        ("on_jax", EAGER, "run"),
        ("on_jax", "jit", "lower"),
        ("on_jax", ROUND_TRIP, "lower"),
    ):
        row = seen(fails_here, lowering, mode)
        assert (row["outcome"], row["phase"], row["exception"]) == ("error", phase, "TypeError")


def test_an_exception_of_tensorflow_alone_is_an_error_of_the_law():
    def program(tf, x):
        return tf.strings.no_such(x) if tf is tensorflow else x

    row = seen(program, "on_numpy", EAGER)
    assert (row["outcome"], row["phase"]) == ("error", "trace")


# --- Exceptions that TensorFlow raises --------------------------------------------------------


def raising(here, there):
    def program(tf):
        error = there if tf is tensorflow else here
        if error is not None:
            raise error(tf)

    return program


def invalid(tf):
    return tf.errors.InvalidArgumentError(None, None, "no")


def not_found(tf):
    return tf.errors.NotFoundError(None, None, "no")


def of_value(tf):
    return ValueError("no")


class MyError(ValueError):
    pass


@pytest.mark.parametrize("lowering", SUBSTRATE_LOWERINGS)
@pytest.mark.parametrize(
    ("here", "there", "problem"),
    [
        (invalid, invalid, None),
        (of_value, of_value, None),
        (not_found, invalid, "NotFoundError: no, but should raise InvalidArgumentError: no"),
        (of_value, invalid, "it raises builtins.ValueError: no, but should raise Invalid"),
        (invalid, of_value, "InvalidArgumentError: no, but should raise ValueError: no"),
        (lambda tf: MyError("no"), of_value, "MyError: no, but should raise ValueError"),
        (lambda tf: invalid(tensorflow), invalid, "it raises tensorflow."),
        (None, of_value, "it raises nothing, but should raise ValueError"),
        (of_value, None, "TensorFlow raises nothing"),
    ],
)
def test_the_class_of_an_exception_is_compared(lowering, here, there, problem):
    row = seen(raising(here, there), lowering, EAGER, "raises", args=())
    assert row["outcome"] == ("pass" if problem is None else "mismatch")
    assert problem is None or problem in row["message"]


def test_what_numpy_raises_on_jax_is_of_the_same_class():
    other = Adapter().substrate("on_numpy")
    row = seen(raising(lambda tf: invalid(other), invalid), "on_jax", EAGER, "raises", args=())
    assert row["outcome"] == "pass"


def test_a_class_that_the_substrate_lacks_is_named(monkeypatch):
    bare = types.SimpleNamespace(errors=types.SimpleNamespace(), constant=np.asarray)
    monkeypatch.setattr(Adapter, "substrate", lambda self, lowering: bare)
    row = seen(raising(of_value, not_found), "on_numpy", EAGER, "raises", args=())
    assert "tf.errors lacks NotFoundError" in row["message"]


# --- Cells -----------------------------------------------------------------------------------


def test_numpy_runs_eagerly_and_jax_in_every_mode():
    assert modes_of(harness(None), "on_numpy") == ("eager",)
    assert modes_of(harness(None), "on_jax") == SUBSTRATE_MODES
    assert modes_of(harness(None, "not_grad"), "on_jax") == tuple(
        mode for mode in SUBSTRATE_MODES if mode != "grad"
    )
    assert modes_of(harness(None, "raises"), "on_jax") == ("eager",)


def test_lowerings_say_their_direction():
    assert [direction_of(x) for x in ("xla", "call_tf", "on_numpy", "on_jax")] == [
        CONVERT,
        CALL_TF,
        SUBSTRATES,
        SUBSTRATES,
    ]


@pytest.mark.parametrize(
    ("direction", "lowering"), [(SUBSTRATES, "xla"), (CONVERT, "on_jax"), (CALL_TF, "on_numpy")]
)
def test_a_lowering_of_another_direction_is_refused(direction, lowering):
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument)
    options = parser.parse_args(["--direction", direction, "--lowering", lowering])
    with pytest.raises(TargetError, match=f"--lowering {lowering} is of --direction"):
        selection(options)


@pytest.mark.parametrize("mode", TAPE_MODES)
def test_derivatives_by_tapes(mode):
    right = lambda tf, x: {"a": tf.exp(x), "b": [tf.sin(x), tf.constant(2)]}  # noqa: E731
    row = seen(right, "on_jax", mode)
    assert (row["outcome"], row["message"]) == ("pass", None)
    # The value is right, and its derivative is twice what it should be.
    doubled = off(lambda tf, x: 2 * tf.exp(x) - tf.stop_gradient(tf.exp(x)))
    assert seen(doubled, "on_jax", mode)["outcome"] == "mismatch"
    for program, args in (
        (lambda tf, x: x > 0, (OPERAND,)),
        (lambda tf, x: x, (Normal((3,), "int32"),)),
    ):
        row = seen(program, "on_jax", mode, args=args)
        assert row["outcome"] == "inapplicable"
        assert "TensorFlow differentiates" in row["message"]


@pytest.mark.parametrize(
    ("tags", "left_out"),
    [
        ((), set()),
        (("not_jvp",), {"accumulator"}),
        (("not_jit",), {"tape_jit", "tape_while", "tape_map"}),
        (("not_grad",), set(TAPE_MODES)),
        (("raises",), set(TAPE_MODES)),
    ],
)
def test_modes_of_tapes(tags, left_out):
    asked = harness(lambda tf, x: x, *tags)
    assert set(tape_modes_of(asked, "on_jax")) == set(TAPE_MODES) - left_out
    assert tape_modes_of(asked, "on_numpy") == ()
