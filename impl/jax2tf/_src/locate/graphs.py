"""Programs as graphs of TensorFlow: eager, as a graph, compiled by XLA, or native."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.api.convert import convert
from jax2tf._src.locate.files import Outputs
from jax2tf._src.locate.program import Program, Values, as_numpy, is_key
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Array, Option

# How TensorFlow runs the program, and the options of `convert`.
MODES = ("graph", "compiled", "eager", "native")


@dataclasses.dataclass(frozen=True)
class Graph:
    """A program in TensorFlow.

    Attributes:
      program: the program.
      mode: one of `MODES`, or the name of a target, whose graph TensorFlow runs.
      options: the options of `convert`.
    """

    program: Program
    mode: str
    options: Mapping[str, Option]

    def outputs(self) -> Outputs:
        """The outputs of the program."""
        results = run(self.program.closed, self.program.leaves, self.mode, self.options)
        return dict(zip(self.program.names, results, strict=True))

    def values(self) -> Values:
        """The results of all equations, which are outputs of the graph."""
        wanted = self.program.readable()
        closed = self.program.with_outputs(wanted)
        results = run(closed, self.program.leaves, self.mode, self.options)
        return dict(zip(wanted, results, strict=True))


def run(
    closed: jex_core.ClosedJaxpr,
    leaves: Sequence[Array],
    mode: str,
    options: Mapping[str, Option],
) -> list[np.ndarray]:
    """The results of a jaxpr in TensorFlow."""
    given = dict(options)
    if mode == "native":
        given["native_serialization"] = True
    elif mode in TARGETS:
        given["target"] = mode
    converted = convert(jex_core.jaxpr_as_fun(closed), with_gradient=False, **given)
    # TensorFlow takes the data of keys only within JAX's types.
    tensors = [leaf if is_key(leaf) else tf.constant(as_numpy(leaf)) for leaf in leaves]
    if mode == "eager":
        return [x.numpy() for x in converted(*tensors)]
    function = tf.function(
        lambda *args: converted(*args),
        autograph=False,
        jit_compile=True if mode == "compiled" else None,
    )
    return [x.numpy() for x in function(*tensors)]
