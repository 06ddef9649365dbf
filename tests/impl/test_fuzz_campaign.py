"""The campaign of random programs: each has a number, and none is lost to another that fails."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.impl.fuzzing import __main__ as command
from tests.impl.fuzzing import campaign


class Drawn:
    """In the place of a program: one that passes, fails, or ends its process."""

    n_examples = 2

    def __init__(self, number: int):
        self.number = number

    def check(self) -> None:
        if self.number == 3:
            raise ValueError("no")

    def __repr__(self) -> str:
        return f"Drawn({self.number})"


@pytest.mark.parametrize("kind", campaign.KINDS)
def test_a_number_draws_the_same_program(kind):
    first, again, other = (repr(campaign.program(kind, n)) for n in (5, 5, 6))
    assert first == again != other


def test_a_failure_is_a_row_and_the_others_run(monkeypatch, capsys):
    monkeypatch.setattr(campaign, "program", lambda kind, number: Drawn(number))
    assert command.main(["combinations", "--program", "2", "3", "4"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["number"] for row in rows] == [2, 3, 4]
    assert [row.get("error") for row in rows] == [None, "ValueError: no", None]
    assert (rows[1]["program"], rows[1]["examples"]) == ("Drawn(3)", 2)
    assert command.main(["combinations", "--program", "2", "4"]) == 0


def test_a_file_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    asked = []

    def in_processes(kind, numbers):
        for number in numbers:
            asked.append(number)
            yield {"kind": kind, "number": number, "examples": 2} | (
                {"error": "ValueError: no"} if number == 3 else {}
            )

    monkeypatch.setattr(command, "in_processes", in_processes)
    monkeypatch.setattr(command, "PROGRAMS_OF_A_PROCESS", 2)
    file = tmp_path / "rows" / "fuzz.jsonl"
    arguments = ["call_tf", str(file), "--workers", "1", "--first", "1"]
    assert command.main([*arguments, "--examples", "8"]) == 1
    assert asked == [1, 2, 3, 4]
    said = capsys.readouterr().out
    assert "program 3: ValueError: no" in said
    assert "4 programs, 8 examples, 1 failed" in said
    assert "again: python -m tests.impl.fuzzing call_tf --program 3" in said
    assert command.main([*arguments, "--examples", "12"]) == 1
    assert asked == [1, 2, 3, 4, 5, 6]
    assert len(file.read_text().splitlines()) == 6
    with pytest.raises(SystemExit, match="has rows of call_tf, and not of combinations"):
        command.main(["combinations", str(file)])


def test_a_process_that_dies_costs_one_program(tmp_path, monkeypatch):
    """In Python's place: the first process dies at its second program."""
    python = tmp_path / "python"
    python.write_text(
        f"""#!/bin/sh
        shift 4
        for number in "$@"; do
            if [ $number = 8 ]; then kill -{signal.SIGFPE.value} $$; fi
            echo 'a line of a library'
            echo "{{\\"kind\\": \\"call_tf\\", \\"number\\": $number, \\"examples\\": 4}}"
        done
        """
    )
    os.chmod(python, 0o755)
    monkeypatch.setattr(command.sys, "executable", str(python))
    rows = list(command.in_processes("call_tf", [7, 8, 9]))
    assert [row["number"] for row in rows] == [7, 8, 9]
    assert rows[1]["error"] == f"the process ended with status -{signal.SIGFPE.value}"
    assert "error" not in rows[0] | rows[2]


def test_a_file_or_programs_have_to_be_named(capsys):
    with pytest.raises(SystemExit):
        command.main(["call_tf"])
    assert "name the file that the rows go to" in capsys.readouterr().err
