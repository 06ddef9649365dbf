"""Writes an answer as one self-contained HTML page, without scripts."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Protocol

from jax2tf._src.locate import bits
from jax2tf._src.locate.bits import Layer

_STYLE = """
:root { color-scheme: light dark; --good: #2e7d3233; --soft: #f9a82555; --bad: #b3261e66;
  --rule: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre, code { font: 13px/1.4 ui-monospace, monospace; } pre { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .2rem .5rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; overflow-wrap: anywhere; }
.good { background: var(--good); } .soft { background: var(--soft); }
.bad { background: var(--bad); }
summary { cursor: pointer; }
"""

# An error of at least this share of what is allowed is coloured as near to it.
_NEAR = 0.1
# A layer with so many times the mean part of the error is coloured as bad.
_TWICE = 2.0


class Row(Protocol):
    """The attributes of a line that the page shows."""

    @property
    def index(self) -> int: ...

    @property
    def text(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def callers(self) -> Sequence[str]: ...

    @property
    def scope(self) -> str: ...

    @property
    def difference(self) -> float | None: ...

    @property
    def error(self) -> float | None: ...

    @property
    def values(self) -> tuple[str, str]: ...

    @property
    def tensor(self) -> str: ...


class Content(Protocol):
    """The attributes of an answer that the page shows."""

    @property
    def target(self) -> str: ...

    @property
    def lines(self) -> Sequence[Row]: ...

    @property
    def layers(self) -> Sequence[Layer]: ...


def page(answer: Content) -> str:
    """The page of an answer: its text, and all equations coloured by their error."""
    return "\n".join(_page(answer))


def _page(answer: Content) -> Iterator[str]:
    title = html.escape(f"{answer.target} and JAX")
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style><h1>{title}</h1><pre>{html.escape(str(answer))}</pre>"
    yield from _layers(answer.layers)
    yield "<h2>Equations</h2><p>Coloured by the error that an equation makes itself: green as "
    yield "small as its operands explain, yellow near to that, red above it. Equations without "
    yield "colour cannot be read: an op computes several of them.</p>"
    yield "<table><tr><th>Equation<th>Line<th>Scope<th>Difference to JAX<th>Own error<th>Values"
    for line in answer.lines:
        yield _row(line)
    yield "</table>"


def _layers(layers: Sequence[Layer]) -> Iterator[str]:
    """The layers of a file with fewer bits."""
    if not layers:
        return
    yield "<h2>Layers</h2><p>Red makes twice the mean part of the outputs' error or more, yellow "
    yield "at least the mean part. Of the equations below most are red: they are held against the "
    yield "rounding of the function's own dtype.</p>"
    yield "<table><tr>" + "".join(f"<th>{head}" for head in bits.HEADS)
    for layer in layers:
        part = layer.share * len(layers)
        kind = "bad" if part >= _TWICE else "soft" if part >= 1 else "good"
        cells = "".join(f"<td>{html.escape(cell)}" for cell in bits.cells(layer))
        yield f'<tr class="layer {kind}">{cells}'
    yield "</table>"


def _row(line: Row) -> str:
    cells = [
        f"{line.index}: <code>{html.escape(line.text)}</code>",
        "<br>".join(map(html.escape, [line.source, *(f"from {c}" for c in line.callers)])),
        html.escape(line.scope),
        "" if line.difference is None else f"{line.difference:.3g}",
        "" if line.error is None else f"{line.error:.3g}",
        _values(line.values),
    ]
    return f'<tr class="{colour(line.error)}">' + "".join(f"<td>{cell}</td>" for cell in cells)


def _values(values: tuple[str, str]) -> str:
    if not any(values):
        return ""
    ours, theirs = map(html.escape, values)
    return f"<details><summary>show</summary>JAX: {ours}<br>there: {theirs}</details>"


def colour(error: float | None) -> str:
    """The class of an equation by its own error; empty for one that cannot be read."""
    if error is None:
        return ""
    if error > 1:
        return "bad"
    return "soft" if error > _NEAR else "good"


_LARGEST = 1e30
_COLOURS = ((_NEAR, "#a5d6a7"), (1.0, "#fff59d"), (_LARGEST, "#ef9a9a"))


def node_data(answer: Content) -> dict[str, object]:
    """The own error of each tensor, in the format of Model Explorer's node data."""
    results: dict[str, dict[str, float]] = {}
    for line in answer.lines:
        if line.tensor and line.error is not None:
            # JSON has no infinity.
            results[line.tensor] = {"value": min(line.error, _LARGEST)}
    thresholds = [{"value": value, "bgColor": colour} for value, colour in _COLOURS]
    return {"results": results, "thresholds": thresholds}
