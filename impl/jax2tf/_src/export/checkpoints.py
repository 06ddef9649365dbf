"""Reads parameters from a checkpoint, with the library of its format."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import jax
import numpy as np

from jax2tf._src.export import packages
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import PyTree


def load(path: str | bytes | os.PathLike[str]) -> object:
    """The pytree of parameters in a checkpoint.

    Args:
      path: an Orbax folder, a .safetensors or an .npz file. The latter two give a dict, in which
        the array "a/b" is the entry "b" of the entry "a".

    Raises:
      FileNotFoundError: the path does not exist.
      ValueError: it is not a checkpoint of these formats.
      MissingPackageError: the library that reads it is not installed.
    """
    place = existing(path, "params", "weights.safetensors")
    if place.is_dir():
        return _orbax(place)
    if place.suffix not in _FILES:
        raise ValueError(
            "jax2tf.export: params should be a pytree, or the path of an Orbax folder or of a file "
            f"with the suffix {' or '.join(_FILES)}, got {place}. What to do: read it with its own "
            "library, and pass the pytree"
        )
    return _nested(_FILES[place.suffix](place), place)


@contextlib.contextmanager
def explaining_names(source: object, params: PyTree) -> Iterator[None]:
    """Adds a note to an error of the user's function that may come of names in a file.

    A name with dots does not nest, and numbers in names make a dict, not a list.

    Args:
      source: the path of the checkpoint; anything else for parameters of the user's own making.
      params: what was read.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        path = source if isinstance(source, str | bytes | os.PathLike) else None
        names = params if path is not None and isinstance(params, dict) else ()
        dotted = next((name for name in names if "." in str(name)), None)
        if path is not None and dotted is not None and not str(error).startswith("jax2tf"):
            error.add_note(
                f"jax2tf: params: the array {dotted!r} of the file {os.fsdecode(path)} is the "
                f"entry params[{dotted!r}]: a slash in a name nests, a dot does not. What to do: "
                f"save it as {dotted.replace('.', '/')!r}, which is "
                f"params{''.join(f'[{part!r}]' for part in dotted.split('.'))}, or read the file "
                "and pass the pytree that the function takes"
            )
        numbered = _numbered(params) if path is not None else None
        if path is not None and numbered is not None and not str(error).startswith("jax2tf"):
            where, count = numbered
            error.add_note(
                f"jax2tf: params: {where} of the file {os.fsdecode(path)} is a dict with the keys "
                f"'0' to '{count - 1}', not a list. What to do: call a function that makes a list, "
                f"[{where}[str(i)] for i in range({count})], and calls yours"
            )
        raise


def _numbered(params: object, where: str = "params") -> tuple[str, int] | None:
    """The first dict whose keys are the numbers of a list, with their number; None without one."""
    if not isinstance(params, dict) or not params:
        return None
    if set(params) == set(map(str, range(len(params)))):
        return where, len(params)
    inner = (_numbered(value, f"{where}[{name!r}]") for name, value in params.items())
    return next(filter(None, inner), None)


def existing(path: str | bytes | os.PathLike[str], argument: str, example: str) -> Path:
    """The path, which exists.

    Raises:
      TypeError: it is not a path.
      FileNotFoundError: it does not exist, its name is too long, or a link leads to itself.
      PermissionError: its folder cannot be read.
    """
    place = option_checks.path(path, f"jax2tf.export: {argument}", example)
    try:
        place.stat()
    except OSError as error:
        kind = type(error) if isinstance(error, PermissionError) else FileNotFoundError
        what = "checkpoint" if argument == "params" else "file"
        raise kind(
            f"jax2tf.export: there is no {what} {place} ({error.strerror}). What to "
            f"do: give {argument} the path of one that exists, such as {example!r}"
        ) from error
    return place


def _npz(path: Path) -> dict[str, PyTree]:
    return arrays_of_npz(path, "params")


def arrays_of_npz(path: Path, argument: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name.

    Args:
      path: the file.
      argument: the argument that named it, for messages.

    Raises:
      ValueError: it is not an .npz file, it is not complete, or it holds other than numbers.
    """
    remedy = "numpy.savez(path, **arrays) makes one"
    # NumPy would read any other file as a pickle, and advise to allow pickles.
    if not path.is_file() or not zipfile.is_zipfile(path):
        raise _broken(path, argument, "be an .npz file, and is none or not whole", remedy)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            by_name = dict(arrays)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):
            expected = (
                "hold arrays of numbers, and has Python objects (pickle), which are not loaded"
            )
            raise _broken(path, argument, expected, remedy) from None
        raise _broken(path, argument, f"be whole and hold numbers: {error}", remedy) from error
    for name, array in by_name.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind in "OSUVMm":
            # NumPy writes bfloat16 as bytes.
            has = array.dtype if isinstance(array, np.ndarray) else "no array"
            remedy = "a .safetensors file holds bfloat16 and the like"
            raise _broken(path, argument, f"hold arrays of numbers: {name!r} is {has}", remedy)
    return by_name


def _broken(path: Path, argument: str, expected: str, remedy: str) -> ValueError:
    return ValueError(
        f"jax2tf.export: {argument}: the file {path} should {expected}. What to do: write it "
        f"anew; {remedy}"
    )


def _safetensors(path: Path) -> dict[str, PyTree]:
    safetensors = packages.import_package("safetensors", f"the checkpoint {path.name}")
    from safetensors.flax import load_file

    try:
        return load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise _broken(
            path,
            "params",
            f"be a .safetensors file, and is none or not whole: {error}",
            "safetensors.flax.save_file(arrays, path) makes one",
        ) from error


_FILES: Mapping[str, Callable[[Path], dict[str, PyTree]]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
}


_ITEM = "default"


def _orbax(path: Path) -> PyTree:
    checkpoint = packages.import_package("orbax.checkpoint", f"the Orbax checkpoint {path.name}")
    # A CheckpointManager stores the items of a step in folders.
    folder = path.absolute() / _ITEM if (path / _ITEM).is_dir() else path.absolute()
    with checkpoint.PyTreeCheckpointer() as checkpointer:
        metadata = checkpointer.metadata(folder).item_metadata
        if metadata is None:
            raise ValueError(
                f"jax2tf.export: there is no Orbax checkpoint in {path}; give the folder of one, "
                "which for a CheckpointManager is that of a step and of an item: STEP/params"
            )
        # The devices that saved the checkpoint may be absent here.
        as_numpy = checkpoint.RestoreArgs(restore_type=np.ndarray)
        args = jax.tree.map(lambda leaf: as_numpy, metadata.tree)
        return checkpointer.restore(folder, restore_args=args)


def _nested(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, PyTree]:
    """The arrays in nested dicts, by the slashes in their names."""
    tree: dict[str, PyTree] = {}
    # Sorting puts "a" before "a/b", whatever the order in the file.
    for name in sorted(arrays):
        *folders, last = name.split("/")
        node = tree
        for i, folder in enumerate(folders):
            node = node.setdefault(folder, {})
            if not isinstance(node, dict):
                outer = "/".join(folders[: i + 1])
                raise ValueError(
                    f"jax2tf.export: params: in the file {path}, {name!r} stands inside of the "
                    f"array {outer!r}. What to do: read it with its own library, and pass the "
                    "pytree"
                )
        node[last] = arrays[name]
    return tree
