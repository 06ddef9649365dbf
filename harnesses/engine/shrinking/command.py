"""`python -m harnesses shrink`: prints the smallest program that goes wrong as another one does."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from harnesses.cell.names import POLY
from harnesses.engine.shrinking import cells, guarded, text
from harnesses.engine.shrinking.cells import Asked, CellError
from harnesses.engine.shrinking.options import OPEN
from harnesses.engine.shrinking.searching import Shrunk


def run(options: argparse.Namespace, console: Console) -> int:
    """Runs the command; the exit status is 0 if a program was found.

    Raises:
      CellError: there is no such cell or function, it goes right, or the program has no text.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if options.limit and not options.answers:
        return guarded.run(options, console.file)
    asked = _asked(options)
    answers = Path(options.answers) if options.answers else None

    def progress(found: Shrunk) -> None:
        # The program is the output: what is on the way goes beside it.
        print(found, file=sys.stderr, flush=True)
        if options.into:
            _write(options.into, asked, found)

    found = asked.shrink(answers=answers, seconds=options.seconds, progress=progress)
    print(found, file=sys.stderr, flush=True)
    try:
        program = asked.text(found)
    except text.NoText as error:
        raise CellError(
            f"the smallest program has no text: {error}. It is\n{found.program.closed}"
        ) from error
    if options.into:
        Path(options.into).write_text(program, encoding="utf-8")
    console.print(program, markup=False, highlight=False, soft_wrap=True)
    return 0


def _write(path: str, asked: Asked, found: Shrunk) -> None:
    """A process that dies in an engine leaves the smallest program so far."""
    try:
        program = asked.text(found)
    except text.NoText:
        return
    Path(path).write_text(program, encoding="utf-8")


def _asked(options: argparse.Namespace) -> Asked:
    if ":" not in options.what:
        return cells.of_cell(options.what, options.impl)
    return cells.of_function(
        _function(options.what),
        _arguments(options),
        name=options.what.partition(":")[2],
        impl=options.impl,
        lowering=options.lowering,
        mode=options.mode,
        x64=options.x64,
    )


def _function(what: str) -> Callable[..., Any]:
    module, _, name = what.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise CellError(
            f"there is no function {what!r}: {error}. What to do: name it package.module:function"
        ) from error
    if not callable(found):
        raise CellError(f"{what!r} is no function, but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def _arguments(options: argparse.Namespace) -> list[np.ndarray]:
    if options.values:
        try:
            with np.load(options.values) as file:
                return [file[name] for name in file.files]
        except (OSError, ValueError) as error:
            raise CellError(
                f"--values {options.values}: {error}. What to do: numpy.savez(FILE, x, y)"
            ) from error
    if not options.inputs:
        raise CellError("a function needs its arguments: --input 2,8:float32 for each, or --values")
    rng = np.random.default_rng(0)
    return [_drawn(words, rng, options.mode == POLY) for words in options.inputs]


def _drawn(words: str, rng: np.random.Generator, has_open: bool) -> np.ndarray:
    sizes, _, dtype = words.partition(":")
    names = {"b": str(OPEN)} if has_open else {}
    try:
        shape = [int(names.get(size.strip(), size)) for size in sizes.split(",") if size.strip()]
        kind = np.dtype(dtype or "float32")
    except (ValueError, TypeError) as error:
        raise CellError(
            f"--input {words}: {error}. What to do: sizes and a dtype, as 2,8:float32"
        ) from error
    drawn = rng.normal(size=shape)
    return np.asarray(drawn > 0 if kind.kind == "b" else 3 * drawn).astype(kind)
