"""Replaces a file of ONNX, and the file of its arrays beside it, so that the two always fit.

The model names the file of its arrays, and the place of each of them in it. File systems cannot
replace two files at once. So the file of arrays first gets the arrays of both models, the new ones
behind the old ones, and then a model with other places reads the new ones. Each step replaces one
file, and after each step the pair is the old or the new model.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from jax2tf._src.export import destination, obstacles, packages

if TYPE_CHECKING:
    import onnx

# ONNX Runtime maps arrays that begin at a page.
_PAGE = 4096


def data_beside(target: Path) -> Path:
    """The file of the arrays of a model."""
    return target.with_name(f"{target.name}.data")


def obstacle(target: Path) -> str:
    """The reason why a path must not be replaced, such as a file of arrays of no model."""
    reason = obstacles.of_file(target)
    if reason or target.suffix != ".data" or not os.path.lexists(target):
        return reason
    model = target.with_suffix("")
    if model.is_file() and reads_data(model):
        return ""
    if target.is_file() and _loaded(target).graph.output:  # a model that has such a name
        return ""
    return f"it belongs to no model: no {model.name} beside it names it"


def reads_data(model: Path) -> bool:
    """Whether a file is a model of ONNX whose arrays stand in the file beside it."""
    name = data_beside(model).name
    return any(
        entry.key == "location" and entry.value == name
        for tensor in _loaded(model).graph.initializer
        for entry in tensor.external_data
    )


def _loaded(model: Path) -> onnx.ModelProto:
    """The model in a file; an empty one if it is none."""
    onnx = packages.import_package("onnx", "the format 'onnx'")
    try:
        return onnx.load(model, load_external_data=False)
    # Protobuf has errors of its own for each of its implementations.
    except Exception:
        return onnx.ModelProto()


def steps(written: Sequence[Path], targets: Sequence[Path]) -> destination.Steps:
    """The renames, in order.

    Args:
      written: the new model, with the file of its arrays before it if there is one. Temporary files
        are written beside them.
      targets: the places of these.
    """
    model, old_model = written[-1], targets[-1]
    old_data = data_beside(old_model)
    had_data = old_data.is_file() and old_model.is_file() and reads_data(old_model)
    if len(written) == 1:
        # The new model reads no data, and the old data goes with the temporary files.
        away = (old_data, model.with_name("old.data"))
        return [(model, old_model), *([away] if had_data else [])]
    data = written[0]
    if not had_data:
        return destination.each(written, targets)
    start = max(map(up_to_page, (old_data.stat().st_size, data.stat().st_size)))
    both, shifted, twice = (model.with_name(f"{i}.{model.name}") for i in range(3))
    _join(both, old_data, data, start)
    _shift(model, shifted, start)
    _join(twice, data, data, start)
    return [
        (both, old_data),  # the old model reads the old arrays, in front
        (shifted, old_model),  # this model reads the new arrays, behind them
        (twice, old_data),  # the new arrays are now in front, too
        (model, old_model),  # the new model reads them there
        (data, old_data),
    ]


def up_to_page(size: int) -> int:
    """The first place at a page that is not before the end of so many bytes."""
    return size + -size % _PAGE


def _join(joined: Path, first: Path, second: Path, start: int) -> None:
    """Writes a file of two others, the second from `start` on."""
    with joined.open("wb") as into:
        _copy(first, into)
        into.seek(start)
        _copy(second, into)


def _copy(source: Path, into: BinaryIO) -> None:
    with source.open("rb") as file:
        shutil.copyfileobj(file, into, 1 << 20)


def _shift(model: Path, shifted: Path, start: int) -> None:
    """Writes a model whose arrays stand `start` bytes further on."""
    proto = _loaded(model)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "offset":
                entry.value = str(int(entry.value) + start)
    shifted.write_bytes(proto.SerializeToString(deterministic=True))
