"""`python -m reports check` goes red for each table of which one count or one day is another."""

import datetime
import functools
import json
import lzma
import re
import shutil
from pathlib import Path

import pytest

from reports import check, kept_rows, rendering, tables

TABLES = sorted(path.name for path in rendering.TABLES.glob("*.md"))
FIGURES = sorted(path.name for path in rendering.TABLES.glob("*.json"))

DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
COUNT = re.compile(r"\d(?=\D*\Z)")
# Tables of which no run is kept, and that say so.
UNDATED = ("call_tf.md", "substrates.md", "consumers_savedmodel.md")


@functools.cache
def made(command: str) -> dict[str, str]:
    """What a command makes of the tables' folder; it is made once for all tests."""
    return check.texts_of(command, rendering.TABLES)


def command_of(name: str) -> str:
    return next(command for command in check.COMMANDS if name in made(command))


def last_digit_changed(text: str) -> str:
    return COUNT.sub(lambda digit: str(9 - int(digit[0])), text, count=1)


def a_day_later(text: str) -> str:
    def later(day: re.Match) -> str:
        return str(datetime.date.fromisoformat(day[0]) + datetime.timedelta(days=1))

    return DATE.sub(later, text, count=1)


def written(folder: Path, name: str, text: str) -> list[str]:
    """What the check says of a folder that holds one of the tables, with this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return check.stale({name: made(command_of(name))[name]}, folder, command_of(name))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("falsified", [last_digit_changed, a_day_later])
def test_a_table_with_another_count_or_another_day_is_named(tmp_path, name, falsified):
    text = (rendering.TABLES / name).read_text(encoding="utf-8")
    if falsified is a_day_later and name in UNDATED and not DATE.search(text):
        assert "\nNo run is kept." in text
        return
    assert falsified(text) != text
    assert written(tmp_path, name, text) == []
    assert written(tmp_path, name, falsified(text)) == [
        f"{tmp_path / name} is stale. Write it anew with: python -m reports {command_of(name)}"
    ]


def places_of(key: str, figures, path=()):
    """The paths in figures at which something stands under this key."""
    if isinstance(figures, dict):
        for name, value in figures.items():
            if name == key and not isinstance(value, dict | list):
                yield (*path, name)
            else:
                yield from places_of(key, value, (*path, name))
    elif isinstance(figures, list):
        for index, value in enumerate(figures):
            yield from places_of(key, value, (*path, index))


def with_other(figures, path, value):
    """A copy of figures in which another value stands at a path."""
    copy = json.loads(json.dumps(figures))
    owner = copy
    for part in path[:-1]:
        owner = owner[part]
    owner[path[-1]] = value
    return copy


def tables_of(name: str, folder: Path) -> dict[str, str]:
    """The tables that are made of a file of figures of a folder."""
    stem = Path(name).stem
    if stem in tables.MEASURED:
        texts = tables.MEASURED[stem](rendering.read_data(stem, folder))
    else:
        command = "tables" if name == "engine_rows.json" else command_of(name)
        texts = check.texts_of(command, folder)
    return {name: text for name, text in texts.items() if name.endswith(".md")}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_with_another_day_make_other_tables(tmp_path, name):
    """So that the tables are stale: nobody changes a day in the figures and nowhere else."""
    folder = tmp_path / "tables"
    shutil.copytree(rendering.TABLES, folder)
    figures = json.loads((folder / name).read_text(encoding="utf-8"))
    if name == "beside.json":  # it is made of the rows that are kept
        rows = json.loads(lzma.decompress((folder / "beside.rows.xz").read_bytes()))
        for run in rows:
            run["columns"]["date"] = {"all": "2020-01-01"}
        packed = lzma.compress(json.dumps(rows).encode())
        (folder / "beside.rows.xz").write_bytes(packed)
        assert kept_rows.read(folder / "beside.rows.xz")
    else:
        days = list(places_of("date", figures))
        assert days, f"{name} does not say when its figures were seen"
        for path in days:
            figures = with_other(figures, path, "2020-01-01")
        (folder / name).write_text(json.dumps(figures), encoding="utf-8")
    assert check.stale(tables_of(name, folder), folder, "some")


def test_figures_have_a_commit_beside_each_day():
    for name in FIGURES:
        figures = json.loads((rendering.TABLES / name).read_text(encoding="utf-8"))
        days = [path[:-1] for path in places_of("date", figures)]
        assert days == [path[:-1] for path in places_of("commit", figures)], name


def test_a_count_of_kept_rows_makes_another_table(tmp_path):
    folder = tmp_path / "tables"
    shutil.copytree(rendering.TABLES, folder)
    path = folder / "engine_rows.json"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'("abs_float32": "\.ppp)p', r"\1.", text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    assert check.stale(tables_of("engine_rows.json", folder), folder, "some")


def test_a_table_that_does_not_say_what_it_was_seen_on_is_named():
    said = "JAX 0.12.0; seen 2026-11-28 (commit 7d40e7c); 9 of 9 programs"
    assert check.silent({"a.md": said}, Path("t")) == []
    silent = [said.replace(word, "") for word in ("2026-11-28", "commit", "JAX 0.12.0", "9 of 9")]
    found = [check.silent({"a.md": text}, Path("t")) for text in silent]
    assert found == [
        ["t/a.md does not say a date of what it shows"],
        ["t/a.md does not say a commit of what it shows"],
        ["t/a.md does not say versions of what it shows"],
        ["t/a.md does not say how many of how many of what it shows"],
    ]
    assert check.silent({"a.md": "No run is kept. More."}, Path("t")) == []


@pytest.mark.parametrize("name", TABLES)
def test_each_table_says_what_it_was_seen_on(name):
    text = (rendering.TABLES / name).read_text(encoding="utf-8")
    assert check.silent({name: text}, rendering.TABLES) == []


@pytest.fixture
def two_tables(tmp_path, monkeypatch) -> Path:
    """A folder with the files of two commands, which are all that the check knows; one is stale."""
    monkeypatch.setattr(check, "COMMANDS", ("planted", "versions"))
    monkeypatch.setattr(check, "KEPT", {})
    for name in ("planted.json", "planted.md", "versions.json", "versions.md"):
        shutil.copy(rendering.TABLES / name, tmp_path)
    text = (tmp_path / "planted.md").read_text(encoding="utf-8")
    (tmp_path / "planted.md").write_text(last_digit_changed(text), encoding="utf-8")
    return tmp_path


def test_the_command_names_what_is_stale_and_what_nothing_makes(two_tables, reports):
    (two_tables / "by_hand.md").write_text("40 of 40\n", encoding="utf-8")
    status, printed = reports("check", "--into", two_tables)
    assert status == 1
    assert printed.strip().splitlines() == [
        f"{two_tables / 'planted.md'} is stale. Write it anew with: python -m reports planted",
        f"{two_tables / 'by_hand.md'} is made by no command of this check",
        "6 files checked, 2 findings",
    ]


def test_what_is_stale_is_written_anew(two_tables, reports):
    status, printed = reports("check", "--write", "--into", two_tables)
    assert status == 0
    assert printed.strip().splitlines() == [
        f"wrote {two_tables / 'planted.md'}",
        "6 files checked, 0 findings",
    ]
    right = (rendering.TABLES / "planted.md").read_bytes()
    assert (two_tables / "planted.md").read_bytes() == right


def test_a_folder_that_is_not_there_is_one_line(tmp_path, reports):
    status, printed = reports("check", "--into", tmp_path / "none")
    assert status == 2
    assert printed.strip() == f"python -m reports check: there is no folder {tmp_path / 'none'}"
