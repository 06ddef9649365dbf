"""Loops and branches, and what is known of the graph under construction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from jax2tf._src.graph import make
from jax2tf._src.graph.make import Maker
from jax2tf._src.graph.ops.operands import as_tensor
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.util.typing import PyTree

# Control flow. Nested tuples and lists of tensors are taken and given as they are.


def cond(pred: PyTree, true_fn: Callable[[], PyTree], false_fn: Callable[[], PyTree]) -> PyTree:
    """The results of one of two functions."""
    results: list[PyTree] = []
    branches = [_flat(function, results) for function in (true_fn, false_fn)]
    tensors = make.branch(as_tensor(pred, None).tensor, *branches)
    return _as(results[0], tensors)


def switch_case(branch_index: PyTree, branch_fns: Sequence[Callable[[], PyTree]]) -> PyTree:
    """The results of the function with this number, of the last one for other numbers."""
    results: list[PyTree] = []
    branches = [_flat(function, results) for function in branch_fns]
    return _as_like(results, make.switch(as_tensor(branch_index, None).tensor, branches))


def while_loop(
    cond: Callable[..., PyTree], body: Callable[..., PyTree], loop_vars: Sequence[PyTree]
) -> PyTree:
    """What is carried when the condition is false."""
    leaves, tree = jax.tree.flatten(tuple(loop_vars), is_leaf=_is_leaf)

    def step(*tensors: PyTree) -> list[PyTree]:
        given = jax.tree.unflatten(tree, _symbols(tensors))
        results = jax.tree.leaves(body(*given), is_leaf=_is_leaf)
        return [as_tensor(x, None).tensor for x in results]

    def goes_on(*tensors: PyTree) -> PyTree:
        return as_tensor(cond(*jax.tree.unflatten(tree, _symbols(tensors))), None).tensor

    results = make.loop(goes_on, step, [as_tensor(x, None).tensor for x in leaves])
    return jax.tree.unflatten(tree, _symbols(results))


def _is_leaf(x: PyTree) -> bool:
    return isinstance(x, Symbol)


def _symbols(tensors: Sequence[PyTree]) -> list[Symbol]:
    maker = make.current()
    return [Symbol(x, maker) for x in tensors]


def _flat(function: Callable[[], PyTree], results: list[PyTree]) -> Callable[[], list[PyTree]]:
    """A function of a list of tensors; the structure of the results is added to `results`."""

    def flat() -> list[PyTree]:
        leaves, tree = jax.tree.flatten(function(), is_leaf=_is_leaf)
        results.append(tree)
        return [as_tensor(x, None).tensor for x in leaves]

    return flat


def _as(tree: PyTree, tensors: Sequence[PyTree]) -> PyTree:
    return jax.tree.unflatten(tree, _symbols(tensors))


def _as_like(results: list[PyTree], tensors: Sequence[PyTree]) -> PyTree:
    return _as(results[0], tensors)


# The graph under construction, and what is known of a tensor.


def executing_eagerly() -> bool:
    """Ops of a graph never run while it is made."""
    return False


def get_default_graph() -> Maker:
    """The graph under construction."""
    return make.current()


def get_static_value(tensor: PyTree) -> np.ndarray | None:
    """The value of a tensor that is known; None for others."""
    known = tensor.tensor
    if known.value is not None or known.sizes is None:
        return known.value
    sizes = known.sizes
    is_number = all(isinstance(size, int) for size in sizes.ravel())
    return sizes.astype(known.dtype) if is_number else None


def is_tensor(x: PyTree) -> bool:
    """Whether it is a tensor of a graph."""
    return isinstance(x, Symbol)


is_symbolic_tensor = is_tensor


def get_current_name_scope() -> str:
    """The name stack of the nodes that are made now."""
    return make.current().scope


@contextlib.contextmanager
def name_scope(name: str) -> Iterator[None]:
    """A context whose nodes have another level in their name stack; without one with "/"."""
    maker = make.current()
    is_whole = not name or name.endswith("/")
    scope = name.rstrip("/") if is_whole else f"{maker.scope}/{name}".lstrip("/")
    with make.scoped_in(maker, scope):
        yield


@contextlib.contextmanager
def control_dependencies(control_inputs: PyTree) -> Iterator[None]:
    """A context; ops have no effects, and none waits for another."""
    yield
