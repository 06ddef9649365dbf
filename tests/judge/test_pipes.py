"""Commands whose output nobody reads any more, as in `python -m harnesses list | head`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnesses.cell import journal
from tests.reports.rows import row

_ROOT = Path(__file__).parents[2]


def unread(*words: str) -> tuple[int, str]:
    """Runs a command into a pipe that is closed; its exit status, and what it says of it."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, *words]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # As in a user's shell: a short output is in the buffer until the end.
    environment.pop("PYTHONUNBUFFERED", None)
    with os.fdopen(writer, "w") as output:
        process = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, text=True, cwd=_ROOT, env=environment
        )
    return process.returncode, process.stderr


@pytest.mark.parametrize(
    "words",
    [
        "harnesses list",
        "harnesses show --name=jit_float32",
        "harnesses --help",
        "limitations --help",
    ],
)
def test_a_command_ends_quietly(words):
    check_quiet("-m", *words.split())


def test_a_report_ends_quietly(tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps(row()) + "\n")
    check_quiet("-m", "reports", "summary", "--results", str(file))


def check_quiet(*words):
    status, said = unread(*words)
    assert status == 141  # 128 + SIGPIPE, as of programs that the signal ends
    assert "Error" not in said
    assert "Exception" not in said


@pytest.mark.parametrize(
    "handler", [signal.SIG_IGN, signal.default_int_handler], ids=["ignored", "taken"]
)
def test_a_run_ends_as_if_interrupted(tmp_path, handler, request):
    # Children inherit that it is ignored, as in what a shell runs in the background.
    before = signal.signal(signal.SIGINT, handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    path = tmp_path / "rows.jsonl"
    select = ["--family=cumulative", "--sample=20", "--mode=eager"]
    status, said = unread("-m", "harnesses", "run", *select, "-n0", f"--results={path}")
    assert status in (2, 141)  # of the interruption, or of what was left in the buffer
    assert "Error" not in said
    # The second of twenty is told of: it is on disk, and nothing runs after it.
    assert len(journal.read(path)) == 2


def test_another_pipe_that_breaks_is_an_error():
    code = (
        "import harnesses.cell.pipes as pipes\n"
        "def command(): raise BrokenPipeError('of a worker')\n"
        "pipes.exit_with(command)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "BrokenPipeError: of a worker" in process.stderr
