"""The table of libraries on substrates: what is counted, and when it is stale."""

from __future__ import annotations

import json

from rich.console import Console

from reports.__main__ import main

ROWS = {
    "library": "some_library",
    "version": "1.2",
    "names": ["math.f", "math.g", "models.A"],
    "rows": [
        {"program": "math.f: one", "place": "jit", "wrong": ""},
        {"program": "math.f: two", "place": "jit", "wrong": "differs by 1e-03"},
        {"program": "math.f: two", "place": "numpy", "wrong": ""},
        {"program": "models.A", "place": "numpy", "wrong": "ValueError: a | b"},
        {
            "program": "models.B",
            "place": "numpy",
            "wrong": "differs by 3e-01",
            "reason": "TensorFlow has no derivative",
        },
    ],
}


def libraries(folder, *arguments):
    console = Console(record=True, width=200)
    return main(["libraries", *arguments, "--into", str(folder)], console), console.export_text()


def test_programs_are_counted_by_area_and_place(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(ROWS))
    assert libraries(tmp_path, str(file))[0] == 0
    text = (tmp_path / "libraries.md").read_text()
    assert "## some_library 1.2" in text
    assert "| area | names | programs about | jit | numpy |" in text
    assert "| math | 2 | 1 | 1 of 2 | 1 of 1 |" in text
    assert "| models | 1 | 1 |  | 0 of 2 |" in text
    why, to_mend = text.index("| not equal, and why"), text.index("| not equal, to be mended")
    assert why < text.index("| TensorFlow has no derivative | 1 | models.B [numpy] |") < to_mend
    assert to_mend < text.index("| ValueError: a \\| b | 1 | models.A [numpy] |")
    assert "differs by 3e-01" not in text
    assert libraries(tmp_path, "--check")[0] == 0
    (tmp_path / "libraries.md").write_text("older")
    status, said = libraries(tmp_path, "--check")
    assert status == 1
    assert "stale" in said


def test_without_rows_there_is_no_table(tmp_path):
    status, said = libraries(tmp_path)
    assert status == 2
    assert "name a file of rows" in said


def test_rows_of_programs_that_ran_again_take_the_place_of_theirs(tmp_path):
    file, again = tmp_path / "rows.json", tmp_path / "again.json"
    file.write_text(json.dumps(ROWS))
    libraries(tmp_path, str(file))
    rows = [
        {"program": "math.f: two", "place": "jit", "wrong": ""},  # is equal now
        {"program": "models.A", "place": "numpy", "wrong": "differs"},  # is not, otherwise
        {"program": "models.A", "place": "jax", "wrong": ""},  # ran nowhere before
        {"program": "math.f: two", "place": "numpy", "wrong": ""},  # was and is equal
        {"program": "math.g", "place": "numpy", "wrong": ""},  # a new one, of all
    ]
    again.write_text(json.dumps({**ROWS, "rows": rows}))
    assert libraries(tmp_path, "--again", str(again))[0] == 0
    data = json.loads((tmp_path / "libraries.json").read_text())["some_library"]
    assert data["areas"] == {
        "math": {"jit": [2, 2], "numpy": [2, 2]},
        "models": {"jax": [1, 1], "numpy": [2, 0]},
    }
    assert [f[:3] for f in data["failures"]] == [
        ["models.A", "numpy", "differs"],
        ["models.B", "numpy", "differs by 3e-01"],
    ]
    assert data["names"]["math"] == [2, 2]


def test_a_program_that_was_equal_and_is_not_any_more(tmp_path):
    file, again = tmp_path / "rows.json", tmp_path / "again.json"
    file.write_text(json.dumps(ROWS))
    libraries(tmp_path, str(file))
    rows = [{"program": "math.f: one", "place": "jit", "wrong": "differs"}]
    again.write_text(json.dumps({**ROWS, "rows": rows}))
    libraries(tmp_path, "--again", str(again))
    data = json.loads((tmp_path / "libraries.json").read_text())["some_library"]
    assert data["areas"]["math"]["jit"] == [2, 0]
    assert len(data["failures"]) == 4
