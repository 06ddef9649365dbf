"""Planted faults: which there are, what each makes wrong, which harness notices it, the table."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from harnesses.harness import Values, all_harnesses
from reports.__main__ import main
from reports.planted import faults, table
from reports.planted.faults import Fault
from reports.planted.planting import planted
from reports.planted.trial import Trial
from tests.judge.rows import harness


def _of(primitive, fun, *args, case=""):
    made = harness(primitive, str(args[0].dtype), case)
    return dataclasses.replace(
        made, fun=fun, args=[Values(a, a.dtype) for a in map(np.array, args)]
    )


def _f32(*values):
    return np.array(values, np.float32)


CUMSUM = _of("cumsum", lambda x: lax.cumsum(x, 0), _f32(1, 2, 4))
MAX = _of("max", lax.max, _f32(1, 2), _f32(3, np.nan))


def test_the_faults_of_a_primitive():
    found = {(fault.kind, fault.what) for fault in faults.of_primitive("cumsum", [CUMSUM])}
    assert found == {
        ("dtype", "dtype=float32"),
        ("param", "reverse=False"),
        ("edge", "operand 0 has nan"),
        ("edge", "operand 0 has infinity"),
        ("edge", "operand 0 has -infinity"),
        ("edge", "operand 0 has zero"),
        ("edge", "operand 0 has a negative number"),
    }


def test_the_axis_of_a_harness_of_two_dimensions_is_a_fault():
    made = _of("cumsum", lambda x: lax.cumsum(x, 1), _f32([1, 2], [4, 5]))
    assert Fault("cumsum", "axis", "axis=last") in faults.of_primitive("cumsum", [made])


def test_a_public_function_and_an_operand_in_the_program_have_no_faults():
    assert faults.of_primitive("softplus", [_of("softplus", jnp.tanh, _f32(1))]) == []
    (eqn,) = jax.make_jaxpr(lambda x: lax.add(x, 1.0))(_f32(1)).jaxpr.eqns
    assert {edge.partition(" has ")[0] for edge in faults.edges(eqn)} == {"operand 0"}


@pytest.mark.parametrize(
    ("what", "kind", "wrong"),
    [
        ("dtype=float32", "dtype", [False, False, True]),
        ("dtype=int32", "dtype", [False, False, False]),
        ("reverse=False", "param", [False, False, True]),
        ("reverse=True", "param", [False, False, False]),
        ("operand 0 has a negative number", "edge", [False, True, False]),
        ("operand 0 has nan", "edge", [False, False, False]),
    ],
)
def test_what_a_fault_makes_wrong(what, kind, wrong):
    x = _f32(1, -2, 4)
    fun = planted(lambda x: lax.cumsum(x, 0), Fault("cumsum", kind, what))
    for run in (fun, jax.jit(fun)):
        assert (np.asarray(run(x)) != np.cumsum(x)).tolist() == wrong


def test_an_edge_of_an_operand_of_another_shape_makes_the_last_element_wrong():
    fault = Fault("reduce_max", "edge", "operand 0 has infinity")
    x = _f32([1, np.inf], [2, 3])
    assert planted(lambda x: x.max(0), fault)(x).tolist() == [2, 0]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64"]
)
def test_a_wrong_element_is_another_one(dtype):
    x = jnp.array([0, 1, 1], dtype)
    actual = planted(lambda x: x[::-1], Fault("rev", "dtype", f"dtype={dtype}"))(x)
    assert (actual == x[::-1]).tolist() == [True, True, False]
    assert actual.dtype == dtype


def _in_scan(x):
    return lax.scan(lambda carry, _: (lax.cumsum(carry, 0), None), x, None, length=2)[0]


def _in_loop(x):
    return lax.while_loop(lambda c: c[-1] < 4, lambda c: lax.cumsum(c, 0), x)


def _in_custom_rule(x):
    fun = jax.custom_jvp(lambda x: lax.cumsum(x, 0))
    fun.defjvps(lambda t, out, x: t)
    return fun(x)


@pytest.mark.parametrize(
    "fun",
    [
        _in_scan,
        _in_loop,
        _in_custom_rule,
        jax.jit(lambda x: lax.cumsum(x, 0)),
        lambda x: lax.cond(x[0] > 0, lambda x: lax.cumsum(x, 0), jnp.negative, x),
    ],
)
def test_functions_inside_have_the_fault(fun):
    x = _f32(1, 2)
    faulty = planted(fun, Fault("cumsum", "param", "reverse=False"))(x)
    assert faulty.shape == x.shape
    assert faulty[-1] != fun(x)[-1]
    untouched = planted(fun, Fault("cumsum", "param", "reverse=True"))(x)
    np.testing.assert_array_equal(untouched, fun(x))


def test_effects_references_keys_and_empty_results_stay():
    def fun(x):
        jax.debug.callback(lambda x: None, x)
        ref = jax.new_ref(x)
        ref[...] = ref[...] + 1
        return jax.random.key_data(jax.random.split(jax.random.key(0))), ref[...], x[:0]

    for fault in (Fault("slice", "dtype", "dtype=float32"), Fault("add", "dtype", "dtype=int8")):
        actual = planted(fun, fault)(_f32(1, 2))
        jax.tree.map(np.testing.assert_array_equal, actual, fun(_f32(1, 2)))


def test_a_loop_over_references_keeps_its_equations():
    def fun(x):
        ref = jax.new_ref(x)
        lax.fori_loop(0, 2, lambda i, _: ref.__setitem__(i, ref[i] + 1), None)
        return ref[...] + 1

    actual = planted(fun, Fault("add", "dtype", "dtype=float32"))(_f32(1, 2))
    assert actual[0] == fun(_f32(1, 2))[0]
    assert actual[1] != fun(_f32(1, 2))[1]


def test_the_harness_that_notices_is_named():
    trial = Trial([CUMSUM, MAX])
    assert trial.caught_by(Fault("cumsum", "param", "reverse=False")) == (CUMSUM, 1)
    assert trial.caught_by(Fault("cumsum", "param", "reverse=True")) == (None, 1)
    assert trial.caught_by(Fault("max", "edge", "operand 1 has nan")) == (MAX, 1)
    assert trial.caught_by(Fault("max", "edge", "operand 0 has nan")) == (None, 1)


@pytest.mark.parametrize("primitive", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative_harnesses_notice_a_part_that_is_infinite(primitive):
    trial = Trial(each for each in all_harnesses() if each.family == "cumulative")
    fault = Fault(primitive, table.EDGE, "operand 0 has a part that is infinite")
    found, tried = trial.caught_by(fault)
    assert (found.name, tried) == (f"{primitive}_infinite_parts_complex64", 1)


def test_cumulative_harnesses_notice_a_dtype_whose_rounding_hides_much():
    trial = Trial(each for each in all_harnesses() if each.name.startswith("cumsum_exact"))
    found, _ = trial.caught_by(Fault("cumsum", table.DTYPE, "dtype=float8_e5m2fnuz"))
    assert found.name == "cumsum_exact_float8_e5m2fnuz"


def test_the_harness_that_is_fed_an_edge_is_tried_first():
    fed = _of("cumsum", CUMSUM.fun, _f32(1, np.nan), case="fed")
    assert Trial([CUMSUM, fed]).caught_by(Fault("cumsum", "edge", "operand 0 has nan")) == (fed, 1)


def test_a_harness_that_jax_cannot_run_notices_nothing():
    def refuses(x):
        raise TypeError("not here")

    made = _of("cumsum", refuses, _f32(1))
    assert Trial([made]).caught_by(Fault("cumsum", "param", "reverse=False")) == (None, 1)


def test_a_sample_has_a_share_of_each_kind_and_stays():
    every = [Fault("p", kind, f"{n}") for kind in table.KINDS for n in range(50)]
    few = [Fault("p", "axis", "axis=last"), *(f for f in every if f.kind != "axis")]
    chosen = faults.sample(every, 40, seed=1)
    assert sorted(f.kind for f in chosen) == sorted([*table.KINDS] * 10)
    assert faults.sample(reversed(every), 40, seed=1) == chosen
    assert faults.sample(every, 40, seed=2) != chosen
    kinds = [f.kind for f in faults.sample(few, 40, seed=1)]
    assert [kinds.count(kind) for kind in table.KINDS] == [13, 1, 13, 13]


ROWS = [
    {"primitive": "p", "kind": "edge", "what": f"operand {n} has nan", "tried": 3, "caught_by": c}
    for n, c in enumerate(["p_float32", None, None])
]
VERSIONS = {"jax": "0.12", "python": "3.12"}


def test_the_table_counts_and_names_what_was_not_caught(monkeypatch):
    reason = table.Reason(["p"], ["operand 2 *"], "the result does not depend on it")
    monkeypatch.setattr(table, "reasons", lambda: [reason])
    data = table.data_of(ROWS, 22, 5000, VERSIONS)
    text = table.files(data)["planted.md"]
    assert "| edge | 3 | 1 | 1 | 1 |" in text
    assert "| all | 3 | 1 | 1 | 1 |" in text
    assert "**50.0%**" in text
    assert '`"p: operand 1 has nan"`' in text
    assert "| p: operand 2 has nan | the result does not depend on it |" in text


def test_a_reason_says_something(tmp_path):
    path = tmp_path / "reasons.toml"
    path.write_text('[[planted]]\nprimitives = ["p"]\nfaults = ["*"]\nreason = " "\n')
    with pytest.raises(ValueError, match="has no reason"):
        table.reasons(path)


def test_the_committed_table_is_current(reports):
    assert reports("planted", "--check") == (0, "")


def test_a_fault_by_its_name(capsys):
    assert main(["planted", "--fault", "cumsum: reverse=True"]) == 0
    assert "caught by cumsum" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--primitive", "cumsun"], "no harness is of 'cumsun'"),
        (["--fault", "cumsum: reverse=Maybe"], "of that primitive there are: cumsum:"),
    ],
)
def test_names_that_are_not_there(capsys, arguments, words):
    assert main(["planted", *arguments]) == 2
    assert words in capsys.readouterr().out
