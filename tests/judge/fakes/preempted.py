"""The first process that comes to the function of dtype bfloat16 is killed; all results are right.

PREEMPTED names the file by which later processes know.
"""

import os
import signal
from pathlib import Path

import ml_dtypes

from tests.judge.fakes import spoiled_by


def _spoil(result):
    note = Path(os.environ["PREEMPTED"])
    if result.dtype == ml_dtypes.bfloat16 and not note.exists():
        note.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return result


convert = spoiled_by(_spoil)
