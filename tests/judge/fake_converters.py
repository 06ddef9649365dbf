"""Converters that do not end in TensorFlow, each wrong in one way."""

import jax
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
