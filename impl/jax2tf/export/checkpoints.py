"""Parameters that stand in a checkpoint, read by the library of its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np

from jax2tf.export import packages
from jax2tf.typing import PyTree


def load(path: str | os.PathLike[str]) -> object:
    """The pytree of parameters in a checkpoint.

    Args:
      path: an Orbax folder, a .safetensors or an .npz file. Names in the latter two make a dict, in
        which "a/b" is the entry "b" of the entry "a".

    Raises:
      FileNotFoundError: there is nothing at the path.
      ValueError: it is none of these.
      MissingPackageError: the library that reads it is not installed.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"jax2tf.export: there is no checkpoint {place}")
    if place.is_dir():
        return _orbax(place)
    if place.suffix not in _FILES:
        raise ValueError(
            "jax2tf.export: params should be a pytree, or the path of an Orbax folder or of a file "
            f"with the suffix {' or '.join(_FILES)}, got {place}. What to do: read it with its own "
            "library, and pass the pytree"
        )
    return _nested(_FILES[place.suffix](place))


def _npz(path: Path) -> dict[str, PyTree]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _safetensors(path: Path) -> dict[str, PyTree]:
    packages.require(["safetensors"], f"the checkpoint {path.name}")
    from safetensors.flax import load_file

    return load_file(path)


_FILES: Mapping[str, Callable[[Path], dict[str, PyTree]]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
}


_ITEM = "default"


def _orbax(path: Path) -> PyTree:
    checkpoint = packages.imported("orbax.checkpoint", f"the Orbax checkpoint {path.name}")
    # A step of a CheckpointManager has its items in folders.
    folder = path.absolute() / _ITEM if (path / _ITEM).is_dir() else path.absolute()
    with checkpoint.PyTreeCheckpointer() as checkpointer:
        found = checkpointer.metadata(folder).item_metadata
        if found is None:
            raise ValueError(
                f"jax2tf.export: there is no Orbax checkpoint in {path}; give the folder of one, "
                "which for a CheckpointManager is that of a step and of an item: STEP/params"
            )
        # The devices that it was saved on need not be here.
        as_numpy = checkpoint.RestoreArgs(restore_type=np.ndarray)
        args = jax.tree.map(lambda leaf: as_numpy, found.tree)
        return checkpointer.restore(folder, restore_args=args)


def _nested(arrays: Mapping[str, np.ndarray]) -> dict[str, PyTree]:
    """The arrays in dicts in dicts, by the slashes in their names."""
    tree: dict[str, PyTree] = {}
    for name, array in arrays.items():
        *folders, last = name.split("/")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
            if not isinstance(node, dict):
                raise ValueError(f"jax2tf.export: {name!r} stands inside of the array {folder!r}")
        node[last] = array
    return tree
