"""The page of the documentation that answers whether something is supported."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jax2tf._src.explain import supports
from tests.browser.devtools import browser, installed

CI = Path(__file__).parents[2] / ".ci"
SIZES = [(1280, 800), (360, 640)]


@pytest.fixture(scope="module")
def text() -> str:
    spec = importlib.util.spec_from_file_location("supports_page", CI / "supports_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_the_page_holds_the_data_of_the_package(text):
    held = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    data = json.loads(held[1])
    assert data["support"] == supports._data()
    assert data["limitations"]


# What of a page the script asks for.
_DOCUMENT = """
const data = JSON.parse(require("fs").readFileSync(0, "utf8"));
const owner = () => ({ value: "", append() {}, addEventListener() {}, replaceChildren() {} });
const parts = { data: { textContent: data.held } };
globalThis.document = {
  getElementById: (id) => (parts[id] ??= owner()), querySelector: owner, createElement: owner };
globalThis.location = { hash: "" };
globalThis.history = { replaceState() {} };
globalThis.addEventListener = () => {};
const asked = new Function(data.script + "; return { answers, said, reasons }")();
console.log(JSON.stringify(data.questions.map((question) =>
  asked.answers(question).map(([name, dtype, column, word]) =>
    [name, dtype, column, ...asked.said(word), asked.reasons(name, dtype, column).length]))));
"""


@pytest.fixture(scope="module")
def ask(text):
    """`ask("bfloat16 cumsum litert")` gives the answers that the page's script finds."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    held, script = re.findall(r"<script.*?>(.*?)</script>", text, re.DOTALL)

    def asked(*questions):
        given = json.dumps({"held": held, "script": script, "questions": questions})
        ran = subprocess.run([node, "-e", _DOCUMENT], input=given, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return asked


def test_a_question_in_words_has_the_answer_of_the_command_first(ask):
    (found,) = ask("is bfloat16 cumsum supported in LiteRT?")
    name, dtype, column, kind, said, _ = found[0]
    assert (name, dtype, column, kind) == ("cumsum", "bfloat16", "litert", "yes")
    assert said == str(supports._supports("cumsum", "bfloat16", "litert")[0])


def test_what_is_in_part_has_its_reasons(ask):
    (found,) = ask("lgamma float32 openvino")
    _, _, _, kind, said, reasons = found[0]
    assert kind == "part"
    assert said == str(supports._supports("lgamma", "float32", "openvino")[0])
    assert reasons


def test_each_answer_is_that_of_the_command(ask):
    (found,) = ask("cumsum")
    own = [row for row in found if row[0] == "cumsum"]
    assert own
    assert found[: len(own)] == own
    for name, dtype, column, kind, said, _ in own:
        target = "xla" if column in ("eager", "graph", "compiled") else column
        expected = next(s for s in supports._supports(name, dtype, target) if s.column == column)
        assert (kind == "yes") == expected.is_whole
        assert said == str(expected)


def test_without_a_name_there_is_no_answer(ask):
    assert ask("", "litert", "qqqq") == [[], [], []]


@pytest.fixture(scope="module")
def page(text, tmp_path_factory):
    program = installed()
    if program is None:
        pytest.skip("neither Chromium nor Chrome is installed")
    file = tmp_path_factory.mktemp("page") / "supports.html"
    file.write_text(text, encoding="utf-8")
    with browser(program, tmp_path_factory.mktemp("profile")) as page:
        page.open(f"{file.as_uri()}#bfloat16%20cumsum%20litert")
        page.wait("document.querySelector('.answer') !== null")
        yield page
        assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_answer_is_shown_on_every_screen(page, scheme, size):
    page.prefer(scheme)
    page.resize(*size)
    first = page.evaluate("document.querySelector('.answer').textContent")
    assert first.startswith("cumsum of bfloat16 in litert: yes")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
