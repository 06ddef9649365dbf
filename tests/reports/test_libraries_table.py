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
    assert "| models | 1 | 1 |  | 0 of 1 |" in text
    assert "| ValueError: a \\| b | 1 | models.A [numpy] |" in text
    assert libraries(tmp_path, "--check")[0] == 0
    (tmp_path / "libraries.md").write_text("older")
    status, said = libraries(tmp_path, "--check")
    assert status == 1
    assert "stale" in said


def test_without_rows_there_is_no_table(tmp_path):
    status, said = libraries(tmp_path)
    assert status == 2
    assert "name a file of rows" in said
