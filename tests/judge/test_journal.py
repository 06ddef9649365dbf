"""The file of a run: what stands in it when, what goes on with it, and what is refused."""

import json

import pytest

from harnesses.cell import journal
from harnesses.cell.journal import Journal, ResultsError
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine import request
from harnesses.engine.options import cell_command
from harnesses.engine.selection import Selection
from reports.merge import Shard, merge
from tests.judge.rows import harness, passing

ROWS = [passing(harness("sin", dtype)) for dtype in ("float32", "float64", "bfloat16")]
# Where runs of that fake stand, whose name is not the default one.
RIGHT = "cpu-tests.judge.fakes.right"
NAMES = tuple(f"--name=jit_{dtype}" for dtype in ("float16", "float32", "float64"))


@pytest.fixture
def written(tmp_path):
    """The path of a file that holds two rows, of a run that was asked for three cells."""
    path = tmp_path / "run.jsonl"
    file = Journal(path)
    file.create({"cells": 3})
    for row in ROWS[:2]:
        file.append(row)
    file.close()
    return path


@pytest.fixture
def stopped(matrix, tmp_path):
    """A run of three cells that stopped when one had ended; gives its file."""
    run = matrix("right", *NAMES, "--mode=eager", results=tmp_path / "stopped.jsonl")
    run.begin(len(run.cells))
    run.run(next(iter(run.cells.values())))
    run.close()
    return run.file


class TestFile:
    def test_each_row_is_there_at_once_for_all_who_append(self, tmp_path):
        first, second = (Journal(tmp_path / "rows.jsonl") for _ in range(2))
        first.append(ROWS[0])
        second.append(ROWS[1])
        assert journal.read(first.path) == ROWS[:2]

    def test_a_row_that_was_cut_off_is_left_out(self, written):
        with written.open("a") as file:
            file.write(json.dumps(ROWS[2])[:40])
        assert journal.read(written) == ROWS[:2]

    def test_going_on_drops_what_was_cut_off_and_keeps_the_rest(self, written):
        whole = written.read_text().splitlines()
        written.write_text("\n".join((whole[0], whole[1][:40] + whole[1], whole[0][:40])))
        file = Journal(written)
        assert file.reopen() == ROWS[:1]
        file.append(ROWS[2])
        assert journal.read(written) == [ROWS[0], ROWS[2]]

    def test_a_file_with_rows_is_not_written_again(self, written):
        with pytest.raises(
            ResultsError, match=r"run\.jsonl holds the rows of an earlier run.*--res"
        ):
            Journal(written).create({})
        assert journal.read(written) == ROWS[:2]

    @pytest.mark.parametrize("drop", [False, True])
    def test_a_run_that_goes_on_still_is_left_alone(self, written, drop):
        if drop:
            written.write_text(written.read_text() + "{")
        going_on = Journal(written)
        going_on.reopen()
        with pytest.raises(ResultsError, match="goes on still"):
            Journal(written).reopen()
        going_on.close()
        assert Journal(written).reopen() == ROWS[:2]

    def test_runs_that_stopped_are_found(self, written):
        ended = Journal(written.with_name("ended.jsonl"))
        ended.create({"cells": 1})
        ended.append(ROWS[0])
        written.with_name("unknown.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
        assert list(journal.stopped(written.parent)) == [(written, {"cells": 3})]


class TestShards:
    def test_each_knows_how_many_cells_all_of_them_have(self, matrix):
        shards = [matrix("right", *NAMES, "--mode=eager", f"--shard={i}/2") for i in (1, 2)]
        for shard in shards:
            shard.begin(len(shard.cells))
        requests = [journal.request_of(shard.file) for shard in shards]
        assert [request["cells"] for request in requests] == [2, 1]
        assert [request["cells_of_all_shards"] for request in requests] == [3, 3]

    def test_together_they_go_on_as_the_run_that_they_are_parts_of(self, matrix, tmp_path):
        shard = matrix("right", *NAMES, "--mode=eager", "--shard=2/2")
        shard.begin(len(shard.cells))
        for cell in shard.cells.values():
            shard.run(cell)
        shard.close()
        whole = merge([Shard.read(shard.file)])
        whole.write(tmp_path / "whole.jsonl")
        run = matrix("right", *NAMES, "--mode=eager", "--resume", results=tmp_path / "whole.jsonl")
        assert list(run.cells) == [f"jit_{d}-cpu-xla-eager" for d in ("float16", "float64")]


class TestGoingOn:
    def test_what_has_ended_is_not_run_again(self, matrix, stopped):
        run = matrix("right", *NAMES, "--mode=eager", "--resume", results=stopped)
        assert list(run.cells) == [f"jit_{d}-cpu-xla-eager" for d in ("float32", "float64")]
        for cell in run.cells.values():
            run.run(cell)
        assert run.finish() == []
        assert run.summary().startswith("3 cells asked for, 3 ran (3 pass), 0 red, 0 did not run;")

    def test_what_is_missing_is_counted(self, matrix, stopped):
        run = matrix("right", *NAMES, "--mode=eager", "--resume", results=stopped)
        run.finish()
        assert run.summary().startswith("3 cells asked for, 1 ran (1 pass), 0 red, 2 did not run;")
        (remark,) = run.remarks()
        assert remark.startswith(f"the rows are in {stopped}; go on with: ")
        assert remark.endswith(f"--results {stopped} --resume")

    @pytest.mark.parametrize(
        ("fake", "arguments", "words"),
        [
            ("right", (*NAMES, "--mode=graph"), r"mode was \['eager'\] and is \['graph'\]"),
            ("right", (*NAMES[1:], "--mode=eager"), r"name was \['jit_float16', .* and is \["),
            ("dtype", (*NAMES, "--mode=eager"), r"impl was 'tests.*right' and is 'tests.*dtype'"),
        ],
    )
    def test_another_selection_is_refused(self, matrix, stopped, fake, arguments, words):
        with pytest.raises(ResultsError, match=rf"stopped\.jsonl is of another run: {words}"):
            matrix(fake, *arguments, "--resume", results=stopped)

    @pytest.mark.parametrize(
        ("part", "key", "words"),
        [
            ("versions", "jax", r"jax was 'another' and is '\d.*'"),
            ("versions", "tensorflow", r"tensorflow was 'another' and is '\d.*'"),
            ("code", "the judge", "the judge has changed"),
            ("code", "the ledger", "the ledger has changed"),
            ("code", "the implementation", "the implementation has changed"),
        ],
    )
    def test_other_versions_and_other_code_are_refused(self, matrix, stopped, part, key, words):
        beside = stopped.with_suffix(".run.json")
        before = json.loads(beside.read_text())
        before[part][key] = "another"
        beside.write_text(json.dumps(before))
        with pytest.raises(ResultsError, match=f"is of another run: {words}. Begin a new run"):
            matrix("right", *NAMES, "--mode=eager", "--resume", results=stopped)

    def test_a_file_that_does_not_say_what_was_asked_for(self, matrix, stopped):
        stopped.with_suffix(".run.json").unlink()
        with pytest.raises(ResultsError, match=r"has no stopped\.run\.json beside it"):
            matrix("right", *NAMES, "--mode=eager", "--resume", results=stopped)

    def test_the_newest_run_of_these_options_is_found(self, matrix, tmp_path, monkeypatch):
        monkeypatch.setattr(journal, "FOLDER", tmp_path)
        with pytest.raises(ResultsError, match="no run that stopped stands in"):
            matrix("right", *NAMES, "--resume", results=None)
        run = matrix("right", *NAMES, results=None)
        run.begin(len(run.cells))
        run.close()
        assert matrix("right", *NAMES, "--resume", results=None).file == run.file
        words = r"no run .* these cells\. .* goes on with: .*--name jit_float16 .* --resume$"
        with pytest.raises(ResultsError, match=words):
            matrix("right", "--resume", results=None)


@pytest.mark.parametrize(
    ("lowerings", "name"),
    [
        ((), ""),
        (("xla",), ""),
        (("no_xla",), "-no_xla"),
        (("xla", "no_xla"), "-xla-no_xla"),
    ],
)
def test_results_of_other_lowerings_stand_beside(matrix, tmp_path, monkeypatch, lowerings, name):
    monkeypatch.setattr(journal, "FOLDER", tmp_path)
    run = matrix("right", *(f"--lowering={each}" for each in lowerings), results=None)
    assert run._latest() == tmp_path / "parts" / f"{RIGHT}{name}.jsonl"
    run.impl = DEFAULT_IMPLEMENTATION
    assert run._latest() == tmp_path / "parts" / f"cpu{name}.jsonl"


def test_each_run_has_a_file_and_the_latest_a_link(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "FOLDER", tmp_path)
    latest = tmp_path / "parts" / f"{RIGHT}.jsonl"
    for number in range(2):
        run = matrix("right", "--name=jit_float32", results=None)
        run.begin(len(run.cells))
        run.run(next(iter(run.cells.values())))
        run.finish()
        assert latest.resolve() == run.file.resolve()
        assert journal.read(latest) == run.rows
        assert journal.request_of(latest)["cells"] == len(run.cells)
        run.file.rename(run.file.with_name(f"{number}.jsonl"))  # the next starts in this second
        run.close()
    assert len(list((tmp_path / "runs").glob("*.jsonl"))) == 2


@pytest.mark.parametrize("every", [True, False])
def test_a_part_does_not_take_the_place_of_a_whole(matrix, tmp_path, monkeypatch, every):
    monkeypatch.setattr(journal, "FOLDER", tmp_path)
    whole = Selection(name=("jit_float32",)).cells()
    monkeypatch.setattr(Selection, "cells", lambda self: whole)
    run = matrix("right", results=None)
    run.begin(len(run.cells))
    for cell in list(run.cells.values())[: None if every else 1]:
        run.run(cell)
    run.finish()
    assert (tmp_path / f"{RIGHT}.jsonl").exists() == every
    assert (tmp_path / "parts" / f"{RIGHT}.jsonl").exists() != every


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--device cpu --mode eager --lowering xla -n 0"),
        (
            ("--lowering=no_xla", "--device=tpu", "--mode=compiled"),
            "--device tpu --mode compiled --lowering no_xla -n 0",
        ),
        (
            ("--impl=my.converter", "--ledger=my ledger", "--cell-timeout=5"),
            "--device cpu --mode eager --lowering xla --impl my.converter --ledger 'my ledger' "
            "--cell-timeout 5 -n 0",
        ),
        (("--side=jax",), "--device cpu --side jax -n 0"),
        (("--direction=call_tf",), "--device cpu --direction call_tf --mode op_by_op -n 0"),
    ],
)
def test_the_command_repeats_the_cell(parsed, monkeypatch, arguments, words):
    for name in request.environment():
        monkeypatch.delenv(name)
    options = parsed("--sample=1", *arguments)
    cell = request.selection(options).cells()[0]
    name = f"--name {cell.harness.name}"
    assert cell_command(cell, options) == f"python -m harnesses run {name} {words}"
    monkeypatch.setenv("XLA_FLAGS", "--xla_one --xla_two")
    assert cell_command(cell, options, workers=1) == (
        f"XLA_FLAGS='--xla_one --xla_two' python -m harnesses run {name} {words[:-1]}1"
    )
