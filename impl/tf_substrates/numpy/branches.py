"""Branches: Python's own on NumPy, jax.lax's where JAX traces what decides."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import nest
from tf_substrates.numpy.captures import captured_call
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.tensors import convert, traced
from tf_substrates.numpy.traced_variables import Carried, carrying

JAX_MODE = False
if JAX_MODE:
    import jax


@export("cond")
def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None) -> Any:
    """What one of two functions returns; both are traced where JAX traces the predicate.

    Raises:
      TypeError: a branch is missing, or no function.
    """
    for which, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"'{which}' must be callable.")
    chosen = convert(pred, hint=np.bool_)
    if traced(chosen):
        return switch(chosen.reshape(()).astype(np.int32), [false_fn, true_fn])
    return true_fn() if bool(chosen) else false_fn()


def switch(index: Any, functions: list) -> Any:
    """jax.lax.switch over functions whose results may be any structures, all alike."""
    return carrying(functools.partial(_switch_with, index, functions))


def _switch_with(index: Any, functions: list, carried: Carried) -> tuple:
    """The result, and the values of the variables that one of the functions assigns."""
    structures: list = []

    def branch(function: Callable) -> list:
        with carried.region([]) as region:
            result = function()
            structures.append(result)
            leaves = [
                None if leaf is None else xp.asarray(convert(leaf))
                for leaf in nest.flatten(result, True)
            ]
            return [*leaves, *region.after(carried.variables)]

    leaves = captured_call(
        lambda functions, _: jax.lax.switch(index, functions),
        [functools.partial(branch, function) for function in functions],
        [],
    )
    for other in structures[1:]:
        nest.assert_same_structure(structures[0], other)
    size = len(leaves) - len(carried.variables)
    return nest.pack_sequence_as(structures[0], leaves[:size], True), leaves[size:]


@export("case")
def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: Any = "case",
) -> Any:
    """The function of the first predicate that holds, or the default.

    Raises:
      TypeError: a pair is not a predicate and a function.
      tf.errors.InvalidArgumentError: no predicate is known to hold and there is no default.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in pred_fn_pairs must be a 2-tuple. Received {pair}.")
        if not callable(pair[1]):
            raise TypeError(f"Function for pred {pair[0]} must be callable.")
    predicates = [convert(p.deref() if hasattr(p, "deref") else p, hint=np.bool_) for p, _ in pairs]
    functions = [function for _, function in pairs]
    if not any(map(traced, predicates)):
        for predicate, function in zip(predicates, functions, strict=True):
            if bool(predicate):
                return function()
        if default is None:
            raise invalid_argument("Input error: None of conditions evaluated as True:")
        return default()
    if default is None:
        default = functions[-1]
    held = xp.stack([xp.asarray(p).reshape(()) for p in predicates])
    index = xp.where(xp.any(held), xp.argmax(held), len(functions)).astype(np.int32)
    return switch(index, [*functions, default])


@export("switch_case")
def switch_case(
    branch_index: Any, branch_fns: Any, default: Any = None, name: Any = "switch_case"
) -> Any:
    """The function of an index; of one outside the default, or else the function of the last.

    Raises:
      TypeError: the index is a Python number, or a branch no function.
    """
    if isinstance(branch_index, int):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    elif branch_fns and all(isinstance(b, tuple) for b in branch_fns):
        pairs = sorted(branch_fns, key=lambda pair: pair[0])
    else:
        pairs = list(enumerate(branch_fns))
    if not pairs or not all(callable(function) for _, function in pairs):
        raise TypeError("'branch_fns' must hold functions, at least one.")
    by_index = dict(pairs)
    last = default if default is not None else pairs[-1][1]
    index = convert(branch_index)
    if index.dtype.kind not in "iu":
        raise TypeError(f"'branch_index' must be an integer, got {branch_index!r}")
    if not traced(index):
        return by_index.get(int(index), last)()
    if not by_index.keys() <= set(range(len(by_index))):
        raise ValueError(
            f"The indices of branches must be 0 to {len(by_index) - 1}, got {sorted(by_index)}"
        )
    count = len(by_index)
    inside = (index >= 0) & (index < count)
    functions = [by_index[i] for i in range(count)]
    index = xp.where(inside, index, count).astype(np.int32)
    return switch(index, [*functions, last])
