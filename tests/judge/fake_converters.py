"""Converters that do not end in TensorFlow, each wrong in one way."""

import os
import signal
import time
from collections.abc import Callable

import jax
import ml_dtypes
import numpy as np

from harnesses.engine.converters import Converter


class Right(Converter):
    """JAX itself."""

    distributions = ("jax",)

    def convert(self, fun, args):
        return jax.jit(fun)


class Wrong(Right):
    """Every float is two ULPs too large."""

    def call(self, model, args):
        return jax.tree.map(lambda x: np.nextafter(np.nextafter(x, 9), 9), model(*args))


class WrongUnder(Right):
    """What has the word in its jaxpr gives zeros."""

    word: str

    def convert(self, fun, args):
        right = super().convert(fun, args)
        if self.word not in str(jax.make_jaxpr(fun)(*args)):
            return right
        return lambda *args: jax.tree.map(np.zeros_like, right(*args))


class WrongUnderJit(WrongUnder):
    word = "jit["


class WrongUnderScan(WrongUnder):
    word = "scan["


class WrongUnderCond(WrongUnder):
    word = "cond["


class WrongDerivatives(WrongUnder):
    word = " cos "


class WrongBatches(WrongUnder):
    word = "f32[3,"


class WrongLastAxis(WrongUnder):
    word = ",3]"


class OfBfloat16(Right):
    """What it does to a result of bfloat16 costs more than a wrong number."""

    harm: Callable[[], object]

    def call(self, model, args):
        result = model(*args)
        if result.dtype == ml_dtypes.bfloat16:
            self.harm()
        return result


class Dying(OfBfloat16):
    """The process ends."""

    harm = staticmethod(os.abort)


class Hanging(OfBfloat16):
    """It never returns."""

    def harm(self):
        time.sleep(1000)


class Stopping(OfBfloat16):
    """The run is stopped as STOP_THE_RUN says; without it, nothing happens.

    interrupt     Ctrl-C
    terminate     what a scheduler sends
    kill parent   the run's first process and this one die at once
    """

    def harm(self):
        way = os.environ.get("STOP_THE_RUN")
        if way == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        elif way == "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        elif way == "kill parent":
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("STOP_THE_RUN") == "interrupt":
    # A shell's job in the background, as a run of the tests may be, ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Leaving(OfBfloat16):
    """It raises what ends a process that does not catch it."""

    raised: type[BaseException]

    def harm(self):
        raise self.raised("enough")


class LeavingBySystemExit(Leaving):
    raised = SystemExit


class LeavingByKeyboardInterrupt(Leaving):
    raised = KeyboardInterrupt


class LeavingByGeneratorExit(Leaving):
    raised = GeneratorExit


class LeavingWhileConverting(Right):
    """Another exception for each dtype, where the function is converted."""

    def convert(self, fun, args):
        raise {2: SystemExit, 4: KeyboardInterrupt, 8: GeneratorExit}[args[0].dtype.itemsize]


class Refusing(Converter):
    """It converts nothing."""

    noise = ((r"node_\d+", "node"),)

    def convert(self, fun, args):
        raise NotImplementedError("no rule for node_17")


class Running(Right):
    """What it makes cannot be run."""

    def call(self, model, args):
        raise RuntimeError("no kernel")


class Modest(Right):
    """It claims nothing of the family calls."""

    def declines(self, harness):
        return "calls are not claimed" if harness.family == "calls" else None


class NoConverter:
    """It is no Converter."""
