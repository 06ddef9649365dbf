"""The files of the benchmark, made of its figures: a table, and a picture a device.

The figures come from `reports.benchmarks.bench`; nothing here needs TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports import rendering

# Blue, orange and green that color-blind readers tell apart (Okabe and Ito, 2008).
COLORS = {"eager": "#0072b2", "graph": "#d55e00", "compiled": "#009e73"}

# A step that takes more memory than so many sizes of the parameters is a defect.
MEMORY_LIMIT = 1.5

# Megabytes that a process may hold of all that it converted, beyond what JAX and TensorFlow hold.
ENDURANCE_LIMIT = 50


def benchmark_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files, by name, for the figures of each device."""
    pictures = {
        f"benchmarks-{device}.svg": steady_picture(device, section)
        for device, section in data.items()
    }
    return {
        "benchmarks.json": rendering.figures(data),
        "benchmarks.md": rendering.render("benchmarks.md", devices=data),
        **pictures,
    }


def memory_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports memory`, by name."""
    return rendering.table_with_figures("memory", data, limit=MEMORY_LIMIT)


def endurance_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports endurance`, by name."""
    return rendering.table_with_figures("endurance", data, limit=ENDURANCE_LIMIT)


def engine_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports engines`, by name."""
    return rendering.table_with_figures("engines", data)


def overhead_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports overhead`, by name."""
    return rendering.table_with_figures("call_tf_overhead", data)


def located_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports located`, by name."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in data["rows"]:
        groups.setdefault((row["engine"], row["kind"]), []).append(row)
    lines = [_located(*key, rows) for key, rows in groups.items()]
    total = _located("all", "", data["rows"])
    memory = [
        {"engine": engine, **peaks, "times": f"{peaks['located'] / peaks['verified']:.1f}"}
        for engine, peaks in data["memory"].items()
    ]
    return rendering.table_with_figures("located", data, lines=[*lines, total], peaks=memory)


def _located(engine: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A line of the table of planted faults."""
    return {
        "engine": engine,
        "kind": kind,
        "faults": len(rows),
        "equation": _share(row["equation"] for row in rows),
        "party": _share(row["party"] for row in rows),
        "time": _middle_and_most(row["ratio"] for row in rows),
        "of_processor": _middle_and_most(row["of_processor"] for row in rows),
        "of_export": _middle_and_most(row["of_export"] for row in rows),
    }


def _middle_and_most(given: Iterable[float | None]) -> str:
    """The median, the 95th percentile and the largest number; empty if there are none."""
    ratios = sorted(ratio for ratio in given if ratio is not None)
    if not ratios:
        return ""
    shown = (ratios[len(ratios) // 2], ratios[len(ratios) * 95 // 100], ratios[-1])
    return ", ".join(f"{ratio:.1f}" for ratio in shown)


def _share(right: Iterable[bool]) -> str:
    every = list(right)
    return f"{100 * sum(every) / len(every):.1f}%" if every else ""


def twin_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports twins`, by name."""
    return rendering.table_with_figures("twins", data)


def growth_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of `python -m reports growth`, by name."""
    picture = rendering.render("growth.svg", panels=list(map(_panel, data["axes"])))
    return rendering.table_with_figures("growth", data) | {"growth.svg": picture}


def _panel(axis: Mapping[str, Any]) -> dict[str, Any]:
    """One picture of growth: a line for each contender, its points between 0 and 1."""
    points = axis["points"]
    sizes = [point["size"] for point in points]
    medians = {
        name: [point["seconds"][name]["median"] for point in points]
        for name in sorted(points[0]["seconds"])
    }
    across = _Axis([float(size) for size in sizes])
    up = _Axis([seconds for line in medians.values() for seconds in line])
    return {
        "title": f"{axis['times']} by {axis['name']}",
        "across": [{"at": across(size), "label": f"{size:,}"} for size in sizes],
        "up": [{"at": up(t), "label": _short_time(t)} for t in up.ticks if _is_power_of_ten(t)],
        "lines": {
            name: [(across(size), up(value)) for size, value in zip(sizes, line, strict=True)]
            for name, line in medians.items()
        },
    }


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


def _short_time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.999 * size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds / 1e-6:g} µs"


def steady_picture(device: str, section: Mapping[str, Any]) -> str:
    """An SVG image of the steady ratios of the benchmark's section about a device."""
    programs = [p for p in section["programs"] if not p["refused"]]
    ratios = {p["program"]: p["steady"]["ratios"] for p in programs}
    quartiles = [q for modes in ratios.values() for q in modes.values()]
    axis = _Axis([1.0, *(value for q in quartiles for value in q.values())])
    return rendering.render(
        "benchmarks.svg",
        title=f"A call of a converted function, {device}",
        colors=COLORS,
        ticks=[{"at": axis(value), "label": f"{value:g}"} for value in axis.ticks],
        programs=[
            {"name": name, "dots": {mode: _placed(axis, modes[mode]) for mode in COLORS}}
            for name, modes in ratios.items()
        ],
    )


def _placed(axis: _Axis, quartiles: Mapping[str, float]) -> dict[str, float]:
    return {name: axis(value) for name, value in quartiles.items()}


class _Axis:
    """A logarithmic axis over some values: maps a value to its place between 0 and 1."""

    def __init__(self, values: list[float]):
        steps = [m * 10.0**e for e in range(-6, 6) for m in (1, 2, 5)]
        first = max(s for s in steps if s <= min(values))
        last = min(s for s in steps if s >= max(values) and s > first)
        self.ticks = [step for step in steps if first <= step <= last]
        self._low, self._high = math.log(first), math.log(last)

    def __call__(self, value: float) -> float:
        return (math.log(value) - self._low) / (self._high - self._low)
