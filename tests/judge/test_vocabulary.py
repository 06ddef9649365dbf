"""What families are written in: makers are deterministic, names unique, tolerances stated."""

import dataclasses

import jax
import numpy as np
import pytest

from harnesses.harness import (
    ALL,
    BOOL,
    FLOATS,
    INTEGERS,
    Bools,
    Family,
    Fill,
    Integers,
    Normal,
    Uniform,
    Values,
    all_harnesses,
    define,
    edge_pairs,
    edge_values,
    families,
)


def _make(arg, seed=0):
    return arg.make(np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_makers_give_the_shape_and_dtype_that_they_say(dtype):
    edges = edge_values(dtype)
    makers = [Normal((2, 3), dtype), Fill((2, 3), dtype, 1), Values(edges, dtype, (2, 3))]
    makers += [] if dtype in BOOL else [Uniform((2, 3), dtype, 0, 2)]
    makers += [Integers((2, 3), dtype)] if dtype in INTEGERS else []
    for maker in makers:
        array = _make(maker)
        assert (array.shape, array.dtype) == ((2, 3), dtype)
        assert array.tobytes() == _make(maker).tobytes()
    assert _make(Values(edges, dtype)).tobytes() == edges.tobytes()


def test_integers_cover_the_whole_range_by_default():
    assert set(_make(Integers((5000,), np.uint8)).tolist()) == set(range(256))
    assert set(_make(Integers((100,), np.int64, -1, 2)).tolist()) == {-1, 0, 1}
    assert _make(Integers((100,), np.uint64)).max() > 2**63


def test_bools_are_both():
    assert set(_make(Bools((100,))).tolist()) == {True, False}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_edge_values_of_floats(dtype):
    values = edge_values(dtype).astype(np.float64)
    assert {np.inf, -np.inf, 0.0, 1.0, -1.0} <= set(values.tolist())
    assert np.isnan(values).sum() == 1
    assert np.signbit(values[values == 0]).tolist() == [False, True]
    assert (abs(values[values != 0]) < np.finfo(np.float16).eps).any()


def test_edge_pairs_hold_every_pair():
    left, right = (_make(arg) for arg in edge_pairs(np.int8))
    assert (
        len(set(zip(left.tolist(), right.tolist(), strict=True))) == edge_values(np.int8).size ** 2
    )


@pytest.fixture
def family(monkeypatch):
    """A family whose builders go with the test."""
    all_harnesses()  # the builders of all others have run
    monkeypatch.setattr(families, "_waiting", [])
    monkeypatch.setattr(families, "_defined", dict(families._defined))
    return Family("calls")


class TestFamilies:
    def test_a_builder_runs_when_the_database_is_asked_for(self, family):
        @family.builder
        def one_more():
            define("jit", "one_more", abs, [Normal((2,), "float32")], dtype="float32")

        assert len(families._waiting) == 1
        harness = all_harnesses()[-1]
        assert (harness.family, harness.name) == ("calls", "jit_one_more_float32")
        line = one_more.__code__.co_firstlineno
        assert harness.where == f"test_vocabulary.py:{line}"
        assert all_harnesses()[-1] is harness

    def test_a_builder_that_raises_defines_nothing_and_runs_again(self, family):
        failures = [KeyError("table")]

        @family.builder
        def fails_once():
            define("jit", "again", abs, [Normal((2,), "float32")], dtype="float32")
            if failures:
                raise failures.pop()

        with pytest.raises(KeyError, match="table"):
            all_harnesses()
        assert all_harnesses()[-1].name == "jit_again_float32"

    @pytest.mark.parametrize("case", ["", "twice"])
    def test_a_name_is_taken_once(self, case, family):
        @family.builder
        def taken():
            define("jit", "twice", abs, [Normal((2,), "float32")], dtype="float32")
            define("jit", case, abs, [Normal((2,), "float32")], dtype="float32")

        with pytest.raises(ValueError, match=r"named 'jit.*': .*\.py:\d+ and test_vocabulary\.py"):
            all_harnesses()

    def test_scale_is_one_of_two(self, family):
        @family.builder
        def by_row():
            define("jit", "no", abs, [Normal((2,), "float32")], dtype="float32", scale="row")

        with pytest.raises(ValueError, match="scale='row', not 'element' or 'array'"):
            all_harnesses()

    def test_outside_of_a_builder(self):
        with pytest.raises(RuntimeError, match=r"define\('jit', 'no', .* `family.builder`"):
            define("jit", "no", abs, [Normal((2,), "float32")], dtype="float32")


def test_arguments_are_the_same_every_time():
    harness = next(harness for harness in all_harnesses() if harness.name == "jit_float32")
    (first,), (second,) = harness.make_args(), harness.make_args()
    assert first.tobytes() == second.tobytes()


def test_tolerances():
    harness = next(harness for harness in all_harnesses() if harness.name == "jit_float32")
    float32, int32 = np.dtype("float32"), np.dtype("int32")
    stated = {
        "default": (harness, 4),
        "a number": (dataclasses.replace(harness, ulps=7), 7),
        "by dtype": (dataclasses.replace(harness, ulps={"float32": 9}), 9),
        "not named": (dataclasses.replace(harness, ulps={"float64": 9}), 0),
        "exact family": (dataclasses.replace(harness, family="arrays"), 0),
        "stated in one": (dataclasses.replace(harness, family="arrays", ulps=2), 2),
    }
    for case, (each, ulps) in stated.items():
        assert (case, each.tolerance(float32)) == (case, ulps)
        assert each.tolerance(int32) == 0


def test_x64_is_asked_for_by_64_bits():
    by_name = {harness.name: harness.x64 for harness in all_harnesses()}
    assert not by_name["jit_float32"]
    assert by_name["jit_float64"]
    assert by_name["jit_int64"]


def test_names_are_of_primitive_case_and_dtype():
    for harness in all_harnesses():
        assert harness.name.startswith(harness.primitive)
        assert harness.name.endswith(harness.dtype.name)


def test_a_harness_may_be_of_some_versions_of_jax_alone():
    harness = next(harness for harness in all_harnesses() if harness.name == "jit_float32")
    newer = dataclasses.replace(harness, jax_versions=">=0.12")
    assert harness.runs_on("0.10.2")
    assert not newer.runs_on("0.11.3")
    assert newer.runs_on("0.12.0.1")
    assert newer.runs_on("0.13.0.dev20260101")


def test_the_database_is_that_of_the_running_jax():
    of_all_versions = all_harnesses(jax_version=None)
    assert all_harnesses() == [h for h in of_all_versions if h.runs_on(jax.__version__)]
    assert "eval_jaxpr_float32" in {harness.name for harness in of_all_versions}
    assert "eval_jaxpr_float32" not in {harness.name for harness in all_harnesses("0.10.2")}
