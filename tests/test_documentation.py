"""What the README, the pages of docs/ and the docstrings show is true: examples run, links lead
somewhere, commands exist.
"""

from __future__ import annotations

import ast
import configparser
import doctest
import importlib
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
# Their blocks need libraries that these tests do not have. Other tests run them.
RUN_ELSEWHERE = {
    ROOT / "docs/guides/engines.md": "tests/consumers/test_examples.py",
    ROOT / "docs/guides/frameworks.md": "tests/zoo/test_framework_guide.py",
}
MODULES = [path for path in sorted(ROOT.glob("impl/jax2tf/**/*.py")) if ">>> " in path.read_text()]

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(path):
    return str(path.relative_to(ROOT))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def session_of(page):
    """The page as one example. It is not cut into blocks: a failure names the line of the page."""
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    return doctest.DocTestParser().get_doctest(text, {}, named(page), str(page), 0)


def run(example):
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=named)
def test_the_examples_run(page, tmp_path, monkeypatch):
    if page in RUN_ELSEWHERE:
        assert page.name in (ROOT / RUN_ELSEWHERE[page]).read_text()
        for block in blocks(page, "python"):
            is_session = block.startswith(">>> ")
            ast.parse(doctest.script_from_examples(block) if is_session else block)
        return
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        assert block.startswith(">>> "), f"{named(page)} has a block that does not run:\n{block}"
    run(session_of(page))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_the_docstrings_run(path):
    name = ".".join(path.relative_to(ROOT / "impl").with_suffix("").parts)
    module = importlib.import_module(name.removesuffix(".__init__"))
    examples = [e for e in doctest.DocTestFinder().find(module) if e.examples]
    assert sum(len(e.examples) for e in examples) == path.read_text().count(">>> ")
    for example in examples:
        run(example)


def anchors(page):
    """The anchors of a page's headings, as MkDocs and code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def test_every_page_is_in_the_navigation():
    config = (ROOT / ".ci/mkdocs.yml").read_text()
    for page in ROOT.glob("docs/**/*.md"):
        assert f" {page.relative_to(ROOT / 'docs')}\n" in config, page


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_tox_environments_exist(page):
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    for name in re.findall(r"tox run -e ([\w-]+)|`-e ([\w-]+)`", page.read_text()):
        assert f"testenv:{''.join(name)}" in tox.sections(), name


def test_the_matrix_is_the_one_that_was_proved():
    shown = re.search(r"(\d+) ran \((\d+) pass.*; (\d+) declared", README.read_text())
    assert shown, "README shows no output of the matrix"
    proved = json.loads((ROOT / "reports/tables/proved.json").read_text())["runs"]
    counts = [tuple(str(run[key]) for key in ("cells", "passed", "limited")) for run in proved]
    assert shown.groups() in counts
