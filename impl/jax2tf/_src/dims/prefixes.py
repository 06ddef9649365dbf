"""The shape spec of each leaf of the arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import jax

from jax2tf._src.dims.specs import Spec, is_spec, spec_of
from jax2tf._src.tracing.functions import Function
from jax2tf._src.util.typing import PyTree


@dataclasses.dataclass(frozen=True)
class OfInputs:
    """The caller's specs for all arguments except the first, whose shapes are known."""

    shapes: PyTree


def spec_leaves(
    polymorphic_shapes: PyTree,
    args: tuple[PyTree, ...],
    kwargs: Mapping[str, PyTree],
    function: Function,
) -> list[Spec | None]:
    """One spec for each leaf of the arguments.

    Args:
      polymorphic_shapes: a spec for all positional arguments; or a sequence with a pytree prefix of
        specs for each argument; or a mapping from names of parameters to such prefixes.
      args: the positional arguments.
      kwargs: the keyword arguments.
      function: the function whose arguments they are.

    Raises:
      ValueError: the specs do not fit the arguments.
    """
    if isinstance(polymorphic_shapes, OfInputs):
        polymorphic_shapes = _none_for_first(polymorphic_shapes.shapes, args, function)
    assign = _by_name if isinstance(polymorphic_shapes, Mapping) else _by_position
    of_args, of_kwargs = assign(polymorphic_shapes, args, kwargs, function)
    arguments = [
        (function.parameters.at(i), *pair) for i, pair in enumerate(zip(of_args, args, strict=True))
    ]
    # JAX flattens a dict in the order of its sorted keys.
    arguments += [(name, of_kwargs.get(name), kwargs[name]) for name in sorted(kwargs)]
    where = f"jax2tf.convert({function.name}): argument "
    return [s for name, prefix, arg in arguments for s in _broadcast(prefix, arg, where + name)]


def _by_position(
    shapes: PyTree, args: tuple[PyTree, ...], kwargs: Mapping[str, PyTree], function: Function
) -> tuple[list[PyTree], dict[str, PyTree]]:
    if is_spec(shapes):
        return [shapes] * len(args), {}
    if not isinstance(shapes, list | tuple):
        raise ValueError(
            f"jax2tf.convert({function.name}): polymorphic_shapes should be a spec for all "
            "positional arguments, a sequence with one for each argument, or a dict with the names "
            f"of parameters as keys, got {shapes!r}"
        )
    names = function.parameters.by_position
    surplus = dict(zip(names[len(args) :], shapes[len(args) :], strict=False))
    # A parameter without an argument has a default, so its spec is not used.
    if not len(args) <= len(shapes) <= len(args) + len(surplus):
        passed = ", ".join([function.parameters.at(i) for i in range(len(args))] + sorted(kwargs))
        raise ValueError(
            f"jax2tf.convert({function.name}): polymorphic_shapes has {len(shapes)} specs, and "
            f"{len(args)} arguments came by position (of {passed or 'none'}); give one for each of "
            "these, None where the shape is known, or a dict with the names of parameters as keys"
        )
    return list(shapes[: len(args)]), {n: s for n, s in surplus.items() if n in kwargs}


def _by_name(
    shapes: Mapping[str, PyTree],
    args: tuple[PyTree, ...],
    kwargs: Mapping[str, PyTree],
    function: Function,
) -> tuple[list[PyTree], dict[str, PyTree]]:
    parameters = function.parameters
    known = list(dict.fromkeys([*parameters.by_position, *parameters.by_keyword]))
    known += [parameters.rest] if parameters.rest else []
    if parameters.takes_any_keyword:
        known += [name for name in sorted(kwargs) if name not in known]
    for name in shapes:
        if name not in known:
            raise ValueError(
                f"jax2tf.convert({function.name}): polymorphic_shapes has a spec for {name!r}, and "
                f"the parameters are {', '.join(known) or 'not named'}. The keys of a dict are "
                "names of parameters; specs for the entries of an argument that is a dict stand in "
                f"a sequence: polymorphic_shapes=[{{{name!r}: ...}}]"
            )
    names = parameters.by_position[: len(args)]
    rest, of_rest = args[len(names) :], shapes.get(parameters.rest or "")
    rest_specs: PyTree = [of_rest] * len(rest) if is_spec(of_rest) else of_rest
    if not isinstance(rest_specs, list | tuple) or len(rest_specs) != len(rest):
        raise ValueError(
            f"jax2tf.convert({function.name}): polymorphic_shapes has {of_rest!r} for "
            f"*{parameters.rest}, which got {len(rest)} arguments; give a spec for all of them, or "
            "a sequence with one for each"
        )
    return [*map(shapes.get, names), *rest_specs], dict(shapes)


def _none_for_first(shapes: PyTree, args: tuple[PyTree, ...], function: Function) -> PyTree:
    if is_spec(shapes):
        return [None, *[shapes] * (len(args) - 1)]
    if not isinstance(shapes, Mapping):
        return [None, *shapes] if isinstance(shapes, list | tuple) else shapes
    first = function.parameters.at(0)
    if first in shapes:
        raise ValueError(
            f"jax2tf.Module({function.name}): polymorphic_shapes has a spec for {first!r}, which "
            "are the parameters of the module; their shapes are known"
        )
    return shapes


def _broadcast(prefix: PyTree, tree: PyTree, where: str) -> Iterator[Spec | None]:
    """The spec of each leaf of `tree`, from a prefix of it."""
    if is_spec(prefix):
        yield from [spec_of(prefix)] * len(jax.tree.leaves(tree))
        return
    specs, of_specs = _children(prefix)
    parts, of_parts = _children(tree)
    if jax.tree_util.all_leaves([prefix]):
        raise ValueError(
            f"{where}: polymorphic_shapes should hold None, texts such as 'b, _', or symbolic "
            f"shapes, got {prefix!r}"
        )
    if of_specs != of_parts:
        raise ValueError(
            f"{where}: polymorphic_shapes has {_described(prefix)} for it, and it is "
            f"{_described(tree)}; give one spec for all of it, or a tree of specs that is a prefix "
            "of it"
        )
    for (path, spec), (_, part) in zip(specs, parts, strict=True):
        yield from _broadcast(spec, part, where + jax.tree_util.keystr(path))


def _children(node: PyTree) -> tuple[Sequence[tuple[PyTree, PyTree]], PyTree]:
    """The children of a node with their keys, and the tree of the node itself."""
    return jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)


def _described(node: PyTree) -> str:
    if jax.tree_util.all_leaves([node]):
        return "an array"
    if isinstance(node, Mapping):
        return f"a {type(node).__name__} with the keys {', '.join(map(repr, node)) or '(none)'}"
    if isinstance(node, list | tuple):
        return f"a {type(node).__name__} of {len(node)}"
    return f"a {type(node).__name__}"
