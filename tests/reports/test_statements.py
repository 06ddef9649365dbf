"""What the documentation says of targets, modes, families and files is what the code has."""

import dataclasses
import re
from pathlib import Path

import pytest

import jax2tf
import jax2tf.onnx
from harnesses.cell.names import GRADIENT, GROUPS, SAVED_GRADIENT
from harnesses.harness import CALL_TF, SUBSTRATES, all_harnesses
from limitations.ledger import FOLDER, KINDS
from reports import statements

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_made_sentences_are_what_the_data_give():
    assert statements.stale() == []
    used = {
        name for text in statements.pages().values() for name in re.findall(r"made: (\w+)", text)
    }
    assert used == set(statements.STATEMENTS)


@pytest.mark.parametrize("name", statements.STATEMENTS)
def test_a_made_sentence_with_another_number_is_named_and_written_anew(tmp_path, name):
    right = f"A <!-- made: {name} -->{statements.STATEMENTS[name]()}<!-- end --> B"
    path = tmp_path / "page.md"
    path.write_text(right)
    assert statements.stale(tmp_path) == []
    digit = re.search(r"\d(?=[^-]*<!-- end)", right)
    wrong = right[: digit.start()] + str(9 - int(digit[0])) + right[digit.end() :]
    path.write_text(wrong)
    assert statements.stale(tmp_path) == [path]
    assert statements.write(tmp_path) == [path]
    assert path.read_text() == right


def test_export_names_the_engines_that_hold_bfloat16():
    said = statements.STATEMENTS["bfloat16"]()
    assert re.fullmatch(
        r"ONNX Runtime, OpenVINO and TensorFlow\.js hold no arrays of bfloat16\. Of the harnesses "
        r"of bfloat16 that were run, in LiteRT \d+ of \d+ give JAX's result\.",
        said,
    )


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The rows of the table with this first column, without their head."""
    table = re.search(rf"^\| {heading} \|.*\n\|.*\n((?:\|.*\n)*)", text, re.MULTILINE)
    assert table, heading
    return [[c.strip() for c in line.split("|")[1:-1]] for line in table[1].splitlines()]


def test_the_guide_has_every_field_of_a_target():
    shown = [row[0].strip("`") for row in rows_of(page("docs/guides/targets.md"), "Field")]
    assert sorted(shown) == sorted(field.name for field in dataclasses.fields(jax2tf.Target))


def test_the_guide_has_every_target():
    shown = [row[0] for row in rows_of(page("docs/guides/engines.md"), "`target=`")]
    named = re.findall(r'"(\w+)"', " ".join(shown))
    assert sorted(named) == sorted(jax2tf.TARGETS)
    api = page("docs/api.md")
    assert [name for name in jax2tf.TARGETS if f'`"{name}"`' not in api] == []


def test_graphs_for_core_ml_are_not_those_for_tensorflow():
    assert jax2tf.TARGETS["coreml"].lacks != jax2tf.TARGETS["tensorflow"].lacks


def test_the_reference_has_every_public_name():
    api = page("docs/api.md")
    assert [name for name in jax2tf.__all__ if name not in api] == []
    of_others = [f"dtensor.{name}" for name in jax2tf.dtensor.__all__]
    of_others += [
        f"onnx.{name}" for name in dir(jax2tf.onnx) if name.startswith(("TARGET", "file"))
    ]
    assert len(of_others) > 8
    for name in of_others:
        folder, _, own = name.partition(".")
        assert re.search(rf"\bjax2tf\.(_src\.)?([a-z]+\.)?{folder}\.([a-z_]+\.)?{own}\b", api), name


def test_the_reference_has_every_command():
    functions = re.search(r"for function in \((.*?)\):", page("impl/jax2tf/__main__.py"))[1]
    shown = re.findall(r"^\| `python -m jax2tf (\w+)", page("docs/api.md"), re.MULTILINE)
    assert {name.rstrip("_") for name in functions.split(", ")} == set(shown)


def test_the_page_of_errors_has_every_exception():
    headings = re.findall(r"^## (\w+)$", page("docs/guides/errors.md"), re.MULTILINE)
    exceptions = [name for name in jax2tf.__all__ if name.endswith("Error")]
    assert len(exceptions) > 8
    assert [name for name in exceptions if name not in headings] == []


def test_a_gradient_has_as_many_ways_as_the_page_says():
    text = " ".join(page("docs/judge.md").split())
    ways = re.search(
        r"`gradient` \(the vjp through a `tf.GradientTape`, in three ways: (.*?)\)", text
    )
    words = ways[1].replace("in a ", "").split(", ")
    assert tuple(f"{GRADIENT}_{word}" for word in words) == GROUPS[GRADIENT]
    assert f"`{SAVED_GRADIENT}` (the same from a SavedModel)" in text


def families() -> set[str]:
    every = all_harnesses(jax_version=None)
    return {harness.family for harness in every} | {CALL_TF, SUBSTRATES}


def test_a_file_of_limitations_is_that_of_a_family_or_is_named():
    text = page("CONTRIBUTING.md")
    assert [kind for kind in KINDS if f"`limitations/{kind}/`" not in text] == []
    others = {path.stem for path in FOLDER.glob("*.toml")} - families()
    assert [name for name in others if f"`{name}`" not in text] == []
    for kind, names in KINDS.items():
        assert {path.stem for path in (FOLDER / kind).iterdir()} <= set(names)


# Names that stand for others: NAME, <family>, *.toml, and what a run or a user makes.
STANDS_FOR_OTHERS = re.compile(r"[A-Z]{3,}|[<*{]|^build/|^reports/results|my_")
TOP = ("impl", "harnesses", "limitations", "reports", "tests", "docs", ".ci")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_page_names_are_there(path):
    """A path of this repository in backticks; those of the architecture begin in _src too."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    roots = [ROOT, ROOT / "impl/jax2tf/_src"]
    missing = [
        name
        for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text)
        if name.split("/")[0] in TOP
        and not STANDS_FOR_OTHERS.search(name)
        and not any((root / name).exists() for root in roots)
    ]
    assert missing == []


def test_the_page_of_tables_leads_to_each_of_them():
    shown = re.findall(r"\(\.\./reports/tables/([\w.]+\.md)\)", page("docs/tables.md"))
    there = [path.name for path in (ROOT / "reports/tables").glob("*.md")]
    assert sorted(shown) == sorted(there)
