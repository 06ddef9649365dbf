"""tf.nest as far as a shallow structure goes, and with the paths of leaves.

Libraries import these from TensorFlow's private module of nests. A shallow structure says where
leaves are: what stands in its place is a leaf, however it is nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tf_substrates.numpy import nest
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.nest import _children, _is_mapping, _is_named_tuple, _keys, _rebuild

_NEST = "python.util.nest"


def _items(structure: Any) -> list[tuple[Any, Any]]:
    """The children of a structure with their place: a key, an index or a field's name."""
    if _is_mapping(structure):
        return [(key, structure[key]) for key in _keys(structure)]
    if _is_named_tuple(structure):
        return list(zip(structure._fields, structure, strict=True))
    return list(enumerate(_children(structure)))


@export("__internal__.nest.is_mapping")
def is_mapping(obj: Any) -> bool:
    return _is_mapping(obj)


@export(f"{_NEST}.assert_shallow_structure")
def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Asserts that a structure nests as a shallow one does, as far as that goes.

    Raises:
      TypeError: where the shallow one has a sequence, the other has none, or of another type.
      ValueError: a sequence has another length, or a dictionary other keys.
    """
    if not nest.is_nested(shallow_tree):
        return
    if not nest.is_nested(input_tree):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type:"
            f" {type(input_tree)}."
        )
    if check_types and not nest._same_type(shallow_tree, input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type"
            f" {type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    shallow, inputs = _items(shallow_tree), _items(input_tree)
    if len(shallow) != len(inputs):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length"
            f" {len(inputs)}, while shallow structure has length {len(shallow)}."
        )
    if _is_mapping(shallow_tree) and _is_mapping(input_tree):
        absent = set(shallow_tree) - set(input_tree)
        if absent:
            raise ValueError(
                "The two structures don't have the same keys. Keys of the shallow structure that"
                f" the input has not: {sorted(absent, key=str)}"
            )
    for (_, branch), (_, given) in zip(shallow, inputs, strict=True):
        assert_shallow_structure(branch, given, check_types, expand_composites)


def _up_to(shallow: Any, tree: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    if not nest.is_nested(shallow):
        yield path, tree
        return
    for (key, branch), (_, given) in zip(_items(shallow), _items(tree), strict=True):
        yield from _up_to(branch, given, (*path, key))


@export(f"{_NEST}.flatten_up_to", "__internal__.nest.flatten_up_to")
def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list:
    """What stands in a structure where a shallow one has leaves."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return [leaf for _, leaf in _up_to(shallow_tree, input_tree)]


@export(f"{_NEST}.flatten_with_tuple_paths_up_to")
def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list:
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_up_to(shallow_tree, input_tree))


@export(f"{_NEST}.map_structure_up_to", "__internal__.nest.map_structure_up_to")
def map_structure_up_to(shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any) -> Any:
    """`func` of what stands in structures where a shallow one has leaves, in that one's structure.

    Raises:
      ValueError: there are no structures.
    """
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda _, *leaves: func(*leaves), *inputs, **kwargs
    )


@export(f"{_NEST}.map_structure_with_tuple_paths_up_to")
def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any
) -> Any:
    """The same, where `func` takes the path of the leaf first."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    columns = [flatten_with_tuple_paths_up_to(shallow_tree, each, check_types) for each in inputs]
    results = [
        func(column[0][0], *(leaf for _, leaf in column)) for column in zip(*columns, strict=True)
    ]
    return nest.pack_sequence_as(shallow_tree, results)


@export(f"{_NEST}.yield_flat_paths")
def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[tuple]:
    """The path of each leaf, in the order of `flatten`."""
    for path, _ in _up_to(nest, nest):
        yield path


@export(f"{_NEST}.flatten_with_tuple_paths")
def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list:
    return list(_up_to(structure, structure))


@export(f"{_NEST}.flatten_with_joined_string_paths")
def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list:
    return [(separator.join(map(str, path)), leaf) for path, leaf in _up_to(structure, structure)]


@export(f"{_NEST}.map_structure_with_tuple_paths")
def map_structure_with_tuple_paths(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


@export(
    f"{_NEST}.get_traverse_shallow_structure", "__internal__.nest.get_traverse_shallow_structure"
)
def get_traverse_shallow_structure(
    traverse_fn: Callable, structure: Any, expand_composites: bool = False
) -> Any:
    """The shallow structure that goes into what `traverse_fn` says yes to.

    `traverse_fn(part)` gives a boolean for the part, or a structure of booleans for what is in it.

    Raises:
      TypeError: it gives something else.
    """
    wanted = traverse_fn(structure)
    if not nest.is_nested(structure):
        if not isinstance(wanted, bool):
            raise TypeError(f"traverse_fn returned structure: {wanted} for non-structure")
        return wanted
    if isinstance(wanted, bool):
        if not wanted:
            return False
        return _rebuild(
            structure,
            [get_traverse_shallow_structure(traverse_fn, part) for part in _children(structure)],
        )
    assert_shallow_structure(wanted, structure)
    parts = []
    for answer, part in zip(_children(wanted), _children(structure), strict=True):
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn didn't return a depth=1 structure of bools: {wanted}")
        parts.append(get_traverse_shallow_structure(traverse_fn, part) if answer else False)
    return _rebuild(structure, parts)


export(f"{_NEST}._is_namedtuple")(lambda instance, strict=False: _is_named_tuple(instance))
export(f"{_NEST}._yield_sorted_items")(lambda iterable: iter(_items(iterable)))
export(f"{_NEST}._yield_value")(lambda iterable: iter(_children(iterable)))
export(f"{_NEST}._sequence_like")(lambda instance, args: _rebuild(instance, list(args)))
