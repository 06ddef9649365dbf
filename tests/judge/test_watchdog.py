"""The watchdog ends a process that hangs, also in a call that never lets go of the GIL."""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_HANG = """
import ctypes, pathlib, sys, time
from harnesses.engine import watchdog
watchdog._SILENCE = 1.0
dog = watchdog.Watchdog(1.0, pathlib.Path(sys.argv[1]))
with dog.watching():
    pass
time.sleep(1.5)  # what is not watched may take its time
print("watching", flush=True)
with dog.watching():
    {hang}
"""


@pytest.mark.parametrize("hang", ["time.sleep(60)", "ctypes.PyDLL(None).sleep(60)"])
def test_a_hang_ends_the_process_and_leaves_a_note(tmp_path, hang):
    note = tmp_path / "note"
    process = subprocess.run(
        [sys.executable, "-c", _HANG.format(hang=hang), str(note)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (process.returncode, process.stdout) == (1, "watching\n")
    assert 'File "<string>", line 11 in <module>' in note.read_text()
