"""Arguments that a TensorFlow function takes in 64 bits and JAX holds in 32.

Without jax_enable_x64 JAX casts every 64-bit value to 32 bits, while TensorFlow functions may need
64: most SavedModels take token ids as int64. `Caller` casts such arguments on the way in.

The signature of a tf.function, a ConcreteFunction or a SavedModel states its dtypes. Any other
function that TensorFlow refuses because of a 64-bit dtype is traced with different subsets of its
arguments widened, until a trace succeeds.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import jax

from jax2tf._src import compat
from jax2tf._src.call_tf import effects
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import SIZE, Lru
from jax2tf._src.util.typing import PyTree

# The 64-bit dtype for each 32-bit one.
_WIDE = {
    dtypes.int32: dtypes.int64,
    dtypes.uint32: dtypes.uint64,
    dtypes.float32: dtypes.float64,
    dtypes.complex64: dtypes.complex128,
}
_NAMES = re.compile(r"\b(u?int64|float64|double|complex128)")

# With more integer arguments or more floating arguments, not all subsets are tried.
_MAX_SUBSETS_OF = 4


class Caller:
    """Calls a TensorFlow function, with 64-bit arguments where it needs them."""

    def __init__(self, callable_tf: Callable[..., PyTree], in_tree: jax.tree_util.PyTreeDef):
        self._callable, self._in_tree = callable_tf, in_tree
        self._widened: Lru[Sequence[int]] = Lru(SIZE)

    def __call__(self, tensors: Sequence[tf.Tensor]) -> PyTree:
        """The results of the function.

        Raises:
          Exception: what the function raises, with a note where 64 bits may be the cause.
        """
        dtypes = tuple(t.dtype for t in tensors)
        if jax.config.read("jax_enable_x64") or _WIDE.keys().isdisjoint(dtypes):
            return self._call(tensors, ())
        widened = self._widened.get(dtypes)
        if widened is None:
            widened = self._widened_before_call(tensors)
            if widened is None:
                return self._call_or_try(tensors, dtypes)
            self._widened.add(dtypes, widened)
        return self._call(tensors, widened)

    def _call(self, tensors: Sequence[tf.Tensor], widened: Sequence[int]) -> PyTree:
        leaves = [tf.cast(t, _WIDE[t.dtype]) if i in widened else t for i, t in enumerate(tensors)]
        args, kwargs = jax.tree.unflatten(self._in_tree, leaves)
        return self._callable(*args, **kwargs)

    def _widened_before_call(self, tensors: Sequence[tf.Tensor]) -> Sequence[int] | None:
        """The arguments to widen, or None where only a call can tell."""
        stated = _stated_dtypes(self._callable, self._in_tree)
        if stated is not None:
            return [
                i for i, t in enumerate(tensors) if stated.get(i) == _WIDE.get(t.dtype, t.dtype)
            ]
        # The ops of a refused call would stay in the graph under construction, and would run.
        if not tf.executing_eagerly() and any(t.dtype.is_integer for t in tensors):
            return self._first_that_traces(tensors) or ()
        return None

    def _call_or_try(self, tensors: Sequence[tf.Tensor], dtypes: tuple[tf.DType, ...]) -> PyTree:
        try:
            results = self._call(tensors, ())
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            if not _NAMES.search(str(error)):
                raise
            widened = self._first_that_traces(tensors)
            if not widened:
                error.add_note(_NOTE)
                raise
            self._widened.add(dtypes, widened)
        else:
            self._widened.add(dtypes, ())
            return results
        return self._call(tensors, widened)

    def _first_that_traces(self, tensors: Sequence[tf.Tensor]) -> Sequence[int] | None:
        """The first subset of arguments that, when widened, lets the function be traced."""
        return next((w for w in _subsets(tensors) if self._traces(tensors, w)), None)

    def _traces(self, tensors: Sequence[tf.Tensor], widened: Sequence[int]) -> bool:
        traced = tf.function(lambda *args: self._call(args, widened), autograph=False)
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in tensors]
        try:
            concrete = traced.get_concrete_function(*specs)
        except Exception:
            return False  # a function may raise any error for wrong dtypes
        # The function has run once, up to the refusal: a write would happen twice.
        if tf.executing_eagerly() and effects.written(concrete, list(effects.nodes(concrete))):
            return False
        return not compat.functions.has_misfit_calls(concrete.graph)


_NOTE = (
    "jax2tf.call_tf: jax_enable_x64 is off, so that JAX passes 32 bits where TensorFlow may want "
    "64. What to do: cast in the function (tf.cast(ids, tf.int64)), or set jax_enable_x64"
)


def _stated_dtypes(
    callable_tf: Callable[..., PyTree], in_tree: jax.tree_util.PyTreeDef
) -> dict[int, tf.DType] | None:
    """The dtypes that the function's signature states, by the argument's index; or None."""
    specs = _specs(callable_tf)
    signature: inspect.Signature | None = getattr(callable_tf, "function_type", None)
    if specs is None or signature is None:
        return None
    positional, named = specs
    args, kwargs = jax.tree.unflatten(in_tree, range(in_tree.num_leaves))
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None  # TensorFlow may accept the call all the same
    parameters = list(signature.parameters)
    dtypes: dict[int, tf.DType] = {}
    for name, value in bound.arguments.items():
        i = parameters.index(name)
        stated = jax.tree.leaves(named[name] if name in named else positional[i : i + 1])
        indices = jax.tree.leaves(value)
        if len(stated) != len(indices):
            return None
        dtypes |= {k: getattr(s, "dtype", None) for k, s in zip(indices, stated, strict=True)}
    return dtypes


def _specs(callable_tf: Callable[..., PyTree]) -> tuple[Sequence[PyTree], dict[str, PyTree]] | None:
    """The specs that a signature states for positional arguments and for keywords."""
    structured = getattr(callable_tf, "structured_input_signature", None)
    if structured is not None:
        return structured[0], structured[1]
    stated = getattr(callable_tf, "input_signature", None)
    # In tf.keras and others, an attribute of this name is something else.
    return (stated, {}) if isinstance(stated, tuple | list) else None


def _subsets(tensors: Sequence[tf.Tensor]) -> Iterator[Sequence[int]]:
    """Subsets of the arguments to widen: none, integers, then floating arguments too."""
    narrow = [i for i, t in enumerate(tensors) if t.dtype in _WIDE]
    integers = [i for i in narrow if tensors[i].dtype.is_integer]
    floats = [i for i in narrow if i not in integers]
    for some, more in itertools.product(_index_subsets(floats), _index_subsets(integers)):
        yield (*some, *more)


def _index_subsets(indices: Sequence[int]) -> Sequence[Sequence[int]]:
    """No index, all, then fewer: all subsets if there are few indices, otherwise some."""
    n = len(indices)
    sizes = range(n - 1, 0, -1) if n <= _MAX_SUBSETS_OF else (n - 1, 1)
    smaller = (itertools.combinations(indices, size) for size in sizes)
    return list(dict.fromkeys([(), tuple(indices), *itertools.chain.from_iterable(smaller)]))
