"""The options of a run, the same for pytest and for `python -m harnesses`."""

from collections.abc import Callable
from typing import Any

from harnesses.engine.adapter import DEFAULT_IMPLEMENTATION, LOWERINGS
from harnesses.engine.cells import (
    ASKED_MODES,
    CALL_TF_MODES,
    DEVICES,
    GRADIENT,
    JAX_SIDE,
    MODE_NAMES,
    Selection,
)
from harnesses.harness import CALL_TF, CONVERT

_FILTERS = ("family", "primitive", "dtype", "name", "device", "lowering", "mode")


def add_options(add: Callable[..., Any]) -> None:
    """Declares the options through `add`: of an argparse parser or of a pytest option group."""

    def add_filter(option: str, text: str, **kwargs: Any) -> None:
        add(option, action="append", default=[], help=f"{text}; may be repeated", **kwargs)

    add_filter("--family", "family, such as linalg")
    add_filter("--primitive", "primitive")
    add_filter("--dtype", "dtype, such as bfloat16")
    add_filter("--name", "name of a harness, or a glob of names")
    add_filter("--device", "device (default: cpu)", choices=DEVICES)
    add_filter("--lowering", "lowering (default: xla)", choices=tuple(LOWERINGS))
    modes = (*MODE_NAMES, GRADIENT, *ASKED_MODES, *CALL_TF_MODES)
    add_filter("--mode", "mode (default: eager, graph, compiled)", choices=modes)
    add("--side", default="tensorflow", choices=("tensorflow", JAX_SIDE), help="jax: JAX alone")
    directions = (CONVERT, CALL_TF)
    add("--direction", default=CONVERT, choices=directions, help="call_tf: TensorFlow inside JAX")
    add("--sample", type=int, metavar="N", help="N of the harnesses, the same ones every time")
    add("--shard", type=_shard, metavar="I/N", help="part I of N of the harnesses, from 1/N")
    add("--impl", default=DEFAULT_IMPLEMENTATION, metavar="MODULE", help="module that is judged")
    add("--ledger", metavar="FOLDER", help="its limitations (default: those of jax2tf)")
    add("--results", metavar="FILE", help="where rows go (default: reports/results/DEVICE*.jsonl)")
    add("--cell-timeout", type=float, default=120, metavar="SECONDS", help="ends a cell that hangs")
    add("--worker-memory", type=float, default=3, metavar="GIB", help="replaces a larger worker")


def selection(options: Any) -> Selection:
    """The selection that parsed options ask for."""
    chosen: dict[str, Any] = {name: tuple(getattr(options, name)) for name in _FILTERS}
    chosen["device"] = chosen["device"] or ("cpu",)
    others = {name: getattr(options, name) for name in ("side", "direction", "sample", "shard")}
    return Selection(**chosen, **others)


def _shard(text: str) -> str:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise ValueError(f"{text!r} is no shard: I/N, with I from 1 to N")
    return text
