"""The options of a run, the same for pytest and for `python -m harnesses`."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesses.cell.cells import Cell, direction_of
from harnesses.cell.names import (
    ASKED_MODES,
    CALL_TF_MODES,
    CONSUMER_MODES,
    DEFAULT_IMPLEMENTATION,
    DEVICES,
    DIRECT,
    GROUPS,
    JAX_SIDE,
    LOWERINGS,
    MODE_NAMES,
    SAVEDMODEL,
    SUBSTRATE_LOWERINGS,
    SUBSTRATE_MODES,
    TAPE_MODES,
    UNDER,
    UNDER_MODES,
)
from harnesses.engine import compile_cache
from harnesses.engine.converters import SHIPPED, is_converter
from harnesses.engine.selection import Selection
from harnesses.harness import CONVERT, DIRECTIONS, SUBSTRATES

_FILTERS = ("family", "primitive", "dtype", "name", "device", "lowering", "mode")

# The filters that the name of a target stands for.
_TARGETS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "xla": {"lowering": ("xla",)},
    "tensorflow": {"lowering": ("no_xla",)},
    **{
        mode: {"lowering": ("no_xla",), "mode": (mode,)}
        for mode in CONSUMER_MODES
        if mode != SAVEDMODEL
    },
}

_MODES = tuple(
    dict.fromkeys(
        (*MODE_NAMES, *GROUPS, *ASKED_MODES, *CALL_TF_MODES, *SUBSTRATE_MODES, *TAPE_MODES)
    )
)


class TargetError(ValueError):
    """A run asks for a target or a direction, and for what is not of it."""


def _filter(text: str, **kwargs: Any) -> dict[str, Any]:
    return {"action": "append", "default": [], "help": f"{text}; may be repeated", **kwargs}


def _shard(text: str) -> str:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise ValueError(f"{text!r} is no shard: I/N, with I from 1 to N")
    return text


_OPTIONS: dict[str, dict[str, Any]] = {
    "family": _filter("family, such as linalg"),
    "primitive": _filter("primitive"),
    "dtype": _filter("dtype, such as bfloat16"),
    "name": _filter("name of a harness, or a glob of names"),
    "device": _filter("device (default: cpu)", choices=DEVICES),
    "mode": _filter("mode (default: eager, graph, compiled)", choices=_MODES),
    "lowering": _filter(
        "lowering (default: xla), or substrate", choices=(*LOWERINGS, *SUBSTRATE_LOWERINGS)
    ),
    "target": {
        "choices": tuple(_TARGETS),
        "help": "what reads the graphs: its lowering, and the mode of an engine",
    },
    "side": {
        "default": "tensorflow",
        "choices": ("tensorflow", JAX_SIDE),
        "help": "jax: JAX alone",
    },
    "direction": {
        "default": CONVERT,
        "choices": DIRECTIONS,
        "help": "call_tf: TensorFlow inside JAX; substrates: its API on NumPy and JAX",
    },
    "sample": {"type": int, "metavar": "N", "help": "N of the harnesses, the same ones every time"},
    "shard": {"type": _shard, "metavar": "I/N", "help": "part I of N of the harnesses, by cost"},
    "impl": {
        "default": DEFAULT_IMPLEMENTATION,
        "metavar": "MODULE",
        "help": "what is judged: a module that has convert, MODULE:CLASS of a Converter, or "
        + ", ".join(SHIPPED),
    },
    "ledger": {
        "metavar": "FOLDER",
        "help": "its limitations (default: limitations/, or limitations/MODULE for another)",
    },
    "results": {
        "metavar": "FILE",
        "help": "where rows go (default: a new file in reports/results/runs)",
    },
    "resume": {
        "action": "store_true",
        "default": False,
        "help": "goes on with the run of these options that stopped",
    },
    "cell-timeout": {
        "type": float,
        "default": 120,
        "metavar": "SECONDS",
        "help": "ends a cell that hangs",
    },
    "compile-cache": {
        "metavar": "FOLDER",
        "help": "keeps what XLA compiles, for the next run",
    },
    "worker-memory": {
        "type": float,
        "default": 3,
        "metavar": "GIB",
        "help": "replaces a larger worker",
    },
}
# Those that change what comes of a cell, beside what the cell is.
_OF_EVERY_CELL = ("impl", "ledger", "cell-timeout")

# What JAX, XLA and TensorFlow read that may change a result.
_ENVIRONMENT = ("XLA_FLAGS", "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "NVIDIA_TF32_OVERRIDE")
_ENVIRONMENT_PREFIX = "JAX_"


def add_options(add: Callable[..., Any]) -> None:
    """Declares the options through `add`: of an argparse parser or of a pytest option group."""
    for name, kwargs in _OPTIONS.items():
        add(f"--{name}", **kwargs)


def environment() -> dict[str, str]:
    """Those variables of this process's environment that may change a result."""
    found = {
        name: value
        for name, value in sorted(os.environ.items())
        if name in _ENVIRONMENT or name.startswith(_ENVIRONMENT_PREFIX)
    }
    return compile_cache.without_ours(found)


def run_command(options: Any) -> str:
    """The command line that asks for the same run again."""
    names = [name for name in _OPTIONS if name != "resume"]
    return _command([word for name in names for word in _words(options, name)])


def cell_command(
    cell: Cell, options: Any, workers: int = 0, variables: Mapping[str, str] | None = None
) -> str:
    """The command line that runs one cell of the run alone, under the same circumstances.

    Args:
      cell: the cell.
      options: impl, ledger and cell_timeout of the run; `defaults` has those of a plain run.
      workers: processes that it runs in.
      variables: of the environment of the run; None for this process's own.
    """
    words = ["--name", cell.harness.name, "--device", cell.device]
    direction = direction_of(cell.lowering)
    if direction != CONVERT:
        words += ["--direction", direction, "--mode", cell.mode]
        words += ["--lowering", cell.lowering] if direction == SUBSTRATES else []
    elif cell.mode == JAX_SIDE:
        words += ["--side", JAX_SIDE]
    elif cell.lowering == DIRECT:
        words += ["--mode", cell.mode] if cell.mode != DIRECT else []
    else:
        words += ["--mode", cell.mode, "--lowering", cell.lowering]
    words += [word for name in _OF_EVERY_CELL for word in _words(options, name)]
    return _command([*words, "-n", str(workers)], variables)


def defaults() -> dict[str, Any]:
    """Of the options that `cell_command` reads, what a plain run has."""
    return {_attribute(name): _OPTIONS[name].get("default") for name in _OF_EVERY_CELL}


def selection(options: Any) -> Selection:
    """The selection that parsed options ask for."""
    chosen: dict[str, Any] = {name: tuple(getattr(options, name)) for name in _FILTERS}
    chosen["device"] = chosen["device"] or ("cpu",)
    if options.target is not None:
        chosen |= _of_target(options.target, chosen)
    _refuse_lowerings_of_another(options.direction, chosen["lowering"])
    others = {name: getattr(options, name) for name in ("side", "direction", "sample", "shard")}
    if is_converter(options.impl) and others["side"] != JAX_SIDE:
        _refuse_for_converter(options, chosen)
        others["side"] = DIRECT
    return Selection(**chosen, **others)


def _refuse_for_converter(options: Any, chosen: Mapping[str, Any]) -> None:
    """Raises TargetError if the options ask for what only a module with `convert` has."""
    modes = tuple(mode for mode in chosen["mode"] if mode not in (UNDER, *UNDER_MODES))
    asked = {"lowering": chosen["lowering"], "mode": modes}
    given = {name: values for name, values in asked.items() if values}
    if options.direction != CONVERT:
        given["direction"] = (options.direction,)
    for name, values in given.items():
        raise TargetError(
            f"--impl {options.impl} has one way from a function to its result: "
            f"leave out --{name} {values[0]}"
        )


def _refuse_lowerings_of_another(direction: str, lowerings: Sequence[str]) -> None:
    """Raises TargetError for a substrate where a lowering is meant, and the other way round."""
    for lowering in lowerings:
        of = direction_of(lowering)
        if SUBSTRATES in (of, direction) and of != direction:
            raise TargetError(
                f"--lowering {lowering} is of --direction {of}, not of --direction {direction}"
            )


def _of_target(target: str, chosen: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The filters of a target.

    Raises:
      TargetError: the options ask for another lowering, or other modes, besides.
    """
    wanted = _TARGETS[target]
    for name, values in wanted.items():
        if chosen[name] not in ((), values):
            meant = " ".join(f"--{name} {value}" for value in values)
            raise TargetError(
                f"--target {target} stands for {meant}: leave out --{name} {chosen[name][0]}"
            )
    return wanted


def _command(words: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    settings = environment() if variables is None else variables
    before = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return " ".join([*before, "python -m harnesses run", *map(shlex.quote, words)])


def _words(options: Any, name: str) -> list[str]:
    """An option as a command line says it; none where it has its default."""
    value = getattr(options, _attribute(name))
    if value == _OPTIONS[name].get("default"):
        return []
    values = value if isinstance(value, list) else [value]
    return [
        word
        for each in values
        for word in (f"--{name}", f"{each:g}" if isinstance(each, float) else str(each))
    ]


def _attribute(name: str) -> str:
    return name.replace("-", "_")
