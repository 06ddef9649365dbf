"""Reads a graph of TensorFlow as a graph of our own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from jax2tf._src.graph.graph import Graph, Node, Program, Size, Tensor
from jax2tf._src.util.typing import PyTree


def program_of(
    concrete: PyTree, dimensions: Mapping[str, tuple[Size, ...]] | None = None
) -> Program:
    """The program of a concrete function from named tensors to a dict of named tensors.

    Args:
      concrete: its captured variables become constants, which share the variables' memory.
      dimensions: the sizes of the arguments, by name; where there are none, TensorFlow's.
    """
    raise NotImplementedError
