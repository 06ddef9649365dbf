"""`limitations update`: entries that explain all failures and nothing else, and few of them."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.cell.names import MODE_NAMES
from limitations.__main__ import with_reason
from limitations.check import check
from limitations.ledger import LedgerError, Limitation, load
from limitations.update import explain, merged, update, words_of, write
from tests.judge.rows import all_modes, error, harness, mismatch, passing

DTYPES = ("bfloat16", "float16", "float32", "float64")
DATABASE = [
    harness(primitive, dtype, case, **params)
    for primitive in ("sin", "cos")
    for dtype in DTYPES
    for case, params in (("", {}), ("edge", {}), ("last", {"axis": 1}))
]


def _rows(fails):
    """The rows of a full run in which the cells that `fails` says fail."""
    cells = itertools.product(DATABASE, MODE_NAMES)
    return [error(h, mode) if fails(h, mode) else passing(h, mode) for h, mode in cells]


def _explained(rows):
    return list(explain([row for row in rows if row["outcome"] != "pass"], rows))


def _conditions(limitation):
    keys = ("harness", "params", "dtypes", "devices", "lowerings", "modes", "jax")
    return {key: value for key in keys if (value := getattr(limitation, key))}


@pytest.mark.parametrize(
    ("fails", "conditions"),
    [
        (lambda h, mode: True, {}),
        (lambda h, mode: mode == "compiled", {"modes": ("compiled",)}),
        (lambda h, mode: mode != "eager", {"modes": ("graph", "compiled")}),
        (lambda h, mode: h.dtype == "float16", {"dtypes": ("float16",)}),
        (
            lambda h, mode: h.dtype.itemsize == 2 and mode == "eager",
            {"dtypes": ("bfloat16", "float16"), "modes": ("eager",)},
        ),
        (lambda h, mode: "axis" in h.params, {"params": {"axis": "1"}}),
        (lambda h, mode: "edge" in h.name, {"harness": ("sin_edge_*",)}),
        (lambda h, mode: h.name == "sin_edge_float32", {"harness": ("sin_edge_float32",)}),
    ],
)
def test_smallest_conditions(fails, conditions):
    (entry,) = _explained(_rows(lambda h, mode: h.primitive == "sin" and fails(h, mode)))
    assert entry.primitive == ("sin",)
    found = _conditions(entry)
    if "harness" in conditions and "dtypes" in found:
        del found["dtypes"]
    assert found == conditions


@pytest.mark.fuzz
@given(st.sets(st.integers(0, len(DATABASE) * len(MODE_NAMES) - 1)), st.data())
def test_every_failure_is_explained_once_and_no_pass_is_matched(failing, data):
    numbers = itertools.count()
    rows = _rows(lambda h, mode: next(numbers) in failing)
    for row in rows:
        if row["outcome"] == "error":
            row["exception"] = data.draw(st.sampled_from(("TypeError", "ValueError")))
    entries = _explained(rows)
    for row in rows:
        matching = [entry for entry in entries if entry.matches(row)]
        assert len(matching) == (row["outcome"] != "pass")
        assert all(entry.expects(row) for entry in matching)
    assert len(entries) <= len(failing)


def test_a_message_is_declared_without_the_paths_of_a_machine():
    message = "/home/me/harnesses/engine/judge.py:178: cannot legalise chlo.erf"
    (entry,) = _explained([error(DATABASE[0], message=message)])
    assert entry.message == ".*:.*: cannot legalise chlo\\.erf"


def test_messages_that_differ_in_dtypes_and_numbers_alone_are_one():
    rows = [
        error(h, message=f"no kernel for {h.dtype} in node {number}")
        for number, h in enumerate(DATABASE[:12])
    ]
    (entry,) = _explained(rows)
    assert entry.message == "no kernel for .* in node .*"
    assert all(entry.explains(row) for row in rows)


def test_a_message_of_eager_mode_is_that_of_a_graph():
    rows = [
        error(DATABASE[0], message="{{function_node __wrapped__Op_1/device:CPU:0}} no such op"),
        error(DATABASE[1], mode="graph", message="no such op"),
    ]
    _, (entry,) = update(rows, [], DATABASE)
    assert (entry.modes, entry.message) == ((), "no such op")


def test_what_varies_in_a_message_takes_no_room_in_its_pattern():
    place = f"/home/{'long/' * 30}judge.py:57:41: error: "
    _, (entry,) = update([error(DATABASE[0], message=f"{place}no operation")], [], DATABASE)
    assert entry.message == ".*:.*:.*: error: no operation"


def test_the_name_of_the_primitive_is_no_part_of_a_message():
    rows = [error(h, message=f"no rule for primitive '{h.primitive}'") for h in DATABASE]
    _, (entry,) = update(rows, [], DATABASE)
    assert (entry.primitive, entry.message) == (("sin", "cos"), "no rule for primitive .*")


def test_a_message_with_two_spaces_is_matched():
    rows = [error(h, message="no such node.  Message: it is not there") for h in DATABASE]
    _, (entry,) = update(rows, [], DATABASE)
    assert all(entry.explains(row) for row in rows)


def test_entries_that_differ_in_primitive_and_harness_alone_are_one():
    cases = [harness("sin", "float32", case) for case in ("a", "b", "c")]
    cases.append(harness("sin_pi", "float32", "b"))
    failing = {"sin_a_float32", "sin_b_float32", "sin_pi_b_float32"}
    rows = [error(h) if h.name in failing else passing(h) for h in cases]
    rows.append(passing(harness("sin_pi", "float32", "c")))
    _, (entry,) = update(rows, [], cases)
    assert (entry.primitive, set(entry.harness)) == (("sin", "sin_pi"), failing)
    # "sin_pi" has a case, which passes, that the glob of the other one's names matches.
    globs = [
        Limitation("elementwise#1", (name,), "crash", "r", harness=(glob,))
        for name, glob in (("sin", "sin_*"), ("sin_pi", "sin_pi_b_*"))
    ]
    assert merged(globs, rows) == globs


def test_a_long_list_has_a_line_for_each_member(tmp_path):
    names = tuple(f"sin_of_a_case_with_a_long_name_{number}_float32" for number in range(4))
    write(tmp_path, [], [Limitation("elementwise#", ("sin",), "crash", "r", harness=names)])
    text = (tmp_path / "elementwise.toml").read_text()
    assert f'harness = [\n    "{names[0]}",\n' in text
    assert load(tmp_path)[0].harness == names


def test_tolerance_is_the_largest_error_rounded_up():
    rows = [mismatch(h, ulps) for h, ulps in zip(DATABASE, (3.2, 77.1, 1234.5), strict=False)]
    (entry,) = _explained(rows)
    assert entry.ulps == 1300
    (finite, infinite) = _explained([*rows, mismatch(DATABASE[3], float("inf"))])
    assert (finite.ulps, infinite.ulps) == (1300, float("inf"))


def test_versions_are_a_condition_where_they_matter():
    sin = DATABASE[0]
    old, new = (dict(row, jax=jax) for row, jax in ((error(sin), "0.10.2"), (passing(sin), "0.12")))
    (entry,) = _explained([old, new])
    assert _conditions(entry)["jax"] == "==0.10.*"
    (entry,) = _explained([old, dict(error(sin), jax="0.12")])
    assert "jax" not in _conditions(entry)


_LEDGER = """\
# Written by a person.

[[limitation]]  # stays
primitive = "sin"
dtypes = ["bfloat16"]
expect = "error"
phase = "lower"
exception = "TypeError"
reason = "first reason"

[[limitation]]
primitive = "sin"
dtypes = ["float16", "float32"]
expect = "error"
phase = "lower"
exception = "TypeError"
reason = "too broad, but the reason is good"
link = "https://example.org"

[[limitation]]
primitive = "cos"
dtypes = ["float32"]
expect = "error"
phase = "lower"
exception = "TypeError"
reason = "no longer fails"

[[limitation]]
primitive = "cos"
dtypes = ["float64"]
expect = "mismatch"
ulps = 1000
reason = "too loose"
"""


def test_entries_that_hold_stay_and_others_give_their_reasons(tmp_path):
    path = tmp_path / "elementwise.toml"
    path.write_text(_LEDGER)
    rows = []
    for h in DATABASE:
        if h.primitive == "sin" and h.dtype.itemsize == 2:
            rows += all_modes(error, h)
        elif h.primitive == "cos" and h.dtype == "float64":
            rows += all_modes(mismatch, h, 10)
        elif h.name == "cos_float16":
            rows += all_modes(error, h)
        else:
            rows += all_modes(passing, h)
    staying, new = update(rows, load(tmp_path), DATABASE)
    assert write(tmp_path, staying, new) == [path]
    text = path.read_text()
    assert text.startswith("# Written by a person.\n\n[[limitation]]  # stays\n")
    assert "no longer fails" not in text
    assert '"too broad, but the reason is good"\nlink = "https://example.org"\n\n[[lim' in text
    with pytest.raises(LedgerError, match=r"entry 4: 'reason' must be a text that is not empty"):
        load(tmp_path)
    path.write_text(text.replace('reason = ""', 'reason = "found by a person"'))
    entries = load(tmp_path)
    assert [entry.reason for entry in entries] == [
        "first reason",
        "too loose",
        "too broad, but the reason is good",
        "found by a person",
    ]
    assert [entry.dtypes for entry in entries[:3]] == [("bfloat16",), ("float64",), ("float16",)]
    assert entries[1].ulps == 10
    assert entries[2].link == "https://example.org"
    assert entries[3].harness == ("cos_float16",)
    findings = check(rows, entries, DATABASE, uncovered={})
    assert [finding for finding in findings if finding.kind != "uncovered"] == []


def test_update_of_a_proved_ledger_changes_nothing(tmp_path):
    rows = _rows(lambda h, mode: h.dtype == "float16" and h.primitive == "sin")
    entry = Limitation("elementwise#1", ("sin",), "error", "r", dtypes=("float16",))
    assert update(rows, [entry], DATABASE) == ([entry], [])
    assert write(tmp_path, [entry], []) == []


def test_what_jax_does_not_transform_needs_no_entry():
    rows = _rows(lambda h, mode: False)
    rows += [{**error(h, "poly"), "outcome": "inapplicable", "phase": None} for h in DATABASE]
    assert update(rows, [], DATABASE) == ([], [])


def test_a_reason_makes_a_ledger_that_loads(tmp_path):
    """Of an error that no number bounds, too, whose entry has to say why."""
    rows = [row for h in DATABASE for row in all_modes(mismatch, h, math.inf)]
    _, new = update(rows, [], DATABASE)
    write(tmp_path, [], [with_reason(entry, "not looked into") for entry in new])
    loaded = load(tmp_path)
    assert {entry.ulps for entry in loaded} == {math.inf}
    assert {(entry.reason, entry.note) for entry in loaded} == {("not looked into",) * 2}


def test_the_words_of_another_implementation_are_a_reason():
    made_of = {"impl": "jax2onnx", "impl_versions": "jax2onnx 0.17, onnx 1.2"}
    rows = [
        error(h, message=f"no rule in /opt/onnx/rules for '{h.primitive}'\nTraceback", **made_of)
        for h in DATABASE
    ]
    _, (entry,) = update(rows, [], DATABASE)
    assert words_of(entry, rows) == "jax2onnx 0.17, onnx 1.2: no rule in ... for 'sin'"
    own = [{**row, "impl": "jax.jit", "impl_versions": None, "tensorflow": None} for row in rows]
    assert words_of(entry, own) == "jax.jit of JAX 0.12.0: no rule in ... for 'sin'"


def test_update_leaves_the_other_direction_alone(tmp_path):
    path = tmp_path / "directions" / "call_tf.toml"
    path.parent.mkdir()
    path.write_text(_LEDGER)
    assert write(tmp_path, [], []) == []
    assert path.read_text() == _LEDGER
    assert write(tmp_path, [], [], "call_tf") == [path]


def test_the_ledger_of_an_engine_stands_in_the_folder_of_engines(tmp_path):
    new = Limitation(where="litert#", primitive=("sin",), expect="crash", reason="it dies")
    assert write(tmp_path, [], [new]) == [tmp_path / "engines" / "litert.toml"]
    (read,) = load(tmp_path)
    assert (read.where, read.primitive, read.reason) == ("litert#1", ("sin",), "it dies")
