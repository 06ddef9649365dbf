"""The containers that tf.Module wraps, and the lists of variables that it saves."""

from __future__ import annotations

import importlib
import operator
import weakref
from collections.abc import Iterable

import jax

from jax2tf._src.util.lazy_imports import LazyModule, has_tensorflow
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

_tf_data_structures = LazyModule("tensorflow.python.trackable.data_structures")


@cached
def _module_containers() -> tuple[type, ...]:
    if not has_tensorflow():
        return ()
    kinds = _tf_data_structures
    return (kinds._DictWrapper, kinds.ListWrapper, kinds._TupleWrapper)


def is_module_container(node: PyTree) -> bool:
    """Whether tf.Module wrapped this dict, list or tuple when it was assigned to an attribute.

    The attribute tracking of tf.Module replaces them by private proxy types.
    """
    return isinstance(node, _module_containers())


def unwrap_module_container(container: PyTree) -> PyTree:
    """The plain dict, list or tuple inside, whose elements may be wrapped too."""
    # A ListWrapper is itself the list; the others hold the assigned container.
    return container.__wrapped__ if hasattr(container, "__wrapped__") else list(container)


class SavesVariableLists:
    """A base class for a tf.Module that has its lists of variables when it is restored.

    The lists are properties of the class, which a SavedModel does not hold, and no public name adds
    children to a SavedModel. Checkpoints stay as they are.
    """

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: object
    ) -> dict[str, PyTree]:
        parent: PyTree = super()
        children: dict[str, PyTree] = parent._trackable_children(save_type, **kwargs)
        if save_type != "savedmodel":
            return children
        return {**{name: _saved_list(self, name) for name in _SAVED_LISTS}, **children}


_SAVED_LISTS = ("variables", "trainable_variables")


# TensorFlow asks several times during one save, and compares the answers by identity.
_saved_lists: weakref.WeakKeyDictionary[PyTree, dict[str, PyTree]] = weakref.WeakKeyDictionary()


def _saved_list(module: PyTree, name: str) -> PyTree:
    lists = _saved_lists.setdefault(module, {})
    variables = list(getattr(module, name))
    saved = lists.get(name, ())
    is_same = len(saved) == len(variables) and not any(map(operator.is_not, saved, variables))
    if name not in lists or not is_same:
        lists[name] = _tf_data_structures.ListWrapper(variables)
    return lists[name]


def _wrap_module_container(kind: type, plain: PyTree) -> PyTree:
    # When JAX compares trees, it unflattens them with children of other types.
    return kind(plain) if isinstance(plain, dict | list | tuple) else plain


class _Inside:
    """The key of a wrapped container, which adds nothing to the path of a leaf."""

    def __str__(self) -> str:
        return ""


def register_module_containers() -> None:
    """Registers the containers that tf.Module wraps as pytrees of JAX.

    JAX registers pytrees by exact type, and these types have no public names. A type can be
    registered only once: JAX's own jax2tf does so on import, and would fail after us.
    """
    try:
        importlib.import_module("jax.experimental.jax2tf")
    except ModuleNotFoundError:
        for kind in _module_containers():
            _register_module_container(kind)


def _register_module_container(kind: type) -> None:
    """Registers a wrapper as a node with one child, the plain container."""

    def flatten(node: PyTree) -> tuple[tuple[PyTree], None]:
        return (unwrap_module_container(node),), None

    def flatten_with_keys(node: PyTree) -> tuple[tuple[tuple[_Inside, PyTree]], None]:
        return ((_Inside(), unwrap_module_container(node)),), None

    def unflatten(_: None, children: Iterable[PyTree]) -> PyTree:
        return _wrap_module_container(kind, *children)

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)
