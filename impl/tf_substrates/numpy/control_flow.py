"""Functions of each row: Python's own loops on NumPy, jax.lax's on JAX."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.arrays.joining import stack
from tf_substrates.numpy.carried import arrays_of, converted
from tf_substrates.numpy.errors import DrawnInLoopError, invalid_argument
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.random import step_of_loop
from tf_substrates.numpy.recording import current_tapes, staged
from tf_substrates.numpy.shapes import TensorSpec, TypeSpec
from tf_substrates.numpy.tensors import convert, wrap
from tf_substrates.numpy.traced_variables import AssignedInMapError, Carried, carrying

JAX_MODE = False
if JAX_MODE:
    import jax


def _rows(elems: Any, expand: bool = False) -> tuple[list, int]:
    leaves = [convert(leaf) for leaf in nest.flatten(elems, expand)]
    if not leaves:
        raise ValueError("elems must be a tensor or a nonempty structure of tensors.")
    for leaf in leaves:
        if not leaf.shape:
            raise ValueError("elements in elems must be 1+ dimensional Tensors, not scalars")
    return leaves, leaves[0].shape[0]


def _stacked(structure: Any, results: list, dtypes_of: list) -> Any:
    columns = zip(*[nest.flatten(result) for result in results], strict=True)
    leaves = [
        wrap(np.stack(column).astype(d)) for column, d in zip(columns, dtypes_of, strict=True)
    ]
    return nest.pack_sequence_as(structure, leaves)


def _packed(elems: Any, leaves: list, expand: bool = False) -> Any:
    return nest.pack_sequence_as(elems, [wrap(leaf) for leaf in leaves], expand)


def _is_of_composite(spec: Any) -> bool:
    return isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec)


def _specs(signature: Any) -> Iterator:
    """The leaves of a signature, in which the spec of a value made of tensors is those of these."""
    for leaf in nest.flatten(signature):
        yield from _specs(leaf._component_specs) if _is_of_composite(leaf) else [leaf]


@export("map_fn")
def map_fn(
    fn: Callable,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Any = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each row, stacked. `fn_output_signature` is the results' structure of dtypes.

    Raises:
      tf.errors.InvalidArgumentError: a result has another dtype than the signature, or, without
        one, than the elements.
    """
    signature = fn_output_signature if fn_output_signature is not None else dtype
    leaves, count = _rows(elems, expand=True)
    expected = (
        nest.map_structure(lambda leaf: dtypes.dtype_of(convert(leaf)), elems)
        if signature is None
        else signature
    )
    # A class of NumPy's (np.float64) has an attribute of that name too.
    wanted = [
        dtypes.numpy_dtype(d if isinstance(d, type) else getattr(d, "dtype", d))
        for d in _specs(expected)
    ]
    # What is made of tensors, such as a distribution, is put together as the function gave it.
    composite = any(map(_is_of_composite, nest.flatten(expected)))
    results: list = []

    def call(row: list) -> list:
        result = fn(_packed(elems, row, True))
        nest.assert_same_structure(expected, result, check_types=False)
        results.append(result)
        given = nest.flatten(result, True)
        arrays = [convert(leaf, hint=d) for leaf, d in zip(given, wanted, strict=True)]
        for array, d in zip(arrays, wanted, strict=True):
            if array.dtype != d:
                raise invalid_argument(
                    f"TensorArray dtype is {d.name} but Op is trying to write dtype"
                    f" {array.dtype.name}: give tf.map_fn the fn_output_signature"
                )
        return arrays

    if JAX_MODE and not current_tapes():
        with contextlib.suppress(DrawnInLoopError):
            _, made = _scanned(
                lambda _, row: (None, [xp.asarray(a) for a in call(row)]), None, leaves
            )
            return nest.pack_sequence_as(results[0] if composite else expected, made, composite)
    if count == 0:
        made = [xp.zeros((0, *leaves[0].shape[1:]), d) for d in wanted]
        return _packed(expected, made)
    rows = [call([leaf[i] for leaf in leaves]) for i in range(count)]
    made = [stack(list(column)) for column in zip(*rows, strict=True)]
    return _packed(results[0] if composite else expected, made, composite)


def _scanned(step: Callable, start: Any, rows: list, reverse: bool = False) -> Any:
    """jax.lax.scan, with the number of the step where one draws from a generator.

    Raises:
      DrawnInLoopError: one draws, and outside of jax.jit, where generators have their state.
    """
    rows = [xp.asarray(row) for row in rows]
    try:
        with step_of_loop(None):
            return carrying(functools.partial(_scan_with, step, start, rows, reverse))
    except DrawnInLoopError:
        if not staged():
            raise

    def counted(carry: Any, numbered: tuple) -> Any:
        number, row = numbered
        with step_of_loop(number):
            return step(carry, row)

    numbers = np.arange(rows[0].shape[0], dtype=np.int32)
    numbers = numbers[::-1] if reverse else numbers
    numbered = (xp.asarray(numbers), rows)
    return carrying(functools.partial(_scan_with, counted, start, numbered, reverse))


def _scan_with(step: Callable, start: Any, rows: Any, reverse: bool, carried: Carried) -> tuple:
    """jax.lax.scan's result, and the values of the variables that a step assigns."""

    def step_with(carry: tuple, row: Any) -> tuple:
        kept, values = carry
        with carried.region(values) as region:
            kept, made = step(kept, row)
            values = region.after(carried.variables)
        carried.require_whole()
        return (kept, values), made

    made: Any
    (last, values), made = jax.lax.scan(step_with, (start, carried.start()), rows, reverse=reverse)
    return (last, made), values


@export("vectorized_map")
def vectorized_map(
    fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """`fn` of all rows at once: jax.vmap on JAX, one row after the other on NumPy.

    Rows of length 1 go with every other, as TensorFlow lets them. Values that are made of tensors,
    such as distributions, are taken apart and put together again. If `fn` assigns variables, it
    runs for one row after the other.

    Raises:
      StatefulError: `fn` assigns variables, and `fallback_to_while_loop` is false.
    """
    leaves, _ = _rows(elems, expand=True)
    count = max(leaf.shape[0] for leaf in leaves)
    if any(leaf.shape[0] not in (1, count) for leaf in leaves):
        raise ValueError(
            f"vectorized_map: the first dimensions {[leaf.shape[0] for leaf in leaves]} differ"
        )
    if JAX_MODE and not current_tapes():
        structure: list = []

        def call(*row: Any) -> list:
            at = iter(row)
            whole = [next(at) if leaf.shape[0] == count else leaf[0] for leaf in leaves]
            with Carried([], 0).region([], _ASSIGNED_IN_MAP):
                result = fn(nest.pack_sequence_as(elems, whole, True))
            structure.append(result)
            return [xp.asarray(convert(leaf)) for leaf in nest.flatten(result, True)]

        columns = [xp.asarray(leaf) for leaf in leaves if leaf.shape[0] == count]
        try:
            made = jax.vmap(call)(*columns)
            return nest.pack_sequence_as(structure[0], made, True)
        except AssignedInMapError:
            if not fallback_to_while_loop:
                raise
    if count == 0:
        raise ValueError(
            "vectorized_map of no rows: NumPy, or a tape, has nothing to find the shapes with"
        )
    results = [
        fn(_packed(elems, [leaf[i if leaf.shape[0] == count else 0] for leaf in leaves], True))
        for i in range(count)
    ]
    flat = [[convert(leaf) for leaf in nest.flatten(result, True)] for result in results]
    made = [wrap(stack(list(column))) for column in zip(*flat, strict=True)]
    return nest.pack_sequence_as(results[0], made, True)


_ASSIGNED_IN_MAP = (
    AssignedInMapError,
    "tf.vectorized_map: `fn` assigns the variable {name}, and runs for all rows at once. What to"
    " do: use tf.map_fn, or leave `fallback_to_while_loop` true.",
)


@export("scan")
def scan(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: Any = None,
) -> Any:
    """The states that `fn(state, row)` goes through from `initializer`, or from the first row."""
    return _fold(fn, elems, initializer, reverse, keep=True)


@export("foldl")
def foldl(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """The last state that `fn(state, row)` comes to."""
    return _fold(fn, elems, initializer, reverse=False, keep=False)


@export("foldr")
def foldr(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """The same from the last row to the first."""
    return _fold(fn, elems, initializer, reverse=True, keep=False)


def _fold(fn: Callable, elems: Any, initializer: Any, reverse: bool, keep: bool) -> Any:
    if not callable(fn):
        raise TypeError(f"{fn.__name__ if hasattr(fn, '__name__') else fn!r} is not callable.")
    leaves, count = _rows(elems)
    if initializer is None:
        if count == 0:
            raise ValueError("tf.scan: without rows there must be an initializer")
        first = -1 if reverse else 0
        rest = slice(0, -1) if reverse else slice(1, None)
        state = _packed(elems, [leaf[first] for leaf in leaves])
        rows = [leaf[rest] for leaf in leaves]
    else:
        state, rows = converted(initializer), leaves

    def step(carry: Any, row: list) -> Any:
        result = fn(carry, _packed(elems, row))
        nest.assert_same_structure(carry, result, check_types=False)
        new = [
            wrap(convert(leaf, dtype=old.dtype))
            for leaf, old in zip(nest.flatten(result), nest.flatten(carry), strict=True)
        ]
        return nest.pack_sequence_as(carry, new)

    if JAX_MODE and not current_tapes():
        with contextlib.suppress(DrawnInLoopError):
            return _jax_fold(step, state, rows, reverse, keep, from_first=initializer is None)
    length = len(rows[0])
    history = [] if initializer is not None else [state]
    carry = state
    for i in reversed(range(length)) if reverse else range(length):
        carry = step(carry, [row[i] for row in rows])
        history.append(carry)
    if not keep:
        return carry
    flat = [
        [convert(leaf) for leaf in nest.flatten(s)] for s in (history[::-1] if reverse else history)
    ]
    if not flat:
        made = [xp.zeros((0, *leaf.shape), leaf.dtype) for leaf in nest.flatten(state)]
    else:
        made = [stack(list(column)) for column in zip(*flat, strict=True)]
    return _packed(state, made)


def _jax_fold(
    step: Callable, state: Any, rows: list, reverse: bool, keep: bool, from_first: bool
) -> Any:
    def body(carry: list, row: list) -> tuple:
        new = arrays_of(step(nest.pack_sequence_as(state, carry), row))
        return new, new if keep else None

    start = arrays_of(state)
    last, states = _scanned(body, start, rows, reverse)
    if not keep:
        return nest.pack_sequence_as(state, last)
    if from_first:
        ends = [
            [s, first[None]] if reverse else [first[None], s]
            for s, first in zip(states, start, strict=True)
        ]
        states = [xp.concatenate(pair) for pair in ends]
    return nest.pack_sequence_as(state, states)
