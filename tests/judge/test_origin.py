"""When rows were seen, and on which commit."""

import datetime
import json
import subprocess

import pytest

from harnesses.cell import origin
from reports import rendering, results
from tests.judge.rows import harness, passing


@pytest.fixture
def checkout(tmp_path):
    def git(*words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "a.py").write_text("a = 1\n")
    git("add", "a.py")
    git("commit", "-q", "-m", "one")
    return tmp_path, git("rev-parse", "--short", "HEAD")


def test_the_commit_of_a_checkout_and_of_one_with_changes(checkout):
    root, short = checkout
    assert origin.commit.__wrapped__(root) == short
    (root / "new.py").write_text("not of the commit\n")
    assert origin.commit.__wrapped__(root) == short
    (root / "a.py").write_text("a = 2\n")
    assert origin.commit.__wrapped__(root) == f"{short}, changed"


def test_outside_of_a_checkout_the_commit_is_unknown(tmp_path):
    assert origin.commit.__wrapped__(tmp_path) == "unknown"


def test_what_is_seen_now_is_of_today():
    today = datetime.datetime.now(datetime.UTC).date()
    assert abs(today - datetime.date.fromisoformat(origin.now()["date"])).days <= 1


ROW = passing(harness("sin", "float32"))


@pytest.mark.parametrize(
    ("name", "request_", "expected"),
    [
        ("cpu", None, ("unknown", "unknown")),
        ("20261123-081030-cpu-7986", None, ("2026-11-23", "unknown")),
        ("20261123-081030-cpu-7986", {"cells": 1}, ("2026-11-23", "unknown")),
        ("cpu", {"origin": {"date": "2026-11-24", "commit": "abc"}}, ("2026-11-24", "abc")),
    ],
)
def test_rows_have_the_origin_of_their_run(tmp_path, name, request_, expected):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    if request_ is not None:
        path.with_suffix(".run.json").write_text(json.dumps(request_))
    (row,) = results.read(path).values()
    assert (row["date"], row["commit"]) == expected


def test_a_link_has_the_day_of_the_file_that_it_leads_to(tmp_path):
    (tmp_path / "20261123-081030-cpu-7986.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "cpu.jsonl").symlink_to("20261123-081030-cpu-7986.jsonl")
    (row,) = results.read(tmp_path / "cpu.jsonl").values()
    assert row["date"] == "2026-11-23"


@pytest.mark.parametrize(
    ("commit", "text"),
    [
        ("7d40e7c", "JAX 0.12.0; seen 2026-11-28 (commit 7d40e7c)"),
        (
            "unknown; kept since 7d40e7c",
            "JAX 0.12.0; seen by 2026-11-28 (commit unknown; kept since 7d40e7c)",
        ),
    ],
)
def test_tables_say_what_is_known(commit, text):
    figures = {"jax": "0.12.0", "date": "2026-11-28", "commit": commit}
    assert rendering._seen(figures) == text


def test_figures_without_an_origin_say_that():
    assert rendering._seen({"jax": "0.12.0"}) == "JAX 0.12.0; seen unknown (commit unknown)"
