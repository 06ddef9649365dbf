"""A user's function: how JAX traces it, its static arguments and the names of its parameters.

A static value is a pytree node without leaves (`Static`). The structure of the arguments contains
it, and so does the key of a trace. The structure of the results may contain one, too.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import numpy as np

from jax2tf._src import compat
from jax2tf._src.tracing import function_errors
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import classes
from jax2tf._src.util.typing import KeyPath, PyTree

_JITTED_BY_JAX = type(jax.jit(lambda: None))

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)
_NUMBERS = (bool, int, float, complex)

# The number of traces that a function keeps. A trace takes from 50 kB to some megabytes, and a
# process with a new shape in every call would keep all of them.
KEPT_TRACES = 256

# The number of arguments that a note on an error names.
_MAX_NOTED = 20


@jax.tree_util.register_static
class Static:
    """A value that is part of a trace's key, and not an argument of the trace.

    Two are equal if type and value are equal, as for jax.jit. A value that cannot be hashed is only
    equal to itself.
    """

    __slots__ = ("_key", "value")

    def __init__(self, value: object):
        self.value = value
        self._key: object = (type(value), value) if _is_hashable(value) else Identity(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Static({self.value!r})"


class Parameters:
    """The names of a function's parameters, as far as Python knows them.

    Attributes:
      signature: the signature of the function; (*args, **kwargs) if Python knows none.
      by_position: the parameters that take one positional argument each.
      by_keyword: the parameters that take a keyword argument.
      rest: the parameter that takes further positional arguments, or None.
      takes_any_keyword: whether there is a **kwargs.
    """

    def __init__(self, fun: Callable[..., PyTree]):
        try:
            self.signature = inspect.signature(fun)
        except ValueError:  # a builtin function
            self.signature = inspect.signature(lambda *args, **kwargs: None)
        of_kind: dict[object, list[str]] = {}
        for name, parameter in self.signature.parameters.items():
            of_kind.setdefault(parameter.kind, []).append(name)
        either = of_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
        self.by_position = [*of_kind.get(inspect.Parameter.POSITIONAL_ONLY, []), *either]
        self.by_keyword = [*either, *of_kind.get(inspect.Parameter.KEYWORD_ONLY, [])]
        self.rest = next(iter(of_kind.get(inspect.Parameter.VAR_POSITIONAL, [])), None)
        self.takes_any_keyword = inspect.Parameter.VAR_KEYWORD in of_kind

    def signature_without_defaults(self) -> inspect.Signature:
        """The signature with *args and **kwargs for the parameters that have defaults.

        tf.function passes the default of a parameter that the caller omits, and JAX would trace it
        as an argument. If the caller omits a Python value (`train=False`), JAX leaves it as it is.
        """
        parameters = self.signature.parameters.values()
        kinds = {p.kind for p in parameters}
        optional = {p.kind for p in parameters if p.default is not p.empty}
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        required = [p for p in parameters if p.default is p.empty and p.kind in by_position]
        if optional.intersection(by_position) or inspect.Parameter.VAR_POSITIONAL in kinds:
            required.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
        required += [p for p in parameters if p.default is p.empty and p.kind == p.KEYWORD_ONLY]
        if optional or inspect.Parameter.VAR_KEYWORD in kinds:
            required.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(required)

    def at(self, i: int) -> str:
        """The name of the i-th positional argument."""
        n = len(self.by_position)
        return self.by_position[i] if i < n else f"{self.rest or 'args'}[{i - n}]"

    def path(self, path: KeyPath) -> str:
        """The path of a leaf of `(args, kwargs)`, as "x['w']" for a parameter x."""
        top, argument, *rest = path
        name = self.at(argument.idx) if top.idx == 0 else argument.key
        return name + jax.tree_util.keystr(tuple(rest))


class Function:
    """A function to convert.

    For jax.jit and jax.pmap, their options say which arguments are static. Other libraries that jit
    (`equinox.filter_jit`, `flax.nnx.jit`, anything with a method `lower` like jax.stages.Wrapped)
    have their own rules: all leaves that are not arrays are passed to them unchanged. Other
    functions have no static arguments.

    Attributes:
      fun: the function of the user.
      name: its name in messages and graphs.
      parameters: its parameters.
      is_jitted: whether XLA should compile it.
    """

    def __init__(self, fun: Callable[..., PyTree]):
        self.fun = fun
        self.parameters = Parameters(fun)
        inner, self._n_bound = _opened(fun)
        name = getattr(inner, "__name__", None)
        self.name = name if isinstance(name, str) else type(inner).__name__
        is_jitted_by_jax = isinstance(inner, _JITTED_BY_JAX)
        self._argnums, self._argnames = _static_arguments(inner)
        self._is_pmapped = compat.jitted.is_pmapped(inner)
        self._is_jitted_by_jax = isinstance(fun, _JITTED_BY_JAX)
        has_lower = callable(getattr(type(inner), "lower", None))
        self._is_jitted_by_library = has_lower and not is_jitted_by_jax
        self.is_jitted = is_jitted_by_jax or self._is_jitted_by_library
        is_function = isinstance(fun, types.FunctionType | types.MethodType)
        self._jitted: jax.stages.Wrapped | None = (
            jax.jit(fun) if is_function and not self.is_jitted else None
        )
        self._n_traces = itertools.count(1)

    @property
    def can_be_jitted(self) -> bool:
        """Whether jax.jit accepts it: no static arguments, and no library with its own rules."""
        return not (self._argnums or self._argnames or self._is_jitted_by_library)

    @property
    def static_in(self) -> str:
        """The name of the transformation that sets the static arguments, for messages."""
        return "jax.pmap" if self._is_pmapped else "jax.jit"

    def with_statics(
        self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]
    ) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
        """Replaces the arguments that are static in jax.jit or jax.pmap by `Static` values.

        Raises:
          TypeError: one of these is a tensor.
        """
        if not (self._argnums or self._argnames):
            return args, kwargs
        n = self._n_bound
        total = n + len(args)
        positions = {(i if i >= 0 else i + total) - n for i in self._argnums}
        return (
            tuple(
                self._static(self.parameters.at(i), value) if i in positions else value
                for i, value in enumerate(args)
            ),
            {
                name: self._static(name, value) if name in self._argnames else value
                for name, value in kwargs.items()
            },
        )

    def with_static_leaves(self, tree: PyTree) -> PyTree:
        """Makes leaves that are not arrays `Static` if a library's jit may take them."""
        return without_opaque_leaves(tree) if self._is_jitted_by_library else tree

    def trace(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> jax.stages.Traced:
        """JAX's trace for arguments with a jax.ShapeDtypeStruct at each leaf."""
        if self._is_jitted_by_jax:
            fun: PyTree = self.fun
            return fun.trace(*values(args), **values(kwargs))
        if self._jitted is not None and not has_static((args, kwargs)):
            # JAX keeps each trace as long as the function that jax.jit got.
            if next(self._n_traces) % KEPT_TRACES == 0:
                self._jitted = jax.jit(self.callable())
            return self._jitted.trace(*args, **kwargs)
        return jax.jit(self.callable()).trace(*args, **kwargs)

    def failure(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Exception | None:
        """The exception that JAX's trace of the function raises for these arguments, or None."""
        try:
            self.trace(args, kwargs)
        # The user's function may raise any exception.
        except Exception as error:
            return error
        return None

    def callable(self) -> Callable[..., PyTree]:
        """A new function that takes `Static` values among its arguments.

        An argument of jax.jit has to be hashable and constant; an object with state is neither.
        """

        def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
            results = self.fun(*values(args), **values(kwargs))
            is_lenient = self._is_jitted_by_library or has_static((args, kwargs))
            return without_opaque_leaves(results, is_array_or_number) if is_lenient else results

        # JAX names parameters in its messages.
        call.__name__ = self.name
        setattr(call, "__signature__", self.parameters.signature)  # noqa: B010
        return call

    def static_parameters(
        self, args: tuple[PyTree, ...], kwargs: Mapping[str, PyTree]
    ) -> list[str]:
        """The names of those arguments that are static in jax.jit or jax.pmap."""
        found = self.with_statics((None,) * len(args), dict.fromkeys(kwargs))
        leaves = jax.tree_util.tree_leaves_with_path(found, is_leaf=_is_noted)
        return [self.parameters.path(path) for path, leaf in leaves if _is_static(leaf)]

    def with_bound(self, names: Sequence[str]) -> str:
        """The expression for the function with these arguments bound, for messages."""
        if self._is_pmapped:  # it takes static arguments only by position
            return f"a function of its other arguments that calls {self.name}"
        return f"functools.partial({self.name}, {', '.join(f'{name}=...' for name in names)})"

    def called_with(self, args: tuple[PyTree, ...], kwargs: Mapping[str, PyTree]) -> str:
        """The paths of the arguments, each with its dtype and shape."""
        found = jax.tree_util.tree_leaves_with_path((args, kwargs), is_leaf=_is_noted)
        given = [f"{self.parameters.path(path)}: {_described(leaf)}" for path, leaf in found]
        if len(given) > _MAX_NOTED:
            given[_MAX_NOTED:] = [f"and {len(given) - _MAX_NOTED} more"]
        return ", ".join(given) or "no arguments"

    def note(self, error: Exception, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> str:
        """A note for an error of the function that describes the arguments of the trace."""
        called = f"jax2tf.convert({self.name}) called it with {self.called_with(args, kwargs)}"
        if function_errors.is_of_tensorflow(error):
            return (
                f"{called}, which are arrays of JAX's there. TensorFlow's functions take them "
                "through jax2tf.call_tf: jax2tf.call_tf(tf.math.sin)(x)"
            )
        if not function_errors.is_of_structure(error, (args, kwargs)):
            return called
        alike = function_errors.arguments_of(
            error, {self.parameters.at(i): value for i, value in enumerate(args)} | kwargs
        )
        of = f" for {' or '.join(alike)}" if alike else ""
        return (
            f"{called}. Where the function takes another structure (a dict or a tuple of arrays)"
            f"{of}, give that: to a tf.function as a tree of tf.TensorSpec in its input_signature"
        )

    def _static(self, name: str, value: object) -> Static:
        if dtypes.is_tensor(value):
            options = "static_argnames and static_argnums"
            if self._is_pmapped:
                options = "static_broadcasted_argnums"
            raise TypeError(
                f"jax2tf.convert({self.name}): argument {name} is static in {self.static_in}, "
                f"which needs its value to trace the function, and it came as a tensor: {value}. "
                "Pass a Python value (tf.function makes tensors of numpy's), or leave it out of "
                f"{options}"
            )
        return Static(value)


def values(tree: PyTree) -> PyTree:
    """Replaces the `Static` nodes of the tree by their values."""
    return jax.tree.map(lambda x: x.value if _is_static(x) else x, tree, is_leaf=_is_static)


def has_static(tree: PyTree) -> bool:
    """Whether there is a `Static` value in the tree."""
    return any(map(_is_static, jax.tree.leaves(tree, is_leaf=_is_static)))


def without_opaque_leaves(tree: PyTree, is_kept: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Replaces leaves that do not stand for an array by `Static` values.

    An Equinox module, for example, has functions between its layers as leaves.

    Args:
      tree: any pytree.
      is_kept: whether a leaf stays; by default, leaves that stand for an array stay.
    """
    is_kept = is_kept or _stands_for_array
    return jax.tree.map(lambda x: x if is_kept(x) else Static(x), tree)


def is_array_or_number(leaf: object) -> bool:
    """Whether JAX converts a leaf to an array."""
    return _stands_for_array(leaf) or isinstance(leaf, _NUMBERS)


def _stands_for_array(leaf: object) -> bool:
    return (
        isinstance(leaf, (*_ARRAYS, *classes("Tensor", "Variable", "TensorSpec")))
        # TensorFlow's protocol for objects that stand for a tensor, such as a Keras variable.
        or hasattr(leaf, "__tf_tensor__")
    )


def _is_static(node: object) -> bool:
    return isinstance(node, Static)


def _is_noted(node: object) -> bool:
    return node is None or _is_static(node)


def _described(leaf: PyTree) -> str:
    if leaf is None:
        return "None"
    if _is_static(leaf):
        return f"{leaf.value!r} (static)"
    if not hasattr(leaf, "dtype"):
        return repr(leaf)
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _static_arguments(fun: Callable[..., PyTree]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the arguments that are static in jax.jit or jax.pmap."""
    if isinstance(fun, _JITTED_BY_JAX):
        return compat.jitted.static_arguments(fun)
    if compat.jitted.is_pmapped(fun):
        return compat.jitted.static_arguments_of_pmap(fun), ()
    return (), ()


def inner(fun: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The function inside of partials and bound methods."""
    return _opened(fun)[0]


def _opened(fun: Callable[..., PyTree]) -> tuple[Callable[..., PyTree], int]:
    """The function inside of partials and bound methods, and the number of arguments they bind."""
    bound = 0
    for opened, n in _layers(fun):
        fun, bound = opened, bound + n
    return fun, bound


def _layers(fun: PyTree) -> Iterator[tuple[Callable[..., PyTree], int]]:
    while True:
        if isinstance(fun, types.MethodType):
            fun, n = fun.__func__, 1
        # Some libraries have their own partials, which are pytrees.
        elif isinstance(fun, functools.partial) or (
            callable(getattr(fun, "func", None)) and isinstance(getattr(fun, "args", None), tuple)
        ):
            fun, n = fun.func, len(fun.args)
        else:
            return
        yield fun, n
