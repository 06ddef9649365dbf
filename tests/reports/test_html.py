"""The page of the matrix: what it holds. `tests/browser` sees how it behaves."""

import json
import shlex
import threading
import urllib.error
import urllib.request

import pytest
from rich.console import Console

from reports.__main__ import main
from reports.html.data import decoded
from tests.reports.rows import failure, row


@pytest.fixture
def data_of(tmp_path, reports):
    """`data_of(file, ...)` is what the page of these files holds."""

    def read(*files, **options) -> dict:
        into = tmp_path / "page.html"
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        status, printed = reports("html", *files, "--into", into, *words)
        assert status == 0
        assert str(into) in printed
        text = into.read_text()
        assert text.startswith("<!doctype html>")
        # The file is all there is: nothing is fetched from elsewhere.
        for outside in ("http://", "https://", "src="):
            assert outside not in text
        return decoded(text.partition('data-refresh="0">')[2].partition("</script>")[0])

    return read


def letter(data: dict, run: int, title: str, name: str) -> str:
    (column,) = (c for c in data["runs"][run]["columns"] if c["title"] == title)
    return column["outcomes"][data["harnesses"]["name"].index(name)]


def test_a_letter_for_each_cell(data_of, write_results):
    rows = [
        row("sin_float32"),
        row("sin_float32", mode="graph", outcome="mismatch", limitation="special#1"),
        failure("cos_float32", verdict="red"),
    ]
    data = data_of(write_results("run.jsonl", rows))
    assert letter(data, 0, "cpu xla eager", "sin_float32") == "p"
    assert letter(data, 0, "cpu xla graph", "sin_float32") == "m"
    assert letter(data, 0, "cpu xla eager", "cos_float32") == "E"  # red
    assert letter(data, 0, "cpu xla graph", "cos_float32") == " "  # there is no such cell


def test_what_a_cell_opens_to(data_of, write_results):
    rows = [
        row("sin_float32", ulps=float("inf"), outcome="mismatch", limitation="special#1"),
        failure("cos_float32", message="line\n</script>"),
        row("tan_float32", culprit="jax", jax_ulps=7, judged_ulps=0, opinion="float64"),
    ]
    data = data_of(write_results("run.jsonl", rows))
    (column,) = data["runs"][0]["columns"]
    texts = data["words"]["text"]
    names = data["harnesses"]["name"]
    sin, cos, tan = (str(names.index(f"{n}_float32")) for n in ("sin", "cos", "tan"))
    message, limitation = column["notes"][sin]
    assert data["limitations"][limitation]["id"] == "special#1"
    assert data["limitations"][limitation]["reason"]
    assert column["sizes"][sin][0] == "inf"
    message, limitation = column["notes"][cos]
    assert texts[message] == "run NotFoundError: line\n</script>"
    assert limitation is None
    message, _ = column["notes"][tan]
    assert texts[message].startswith("JAX is wrong: by float64, JAX is off by 7 ULPs")


def test_the_line_that_repeats_a_cell_has_the_circumstances_of_the_run(data_of, write_results):
    path = write_results("run.jsonl", [row("sin_float32", impl="mine")])
    plain = data_of(path)["runs"][0]["columns"][0]["command"]
    assert plain == (
        "python -m harnesses run --name HARNESS --device cpu --mode eager --lowering xla "
        "--impl mine -n 0"
    )
    asked = {"impl": "mine", "ledger": "my ledger", "cell_timeout": 7.0}
    asked["environment"] = {"XLA_FLAGS": "--a --b"}
    path.with_name("run.run.json").write_text(json.dumps({"asked": asked, "cells": 9}))
    data = data_of(path)
    assert data["runs"][0]["asked"] == 9
    words = shlex.split(data["runs"][0]["columns"][0]["command"])
    assert words[0] == "XLA_FLAGS=--a --b"
    assert words[words.index("--ledger") + 1] == "my ledger"
    assert words[words.index("--cell-timeout") + 1] == "7"


def test_several_runs_share_the_rows_of_the_grid(data_of, write_results):
    old = write_results("old.jsonl", [row("sin_float32"), row("cos_float32")])
    new = write_results("new.jsonl", [failure("sin_float32")])
    data = data_of(old, new)
    assert [run["title"].partition(":")[0] for run in data["runs"]] == ["old", "new"]
    assert letter(data, 0, "cpu xla eager", "sin_float32") == "p"
    assert letter(data, 1, "cpu xla eager", "sin_float32") == "E"
    assert letter(data, 1, "cpu xla eager", "cos_float32") == " "


def test_nothing_to_show(reports, tmp_path):
    status, printed = reports("html", tmp_path / "none.jsonl", "--into", tmp_path / "page.html")
    assert status == 2
    assert "none.jsonl" in printed
    assert not (tmp_path / "page.html").exists()


def test_a_run_that_goes_on_is_served(write_results):
    path = write_results("run.jsonl", [row("sin_float32")])
    lines: list[str] = []

    class Told(Console):
        def print(self, *objects, **_):
            lines.append(str(objects[0]))
            started.set()

    started = threading.Event()
    arguments = ["html", str(path), "--live", "--port", "0"]
    threading.Thread(target=main, args=(arguments, Told()), daemon=True).start()
    assert started.wait(30)
    address = lines[0].split(" ")[0]

    def get(name: str) -> str:
        with urllib.request.urlopen(address + name) as answer:
            return answer.read().decode()

    assert 'data-refresh="3000"' in get("")
    assert letter(decoded(get("data")), 0, "cpu xla eager", "sin_float32") == "p"
    with path.open("a") as file:
        file.write(json.dumps(failure("cos_float32")) + "\n")
    assert letter(decoded(get("data")), 0, "cpu xla eager", "cos_float32") == "E"
    with pytest.raises(urllib.error.HTTPError):
        get("other")
