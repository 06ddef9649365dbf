"""tf.nest: structures of lists, tuples, dictionaries and named tuples. None is a leaf."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterator
from typing import Any

from tf_substrates.numpy.namespaces import export


def _is_mapping(value: Any) -> bool:
    return isinstance(value, collections.abc.Mapping)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_attrs(value: Any) -> bool:
    return hasattr(type(value), "__attrs_attrs__")


@export("nest.is_nested")
def is_nested(seq: Any) -> bool:
    """Whether a value is a structure: a list, tuple, mapping or attrs object, not a string."""
    return isinstance(seq, (list, tuple)) or _is_mapping(seq) or _is_attrs(seq)


# The classes of values made of tensors, and how they are taken apart and put together.
_COMPOSITES: list[tuple[type, Callable, Callable]] = []


def register_composite(cls: type, apart: Callable, together: Callable) -> None:
    """What `expand_composites=True` looks into: `apart(value)`, `together(value, components)`."""
    _COMPOSITES.append((cls, apart, together))


def _composite(value: Any) -> tuple[Callable, Callable] | None:
    for cls, apart, together in _COMPOSITES:
        if isinstance(value, cls):
            return apart, together
    return None


def _keys(value: Any) -> list:
    try:
        return sorted(value)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _children(value: Any) -> list:
    if _is_mapping(value):
        return [value[key] for key in _keys(value)]
    if _is_attrs(value):
        return [getattr(value, field.name) for field in type(value).__attrs_attrs__]
    return list(value)


def _rebuild(like: Any, children: list) -> Any:
    if _is_mapping(like):
        by_key = dict(zip(_keys(like), children, strict=True))
        ordered = [(key, by_key[key]) for key in like]
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, ordered)
        return type(like)(ordered)
    if _is_named_tuple(like):
        return type(like)(*children)
    if _is_attrs(like):
        return type(like)(*children)
    return type(like)(children)


@export("nest.flatten")
def flatten(structure: Any, expand_composites: bool = False) -> list:
    """The leaves of a structure, those of dictionaries in the order of their sorted keys.

    >>> from tf_substrates.numpy import tf
    >>> tf.nest.flatten({"b": 2, "a": [1, None]})
    [1, None, 2]
    """
    return list(_flat(structure, expand_composites))


def _flat(structure: Any, expand: bool = False) -> Iterator:
    if is_nested(structure):
        for child in _children(structure):
            yield from _flat(child, expand)
    elif expand and (ways := _composite(structure)) is not None:
        yield from _flat(ways[0](structure), expand)
    else:
        yield structure


@export("nest.pack_sequence_as")
def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """The leaves `flat_sequence` in a structure.

    Raises:
      TypeError: `flat_sequence` is no sequence.
      ValueError: there are more or fewer leaves than the structure has.
    """
    if not isinstance(flat_sequence, (list, tuple)):
        raise TypeError(f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found"
                        f" incompatible type `{type(flat_sequence)}` instead.")  # fmt: skip
    if not is_nested(structure) and not (expand_composites and _composite(structure)):
        if len(flat_sequence) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {structure}\nHowever the"
                f" input is a sequence ({type(flat_sequence)}) of length {len(flat_sequence)}.\n "
                f" {flat_sequence}\nnest cannot guarantee that it is safe to map one to the other."
            )
        return flat_sequence[0]
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had"
            f" {len(flat_sequence)} items. Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    leaves = iter(flat_sequence)
    return _packed(structure, leaves, expand_composites)


def _packed(structure: Any, leaves: Iterator, expand: bool = False) -> Any:
    if not is_nested(structure):
        ways = _composite(structure) if expand else None
        if ways is not None:
            return ways[1](structure, _packed(ways[0](structure), leaves, expand))
        return next(leaves)
    return _rebuild(structure, [_packed(child, leaves, expand) for child in _children(structure)])


@export("nest.assert_same_structure")
def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Asserts that two structures nest alike.

    Raises:
      ValueError: they differ in how many elements they have, or where.
      TypeError: they differ in the type of a sequence or in a dictionary's keys.
    """
    if len(flatten(nest1)) != len(flatten(nest2)) and is_nested(nest1) and is_nested(nest2):
        raise ValueError(_differ(nest1, nest2, "they have different numbers of elements"))
    _same(nest1, nest2, check_types, nest1, nest2)


def _differ(nest1: Any, nest2: Any, how: str) -> str:
    return (
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {nest1}\n\nSecond structure: {nest2}\n\nMore specifically: {how}."
    )


def _same(a: Any, b: Any, check_types: bool, nest1: Any, nest2: Any) -> None:
    if is_nested(a) != is_nested(b):
        which = "first" if is_nested(a) else "second"
        raise ValueError(_differ(nest1, nest2, f"the {which} is a sequence where the other is not"))
    if not is_nested(a):
        return
    if check_types and not _same_type(a, b):
        raise TypeError(
            _differ(
                nest1, nest2, f"{type(a).__name__} and {type(b).__name__} are not the same type"
            )
        )
    if _is_mapping(a) and _is_mapping(b) and set(a) != set(b):
        raise ValueError(_differ(nest1, nest2, f"keys {list(a)} and {list(b)} differ"))
    left, right = _children(a), _children(b)
    if len(left) != len(right):
        raise ValueError(_differ(nest1, nest2, f"lengths {len(left)} and {len(right)} differ"))
    for x, y in zip(left, right, strict=True):
        _same(x, y, check_types, nest1, nest2)


def _same_type(a: Any, b: Any) -> bool:
    if _is_named_tuple(a) and _is_named_tuple(b):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    return type(a) is type(b) or (_is_mapping(a) and _is_mapping(b))


@export("nest.map_structure")
def map_structure(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """`func` of the leaves of structures that nest alike, in the first one's structure.

    >>> from tf_substrates.numpy import tf
    >>> tf.nest.map_structure(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}

    Raises:
      TypeError: `func` is no function, or a keyword is not known.
      ValueError: there is no structure, or they do not nest alike.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(f"Only valid keyword arguments are `check_types` and `expand_composites`,"
                         f" not: `{', '.join(kwargs)}`")  # fmt: skip
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    columns = zip(*(flatten(each, expand) for each in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*column) for column in columns], expand)
