"""Loops and branches: Python's own on NumPy, jax.lax's where JAX traces what decides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.arrays.joining import stack
from tf_substrates.numpy.counted_loops import known_length
from tf_substrates.numpy.errors import DrawnInLoopError, UnknownValueError, invalid_argument
from tf_substrates.numpy.known_values import known
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.random import step_of_loop
from tf_substrates.numpy.recording import is_recording, staged, traced_by
from tf_substrates.numpy.tensors import convert, traced, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


def _converted(structure: Any) -> Any:
    """The structure with tensors for leaves; TensorArrays carry their own."""
    return nest.map_structure(
        lambda leaf: leaf if hasattr(leaf, "_as_carry") else wrap(convert(leaf)), structure
    )


def _arrays(structure: Any) -> list:
    """The leaves as JAX's arrays, which loops carry."""
    return [
        leaf if hasattr(leaf, "_as_carry") else xp.asarray(convert(leaf))
        for leaf in nest.flatten(structure)
    ]


@export("while_loop")
def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """Repeats `body` while `cond` holds, on the variables of `loop_vars` and its structure.

    On JAX it is jax.lax.while_loop, so it compiles and has forward derivatives; with
    `maximum_iterations` known, or where `cond` reads known counters alone, it is a scan of that
    many steps, which has reverse ones too. Where the variables change their shapes, or a step needs
    to know how many were before it, the loop runs step by step if it is known when it ends, and
    where it is known how far it may go, as one branch after the other. A sampler with a state draws
    anew in every step.

    >>> from tf_substrates.numpy import tf
    >>> i, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, 1.0))
    >>> print(i, x)
    tf.Tensor(3, shape=(), dtype=int32) tf.Tensor(8.0, shape=(), dtype=float32)

    Raises:
      TypeError: `cond` or `body` is no function, or on JAX a variable changes its shape and what
        JAX traces decides when the loop ends.
      ValueError: there are no variables, or `body` returns another structure.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not nest.is_nested(loop_vars) or not nest.flatten(loop_vars):
        raise ValueError("'loop_vars' must be provided.")
    values = _converted(loop_vars)
    limit = None if maximum_iterations is None else convert(maximum_iterations, hint=np.int32)
    if JAX_MODE and not is_recording():
        try:
            return _one_step_for_all(cond, body, values, limit)
        except (TypeError, IndexError, UnknownValueError) as error:
            not_carried = error
        return _step_by_step(cond, body, values, limit, not_carried)
    if traced(limit) or traced(convert(_call(cond, values))):
        with traced_by("tf.while_loop", nest.flatten(values)):
            return _jax_while(cond, body, values, limit)
    steps = 0
    while (limit is None or steps < limit) and bool(convert(_call(cond, values))):
        values = _next(body, values)
        steps += 1
    return values


def _one_step_for_all(cond: Callable, body: Callable, values: Any, limit: Any) -> Any:
    """The loop as jax.lax's, with the number of the step where one draws from a generator.

    Raises:
      DrawnInLoopError: one draws, and outside of jax.jit, where generators have their state.
    """
    try:
        with step_of_loop(None):
            return _jax_while(cond, body, values, limit)
    except DrawnInLoopError:
        if not staged():
            raise

    def counted(step: Any, values: Any) -> tuple:
        with step_of_loop(step):
            return step + 1, _next(body, values)

    start = (xp.asarray(0, np.int32), values)
    return _jax_while(lambda _, values: _call(cond, values), counted, start, limit)[1]


def _step_by_step(cond: Callable, body: Callable, values: Any, limit: Any, error: Exception) -> Any:
    """The loop as Python's own, where jax.lax cannot carry it, which `error` says.

    Raises:
      the error: what JAX traces decides when the loop ends, and that is not why it is not carried.
    """
    if traced(limit):
        raise error
    values = _with_known(values)
    steps = 0
    while limit is None or steps < limit:
        holds = convert(_call(cond, values))
        if traced(holds):
            if isinstance(error, (DrawnInLoopError, TypeError)):
                raise error
            return _branches(cond, body, values, None if limit is None else limit - steps, error)
        if not bool(holds):
            break
        with step_of_loop(steps) if staged() else contextlib.nullcontext():
            values = _with_known(_next(body, values))
        steps += 1
    return values


# Each is compiled by itself.
_MOST_BRANCHES = 64


def _branches(cond: Callable, body: Callable, values: Any, limit: Any, error: Exception) -> Any:
    """The loop as one branch after the other, of which each knows how many steps were before it.

    Raises:
      the error: it may go on beyond the most branches.
    """
    result, alive = values, np.asarray(True)
    for _ in range(_MOST_BRANCHES if limit is None else min(_MOST_BRANCHES, int(limit))):
        holds = convert(_call(cond, values))
        if not traced(holds) and not bool(holds):
            return result
        alive = alive & xp.asarray(holds).reshape(())
        result, values = _step_while(alive, body, values, result)
    if limit is None or int(limit) > _MOST_BRANCHES:
        raise error
    return result


def _step_while(alive: Any, body: Callable, values: Any, result: Any) -> tuple[Any, Any]:
    """The variables after a step, if the loop has not ended, and those of the next step.

    What is known of the next step is known whether or not the loop has ended.
    """
    following: list = []

    def go_on() -> Any:
        following.append(_with_known(_next(body, values)))
        return following[0]

    result = _switch("tf.while_loop", alive.astype(np.int32), [lambda: result, go_on])
    leaves = [
        chosen if traced(new) else new
        for new, chosen in zip(nest.flatten(following[0]), nest.flatten(result), strict=True)
    ]
    return result, nest.pack_sequence_as(result, leaves)


def _with_known(values: Any) -> Any:
    """The variables, those that are known while JAX traces as such."""
    return nest.map_structure(known, values) if staged() else values


def _call(function: Callable, values: Any) -> Any:
    return function(**values) if isinstance(values, dict) else function(*values)


def _next(body: Callable, values: Any) -> Any:
    """One step, whose results have the structure and the dtypes of the variables."""
    results = _call(body, values)
    if not nest.is_nested(results):
        results = [results]
    nest.assert_same_structure(values, results, check_types=False)
    leaves = [
        new if hasattr(new, "_as_carry") else wrap(convert(new, dtype=old.dtype))
        for old, new in zip(nest.flatten(values), nest.flatten(results), strict=True)
    ]
    return nest.pack_sequence_as(values, leaves)


def _jax_while(cond: Callable, body: Callable, values: Any, limit: Any) -> Any:
    def step(leaves: list) -> list:
        return _arrays(_next(body, nest.pack_sequence_as(values, leaves)))

    def holds(leaves: list) -> Any:
        return xp.asarray(convert(_call(cond, nest.pack_sequence_as(values, leaves)))).reshape(())

    start = _with_element_shapes(step, _arrays(values))
    if limit is None:
        given = [
            carried if hasattr(leaf, "_as_carry") else convert(leaf)
            for leaf, carried in zip(nest.flatten(values), start, strict=True)
        ]
        length, step = known_length(holds, step, start, given)
        if length is None:
            leaves = jax.lax.while_loop(holds, step, start)
        else:
            leaves, _ = jax.lax.scan(lambda kept, _: (step(kept), None), start, None, length=length)
    elif traced(limit):
        count = (xp.asarray(0, limit.dtype), start)
        _, leaves = jax.lax.while_loop(
            lambda c: (c[0] < limit) & holds(c[1]), lambda c: (c[0] + 1, step(c[1])), count
        )
    else:
        # Of known length, and so with reverse derivatives: what has ended stays as it is.
        def bounded(leaves: list, _: Any) -> tuple:
            return jax.lax.cond(holds(leaves), step, lambda kept: kept, leaves), None

        leaves, _ = jax.lax.scan(bounded, start, None, length=int(limit))
    return nest.pack_sequence_as(values, leaves)


def _with_element_shapes(step: Callable, start: list) -> list:
    """Carried TensorArrays, those of no known element shape with the shape that a step gives."""
    if not any(hasattr(leaf, "_as_carry") and leaf._data is None for leaf in start):
        return start
    return [
        leaf._with_elements_of(new) if hasattr(leaf, "_as_carry") else leaf
        for leaf, new in zip(start, jax.eval_shape(step, start), strict=True)
    ]


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
        return _switch("tf.cond", chosen.reshape(()).astype(np.int32), [false_fn, true_fn])
    return true_fn() if bool(chosen) else false_fn()


def _switch(name: str, index: Any, functions: list) -> Any:
    """jax.lax.switch over functions whose results may be any structures, all alike."""
    structures: list = []

    def branch(function: Callable) -> Callable:
        def call() -> list:
            result = function()
            structures.append(result)
            return [
                None if leaf is None else xp.asarray(convert(leaf)) for leaf in nest.flatten(result)
            ]

        return call

    with traced_by(name, []):
        leaves = jax.lax.switch(index, [branch(function) for function in functions])
    for other in structures[1:]:
        nest.assert_same_structure(structures[0], other)
    return nest.pack_sequence_as(structures[0], leaves)


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
    return _switch("tf.case", index, [*functions, default])


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
    return _switch("tf.switch_case", index, [*functions, last])


# Over the first axis.


def _rows(elems: Any) -> tuple[list, int]:
    leaves = [convert(leaf) for leaf in nest.flatten(elems)]
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


def _packed(elems: Any, leaves: list) -> Any:
    return nest.pack_sequence_as(elems, [wrap(leaf) for leaf in leaves])


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
    leaves, count = _rows(elems)
    expected = (
        nest.map_structure(lambda leaf: dtypes.dtype_of(convert(leaf)), elems)
        if signature is None
        else signature
    )
    # A class of NumPy's (np.float64) has an attribute of that name too.
    wanted = [
        dtypes.numpy_dtype(d if isinstance(d, type) else getattr(d, "dtype", d))
        for d in nest.flatten(expected)
    ]

    def call(row: list) -> list:
        result = fn(_packed(elems, row))
        nest.assert_same_structure(expected, result, check_types=False)
        arrays = [
            convert(leaf, hint=d) for leaf, d in zip(nest.flatten(result), wanted, strict=True)
        ]
        for array, d in zip(arrays, wanted, strict=True):
            if array.dtype != d:
                raise invalid_argument(
                    f"TensorArray dtype is {d.name} but Op is trying to write dtype"
                    f" {array.dtype.name}: give tf.map_fn the fn_output_signature"
                )
        return arrays

    if JAX_MODE and not is_recording():
        with contextlib.suppress(DrawnInLoopError):
            _, made = _scanned(
                lambda _, row: (None, [xp.asarray(a) for a in call(row)]), None, leaves
            )
            return nest.pack_sequence_as(expected, made)
    if count == 0:
        made = [xp.zeros((0, *leaves[0].shape[1:]), d) for d in wanted]
        return _packed(expected, made)
    rows = [call([leaf[i] for leaf in leaves]) for i in range(count)]
    return _packed(expected, [stack(list(column)) for column in zip(*rows, strict=True)])


def _scanned(step: Callable, start: Any, rows: list, reverse: bool = False) -> Any:
    """jax.lax.scan, with the number of the step where one draws from a generator.

    Raises:
      DrawnInLoopError: one draws, and outside of jax.jit, where generators have their state.
    """
    rows = [xp.asarray(row) for row in rows]
    try:
        with step_of_loop(None):
            return jax.lax.scan(step, start, rows, reverse=reverse)
    except DrawnInLoopError:
        if not staged():
            raise

    def counted(carry: Any, numbered: tuple) -> Any:
        number, row = numbered
        with step_of_loop(number):
            return step(carry, row)

    numbers = np.arange(rows[0].shape[0], dtype=np.int32)
    numbers = numbers[::-1] if reverse else numbers
    return jax.lax.scan(counted, start, (xp.asarray(numbers), rows), reverse=reverse)


@export("vectorized_map")
def vectorized_map(
    fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """`fn` of all rows at once: jax.vmap on JAX, one row after the other on NumPy.

    Rows of length 1 go with every other, as TensorFlow lets them.
    """
    leaves, _ = _rows(elems)
    count = max(leaf.shape[0] for leaf in leaves)
    if any(leaf.shape[0] not in (1, count) for leaf in leaves):
        raise ValueError(
            f"vectorized_map: the first dimensions {[leaf.shape[0] for leaf in leaves]} differ"
        )
    if JAX_MODE and not is_recording():
        structure: list = []

        def call(*row: Any) -> list:
            at = iter(row)
            whole = [next(at) if leaf.shape[0] == count else leaf[0] for leaf in leaves]
            result = fn(nest.pack_sequence_as(elems, whole))
            structure.append(result)
            return [xp.asarray(convert(leaf)) for leaf in nest.flatten(result)]

        made = jax.vmap(call)(*[xp.asarray(leaf) for leaf in leaves if leaf.shape[0] == count])
        return nest.pack_sequence_as(structure[0], made)
    if count == 0:
        raise ValueError(
            "vectorized_map of no rows: NumPy, or a tape, has nothing to find the shapes with"
        )
    results = [
        fn(_packed(elems, [leaf[i if leaf.shape[0] == count else 0] for leaf in leaves]))
        for i in range(count)
    ]
    flat = [[convert(leaf) for leaf in nest.flatten(result)] for result in results]
    return _packed(results[0], [stack(list(column)) for column in zip(*flat, strict=True)])


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
        state, rows = _converted(initializer), leaves

    def step(carry: Any, row: list) -> Any:
        result = fn(carry, _packed(elems, row))
        nest.assert_same_structure(carry, result, check_types=False)
        new = [
            wrap(convert(leaf, dtype=old.dtype))
            for leaf, old in zip(nest.flatten(result), nest.flatten(carry), strict=True)
        ]
        return nest.pack_sequence_as(carry, new)

    if JAX_MODE and not is_recording():
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
        new = _arrays(step(nest.pack_sequence_as(state, carry), row))
        return new, new if keep else None

    start = _arrays(state)
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
