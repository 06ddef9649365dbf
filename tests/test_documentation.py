"""The README's examples run, and its commands exist."""

from __future__ import annotations

import configparser
import doctest
import json
import pathlib
import re

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_the_examples_run():
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
    parser = doctest.DocTestParser()
    text = re.sub(r"^```.*$", "", README.read_text(), flags=re.MULTILINE)
    example = parser.get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) > 10
    report: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(example, out=report.append)
    assert not report, "".join(report)


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target


def test_the_tox_environments_exist():
    tox = configparser.ConfigParser()
    tox.read(README.parent / "tox.ini")
    for name in re.findall(r"tox run -e (\w+)|`-e (\w+)`", README.read_text()):
        assert f"testenv:{''.join(name)}" in tox.sections()


def test_the_matrix_is_the_one_that_was_proved():
    shown = re.search(r"(\d+) cells \((\d+) pass.*; (\d+) declared", README.read_text())
    assert shown, "README shows no output of the matrix"
    proved = json.loads((README.parent / "reports/tables/proved.json").read_text())["runs"]
    counts = [tuple(str(run[key]) for key in ("cells", "passed", "limited")) for run in proved]
    assert shown.groups() in counts
