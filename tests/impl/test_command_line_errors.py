"""Command lines that name a file, a folder or a module that is not there, or is another thing.

Each ends with a status that is not 0 and one message without a traceback.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from jax2tf import __main__ as jax2tf_commands
from limitations import __main__ as limitations_commands
from reports import __main__ as reports_commands
from tf_substrates import __main__ as tf_substrates_commands

COMMANDS = {
    "jax2tf": jax2tf_commands.main,
    "limitations": limitations_commands.main,
    "reports": reports_commands.main,
    "tf_substrates": tf_substrates_commands.main,
}


def identity(x):
    return x


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder with files that are none of what commands read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "models", sys.modules[__name__])
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "text.jsonl").write_text("hello\n")
    (tmp_path / "list.jsonl").write_text("[1]\n")
    (tmp_path / "broken.toml").write_text("[tool")
    np.savez("objects.npz", x=np.array([object()], dtype=object))

    def call(line):
        program, *arguments = line.split(" ")
        try:
            status = COMMANDS[program](arguments)
        except SystemExit as error:
            status = error.code
        said = capsys.readouterr()
        return status, said.out + said.err

    return call


EXPORT = "jax2tf export models:identity -i 3 --no-progress"
SAMPLES = f"{EXPORT} --to m.tflite --option quantize=int8 --representative-data"
LINES = {
    "jax2tf run nothing.py": "there is no file nothing.py",
    "jax2tf run folder": "there is no file folder",
    "jax2tf run -m nothing": "there is no module 'nothing'",
    "jax2tf run -m nothing.at.all": "there is no module 'nothing.at.all'",
    "jax2tf explain nothing:f": "there is no module 'nothing'",
    "jax2tf explain models:nothing": "there is no 'nothing' in models",
    "jax2tf explain models:identity -i 3 --params nothing.npz": "there is no checkpoint",
    "jax2tf explain models:identity -i 3 --params text.npz": "the file text.npz should be an .npz",
    "jax2tf explain models:identity -i 3 --html nothing/a.html": "--html should be a file",
    "jax2tf explain models:identity -i 3 --html folder": "--html should be a file",
    "jax2tf explain models:identity -i 3:float": "'float' is float64",
    "jax2tf plan nothing:f": "there is no module 'nothing'",
    "jax2tf plan models": "the function should be given as MODULE:FUNCTION",
    "jax2tf plan models:nothing": "there is no 'nothing' in models",
    "jax2tf plan models:identity -i 3 --params nothing.npz": "there is no checkpoint",
    "jax2tf plan models:identity -i 3:float": "'float' is float64",
    "jax2tf plan models:identity -i 3 -i x=3": "inputs should all have names",
    f"{EXPORT} --to /proc/m": "/proc/m cannot be written",
    f"{EXPORT} --to m --params nothing.npz": "there is no checkpoint",
    f"{EXPORT} --to m --tolerance nan": "tolerance should be a number",
    f"{EXPORT} --to m --tolerance=-1": "tolerance should be a number",
    f"{SAMPLES} nothing.npz": "representative_data the path of one that exists",
    f"{SAMPLES} folder": "representative_data: the file folder should be an .npz file",
    f"{SAMPLES} text.npz": "representative_data: the file text.npz should be an .npz file",
    f"{SAMPLES} objects.npz": "has Python objects (pickle), which are not loaded",
    "limitations check --results nothing.jsonl": "nothing.jsonl does not exist",
    "limitations check --results folder": "folder is a folder",
    "limitations check --results text.jsonl": "text.jsonl:1 is not a row of results",
    "limitations update --results nothing.jsonl": "nothing.jsonl does not exist",
    "reports summary --results nothing.jsonl": "nothing.jsonl does not exist",
    "reports summary --results folder": "folder is a folder",
    "reports html nothing.jsonl": "nothing.jsonl does not exist",
    "reports diff nothing.jsonl text.jsonl": "nothing.jsonl does not exist",
    "reports diff text.jsonl text.jsonl": "text.jsonl:1 is not a row of results",
    "reports culprits nothing.jsonl": "nothing.jsonl does not exist",
    "reports costs nothing.jsonl": "nothing.jsonl does not exist",
    "reports consumers nothing.jsonl": "nothing.jsonl does not exist",
    "reports versions nothing.jsonl": "nothing.jsonl does not exist",
    "reports libraries nothing.jsonl": "nothing.jsonl is no file",
    "reports libraries text.jsonl": "text.jsonl is not of a library's rows",
    "reports libraries list.jsonl": "list.jsonl is not of a library's rows",
    "tf_substrates check nothing": "there is no package 'nothing'",
    "tf_substrates check nothing.py": "there is no file or folder 'nothing.py'",
    "tf_substrates check nothing/at/all": "there is no file or folder 'nothing/at/all'",
    "tf_substrates check ": "there is no file or folder ''",
    "tf_substrates check text.jsonl": "has no file of Python",
    "tf_substrates check folder": "has no file of Python",
    "tf_substrates rewrite nothing --substrate numpy --out made": "there is no package 'nothing'",
    "tf_substrates rewrite --out made": "pyproject.toml: there is no such file",
    "tf_substrates rewrite --out made --project folder": "folder: there is no such file",
    "tf_substrates rewrite --out made --project broken.toml": "it is no file of TOML",
}


@pytest.mark.parametrize("line", LINES)
def test_a_command_that_names_what_is_not_there(line, run, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    status, said = run(line)
    assert status not in (0, None), said
    assert LINES[line] in " ".join(said.split()), said
    assert "Traceback" not in said
    assert sorted(tmp_path.rglob("*")) == before
