"""Turns the caller's functions and specs into signatures with named inputs.

A spec is an array, a jax.ShapeDtypeStruct, a tf.TensorSpec, or a text such as "b, 224, 224, 3" or
"b, 10:int32". A name in a shape stands for an open dimension.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import jax
import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.errors import ExportError
from jax2tf._src.dims import expressions
from jax2tf._src.export.input_specs import Reader
from jax2tf._src.tracing.functions import Function
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import classes, tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

DEFAULT = "serving_default"


@dataclasses.dataclass(frozen=True)
class Input:
    """One input of an exported function.

    Attributes:
      name: its name in the file.
      path: its path in the function's arguments, such as "x['image']".
      shape: the size of each dimension; a text for an open dimension.
      dtype: its dtype.
    """

    name: str
    path: str
    shape: tuple[int | str, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]"

    @property
    def spec(self) -> tf.TensorSpec:
        """The input as a tf.TensorSpec."""
        shape = [size if isinstance(size, int) else None for size in self.shape]
        return tf.TensorSpec(shape, tf.as_dtype(self.dtype), self.name)

    @property
    def polymorphic_shape(self) -> str | None:
        """The polymorphic shape for `convert`, or None if all sizes are known."""
        is_known = all(isinstance(size, int) for size in self.shape)
        return None if is_known else f"({', '.join(map(str, self.shape))})"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function under a name, with its inputs.

    Attributes:
      name: its name in the file.
      function: `function(params, *inputs, **kwargs)`.
      inputs: its inputs, in order.
      tree: the structure of `(args, kwargs)`, whose leaves are the inputs.
      constraints: assumptions about the dimensions, such as "b >= 8".
      one_namespace: whether an output may not have the name of an input.
    """

    name: str
    function: Callable[..., PyTree]
    inputs: tuple[Input, ...]
    tree: PyTree
    constraints: tuple[str, ...] = ()
    one_namespace: bool = False

    def arguments(self, leaves: Sequence[PyTree]) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
        """Positional and keyword arguments with these leaves."""
        args, kwargs = jax.tree.unflatten(self.tree, leaves)
        return args, kwargs

    def output_names(self, results: PyTree) -> list[str]:
        """A name for each leaf of the function's results, by its path."""
        used = [spec.name for spec in self.inputs] if self.one_namespace else []
        names = _Names("output", used)
        return [
            names.new(jax.tree_util.keystr(path, simple=True, separator="_"))
            for path, _ in jax.tree_util.tree_leaves_with_path(results)
        ]

    @property
    def polymorphic_shapes(self) -> PyTree:
        """The shapes of the inputs, as `jax2tf.Module` takes them."""
        leaves = [spec.polymorphic_shape for spec in self.inputs]
        args, kwargs = self.arguments(leaves)
        return dict(kwargs) if kwargs else list(args)

    def arrays(self, inputs: PyTree, what: str) -> list[np.ndarray]:
        """The leaves of inputs that the caller gives, in the dtypes of the signature.

        Args:
          inputs: in the structure of the specs: a value for one input, a tuple or list with a
            value for each, or a dict by parameter name.
          what: the argument that they were given as, for messages.

        Raises:
          ValueError: the structure differs from that of the specs, or a shape does not fit.
        """
        leaves, tree = jax.tree.flatten(_arguments(inputs))
        if tree != self.tree:
            of = "" if self.name == DEFAULT else f" for {self.name!r}"
            raise ValueError(f"jax2tf.export: {what}{of} {self._unlike(inputs)}")
        return [
            _checked_array(np.asarray(leaf), spec, what)
            for leaf, spec in zip(leaves, self.inputs, strict=True)
        ]

    def _unlike(self, inputs: PyTree) -> str:
        """How the structure of inputs differs from that of the specs, and what to do."""
        args, kwargs = self.arguments(self.inputs)
        own = [next(iter(jax.tree.leaves(arg)), None) for arg in args]
        names = ["()" if spec is None else re.split(r"[.\[]", spec.path)[0] for spec in own]
        names += kwargs
        takes = f"the function takes {', '.join(map(repr, names)) or 'no inputs'}"
        given, by_name = _arguments(inputs)
        of_dict = f"a dict, {{{', '.join(f'{name!r}: ...' for name in names)}}}"
        of_tuple = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        if by_name and set(by_name) != set(names):
            form = of_dict if kwargs else f"a tuple, {of_tuple}, or specs and this as {of_dict}"
            has = ", ".join(map(repr, by_name))
            return f"has {has}, {takes}. What to do: give {form}"
        if by_name and args:
            return (
                f"is a dict, and specs is none. What to do: give a tuple, {of_tuple}, or specs as "
                f"{of_dict}"
            )
        if given and kwargs:
            return (
                f"has {_values(len(given))} without a name, and specs is a dict. What to do: give "
                f"{of_dict}"
            )
        if len(given) != len(args):
            return f"has {_values(len(given))}, {takes}. What to do: give a tuple, {of_tuple}"
        paths = [
            (names[place.idx] if top.idx == 0 else place.key) + jax.tree_util.keystr(tuple(rest))
            for (top, place, *rest), _ in jax.tree_util.tree_leaves_with_path((given, by_name))
        ]
        return (
            f"has the arrays {', '.join(paths)}, and specs those of "
            f"{', '.join(spec.path for spec in self.inputs)}. What to do: give the same containers"
        )


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def signatures_of(fun: PyTree, params: PyTree, specs: PyTree) -> tuple[Signature, ...]:
    """The signatures that the caller asks for.

    Args:
      fun: a function, or a dict of (function, specs) by name.
      params: its parameters; None for functions of only inputs.
      specs: the specs of its inputs; None where `fun` is a dict.

    Raises:
      TypeError: a function or a spec has another type, or the number of specs is wrong.
      ValueError: a spec cannot be read, names do not fit, or a spec is of a static argument.
    """
    # What jax2tf.load returns for a file with one function is a mapping, and is that function.
    if not isinstance(fun, Mapping) or (callable(fun) and specs is not None):
        return (_signature(DEFAULT, fun, params, specs),)
    if specs is not None:
        raise ValueError(
            "jax2tf.export: specs should be None where fun is a dict of signatures: write "
            "{name: (function, specs)}"
        )
    if not fun:
        raise ValueError("jax2tf.export: the dict of signatures is empty; give one or more")
    return tuple(_signature_of_entry(name, value, params) for name, value in fun.items())


def _signature_of_entry(name: PyTree, value: PyTree, params: PyTree) -> Signature:
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            "jax2tf.export: the name of a signature should be letters, digits and underscores, "
            f"got {name!r}"
        )
    if name in _reserved():
        raise ValueError(
            f"jax2tf.export: a signature cannot be called {name!r}, which a SavedModel has for "
            "something else; choose another name"
        )
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(
            f"jax2tf.export: signature {name!r} should be a pair (function, specs), got {value!r}"
        )
    return _signature(name, value[0], params, value[1])


@cached
def _reserved() -> frozenset[str]:
    """The names of the other attributes of the object that a SavedModel holds."""
    own = {"parameters", "variables", "trainable_variables"}
    return frozenset(own.union(*map(dir, classes("train.Checkpoint"))))


def _signature(name: str, fun: PyTree, params: PyTree, specs: PyTree) -> Signature:
    option_checks.callable_(fun, "jax2tf.export: fun", ", or a dict of (function, specs) by name")
    function = with_no_parameters(fun) if params is None else fun
    parameters = Function(function).parameters
    args, kwargs = _arguments(specs)
    if not parameters.takes_any_keyword:
        known = [n for n in parameters.by_keyword if n != parameters.at(0)]
        for key in kwargs:
            if key not in known:
                raise ValueError(
                    f"jax2tf.export: specs has an entry for {key!r}, and the inputs of "
                    f"{Function(fun).name} are {', '.join(known) or 'not named'}. The keys of a "
                    "dict are names of parameters; specs for an input that is a dict stand in a "
                    f"tuple: ({{{key!r}: ...}},)"
                )
    _refuse_arguments(fun, params, args, kwargs)
    specs_by_path, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    reader = Reader()
    names = _Names("input")
    inputs = []
    for path, leaf in specs_by_path:
        top, argument, *rest = path
        of_argument = parameters.at(argument.idx + 1) if top.idx == 0 else argument.key
        where = of_argument + jax.tree_util.keystr(tuple(rest))
        shape, dtype = reader.read(leaf, where)
        name_of_spec = (
            getattr(leaf, "name", None) if isinstance(leaf, classes("TensorSpec")) else None
        )
        inputs.append(Input(names.new(name_of_spec or where), where, shape, dtype))
    constraints = compat.jaxprs.explicit_constraints(reader.scope) if reader.scope else ()
    return Signature(name, function, tuple(inputs), tree, constraints)


def _refuse_arguments(
    fun: Callable[..., PyTree],
    params: PyTree,
    args: tuple[PyTree, ...],
    kwargs: Mapping[str, PyTree],
) -> None:
    """Refuses specs that do not match the function's inputs."""
    function = Function(fun)
    positional = args if params is None else (params, *args)
    try:
        function.parameters.signature.bind(*positional, **kwargs)
    except TypeError as error:
        behind = "" if params is None else " behind the parameters"
        hint = ""
        if args and all(isinstance(spec, int) for spec in args):
            text = ", ".join(map(str, args))
            hint = f". A tuple has one spec for each input; a shape is a text: {text!r}"
        raise TypeError(
            f"jax2tf.export: specs should have one spec for each input of {function.name}"
            f"{function.parameters.signature}{behind}, got {len(args) + len(kwargs)}: {error}{hint}"
        ) from None
    statics = function.static_parameters(positional, kwargs)
    if statics:
        raise ValueError(
            f"jax2tf.export: {', '.join(statics)} of {function.name} is static in "
            f"{function.static_in}, and a file has arrays alone. What to do: export "
            f"{function.with_bound(statics)}, with specs for the others"
        )


def with_no_parameters(fun: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The function with an additional first parameter, which it ignores."""

    @functools.wraps(fun)
    def ignoring(params: PyTree, *args: PyTree, **kwargs: PyTree) -> PyTree:
        return fun(*args, **kwargs)

    own = Function(fun).parameters.signature
    first = inspect.Parameter("params", inspect.Parameter.POSITIONAL_ONLY)
    others = [
        p.replace(name="params_") if p.name == "params" else p for p in own.parameters.values()
    ]
    setattr(ignoring, "__signature__", inspect.Signature([first, *others]))  # noqa: B010
    ignoring.__name__ = Function(fun).name
    return ignoring


class _Names:
    """Makes unique names that all engines accept."""

    def __init__(self, kind: str, used: Iterable[str] = ()):
        self._kind = kind
        self._used = {name.lower() for name in used}

    def new(self, path: str) -> str:
        name = re.sub("[^A-Za-z0-9]+", "_", path).strip("_")
        if not re.match("[A-Za-z]", name):
            name = f"{self._kind}_{name}" if name else self._kind
        name += "_" * keyword.iskeyword(name)
        candidates = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
        # Some engines ignore the case of names.
        name = next(c for c in candidates if c.lower() not in self._used)
        self._used.add(name.lower())
        return name


def _arguments(specs: PyTree) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
    if isinstance(specs, Mapping):
        return (), dict(specs)
    return (tuple(specs) if isinstance(specs, tuple | list) else (specs,)), {}


def _checked_array(array: np.ndarray, spec: Input, what: str) -> np.ndarray:
    fits = array.ndim == len(spec.shape) and all(
        isinstance(wanted, str) or wanted == size
        for size, wanted in zip(array.shape, spec.shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"jax2tf.export: {what} should fit {spec} for {spec.path}, got shape {array.shape}"
        )
    return array.astype(spec.dtype)


def variables_of(signature: Signature) -> list[str]:
    """The names of the open dimensions of a signature."""
    sizes = [size for spec in signature.inputs for size in spec.shape if isinstance(size, str)]
    names = [sorted(expressions.variables(expressions.parse(size))) for size in sizes]
    return list(dict.fromkeys(itertools.chain.from_iterable(names)))


def given_arrays(
    signatures: Sequence[Signature], data: PyTree, what: str, remedy: str = ""
) -> dict[str, list[list[np.ndarray]]]:
    """The leaves of the inputs that the caller gives, by signature.

    Args:
      signatures: the signatures.
      data: a list of inputs in the structure of the specs; for several signatures a dict of lists.
      what: the argument that they were given as, for messages.
      remedy: what else may stand in the place of missing inputs, for the message.

    Raises:
      TypeError: the data is not a list, or not a dict for several signatures.
      ValueError: a signature has no inputs, or they do not fit its specs.
    """
    of_one = len(signatures) == 1 and not isinstance(data, Mapping)
    by_name = {signatures[0].name: data} if of_one else data
    if not isinstance(by_name, Mapping) or not all(map(_is_list, by_name.values())):
        raise TypeError(
            f"jax2tf.export: {what} should be a list of inputs, for several signatures a dict of "
            f"lists {{name: [inputs, ...]}}, got {type(data).__name__}"
        )
    arrays: dict[str, list[list[np.ndarray]]] = {}
    for signature in signatures:
        inputs = by_name.get(signature.name, ())
        arrays[signature.name] = [signature.arrays(each, what) for each in inputs]
        if not arrays[signature.name]:
            raise ValueError(
                f"jax2tf.export: {what} has no inputs for {signature.name!r}; give some, for "
                f"several signatures as {{name: [inputs, ...]}}{remedy}"
            )
    return arrays


def verification_ways(
    signatures: Sequence[Signature], verify: PyTree
) -> dict[str, bool | list[list[np.ndarray]]]:
    """How to verify each signature: by inputs that the caller gives, by others (True), or not.

    Args:
      signatures: the signatures.
      verify: a boolean, or data as `given_arrays` takes it, with a boolean in place of a list.

    Raises:
      TypeError, ValueError: as `given_arrays` does; or there is no signature of a name.
    """
    if isinstance(verify, bool):
        return dict.fromkeys((s.name for s in signatures), verify)
    if not isinstance(verify, Mapping):
        return {**given_arrays(signatures, verify, "verify")}
    refuse_unknown(verify, [s.name for s in signatures], "jax2tf.export: verify")
    ways: dict[str, bool | list[list[np.ndarray]]] = {
        name: way for name, way in verify.items() if isinstance(way, bool)
    }
    others = [s for s in signatures if s.name not in ways]
    lists = {name: way for name, way in verify.items() if name not in ways}
    remedy = ", with True for random ones and False for a signature that is not to run"
    return {**ways, **given_arrays(others, lists, "verify", remedy)}


def refuse_unknown(by_name: Mapping[str, PyTree], names: Collection[str], where: str) -> None:
    """Refuses names that no signature has.

    Raises:
      ValueError: there is no signature of a name.
    """
    unknown = [name for name in by_name if name not in names]
    if unknown:
        raise ValueError(
            f"{where} has an entry for {unknown[0]!r}, and the signatures are {', '.join(names)}"
        )


def _is_list(value: PyTree) -> bool:
    # An array is iterable, too, and its rows would be taken for inputs.
    return (
        isinstance(value, Iterable) and not hasattr(value, "dtype") and not isinstance(value, str)
    )


def refuse_several(signatures: Sequence[Signature], format_name: str) -> None:
    """Refuses several signatures for a format that holds one function.

    Raises:
      ExportError: there are several signatures.
    """
    if len(signatures) > 1:
        names = ", ".join(signature.name for signature in signatures)
        raise ExportError(
            f"jax2tf.export: the format {format_name!r} holds one function, and there are "
            f"{len(signatures)} signatures ({names}). What to do: export each to a file of its "
            "own, or all of them to a SavedModel or a .tflite file"
        )
