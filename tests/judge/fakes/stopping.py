"""The function of dtype bfloat16 stops the run, as STOP_THE_RUN says; without that all are right.

interrupt     Ctrl-C
terminate     what a scheduler sends
kill parent   the run's first process and this one die at once
"""

import os
import signal

import ml_dtypes

from tests.judge.fakes import spoiled_by


def _spoil(result):
    if result.dtype == ml_dtypes.bfloat16 and "STOP_THE_RUN" in os.environ:
        _WAYS[os.environ["STOP_THE_RUN"]]()
    return result


def _kill_both():
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


_WAYS = {
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "kill parent": _kill_both,
}
if os.environ.get("STOP_THE_RUN") == "interrupt":
    # A shell's job in the background, as a run of the tests may be, ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
convert = spoiled_by(_spoil)
