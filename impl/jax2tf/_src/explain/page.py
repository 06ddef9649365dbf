"""Writes an explanation as one self-contained HTML page, without scripts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from jax2tf._src.explain.report import Refusal, Report

_STYLE = """
:root { color-scheme: light dark; --bar: #4a7fd4; --bad: #b3261e; --rule: #8884; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; overflow-wrap: break-word; }
td.place, td code { overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; }
td.picture { width: 45%; } svg { display: block; width: 100%; height: 1rem; }
rect { fill: var(--bar); } .refused { color: var(--bad); }
code { font: 13px/1.4 ui-monospace, monospace; } details { margin: .5rem 0; }
summary { cursor: pointer; }
"""

# The title of a column of paths, which may break anywhere.
_PLACE = "Where"
# The number of rows of a table; one more row sums up the rest.
_ROWS = 40


class Content(Protocol):
    """The attributes of an Explanation that the page shows."""

    @property
    def function(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, str]: ...

    @property
    def results(self) -> tuple[str, ...]: ...

    @property
    def dynamic(self) -> Sequence[str]: ...

    @property
    def reports(self) -> tuple[Report, ...]: ...


def page(explanation: Content, refusals: Mapping[Refusal, Sequence[str]]) -> str:
    """The page of an explanation; `refusals` has the targets of each refusal."""
    return "\n".join(_lines(explanation, refusals))


def _lines(explanation: Content, refusals: Mapping[Refusal, Sequence[str]]) -> Iterator[str]:
    name = html.escape(explanation.function)
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style><h1>{name}</h1>"
    given = [f"{path}: {spec}" for path, spec in explanation.arguments.items()]
    yield f"<p><code>({html.escape(', '.join(given))}) → "
    yield f"{html.escape(', '.join(explanation.results))}</code></p>"
    if explanation.dynamic:
        open_ones = html.escape("; ".join(explanation.dynamic))
        yield f"<p>Shapes that only the run can tell: <code>{open_ones}</code></p>"
    yield "<h2>Targets</h2>"
    yield from _bars(
        {report.target: report.size for report in explanation.reports},
        "Target",
        notes={
            report.target: "does not convert" for report in explanation.reports if report.refusals
        },
    )
    if refusals:
        yield "<h2>What cannot be lowered</h2>"
        yield from _table(
            ("Primitive", _PLACE, "Why", "What to do", "Targets"),
            (
                (
                    refusal.primitive + (f", {refusal.count} times" if refusal.count > 1 else ""),
                    refusal.source,
                    refusal.reason,
                    refusal.remedy,
                    ", ".join(targets),
                )
                for refusal, targets in refusals.items()
            ),
        )
    yield "<h2>Where the ops come from</h2>"
    for report in explanation.reports:
        yield from _report(report, is_open=report is explanation.reports[0])


def _report(report: Report, *, is_open: bool) -> Iterator[str]:
    yield f"<details{' open' if is_open else ''}><summary>{html.escape(report.target)}: "
    yield f"{report.size} ops</summary>"
    yield from _bars(report.lines, "Line")
    if set(report.scopes) - {""}:
        yield from _bars(report.scopes, "Scope")
    yield from _bars(report.ops, "Op", "Count")
    if report.limitations:
        yield f"<h3>Known limitations that may touch it: {len(report.limitations)}</h3>"
        yield from _table(
            ("Primitive", "Dtypes", "Seen", "Why"),
            ((e.primitive, ", ".join(e.dtypes), e.expect, e.reason) for e in report.limitations),
        )
    yield "</details>"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{title}" for title in titles) + "</tr>"
    classes = [' class="place"' if title == _PLACE else "" for title in titles]
    for row in rows:
        cells = (f"<td{c}>{html.escape(x)}</td>" for c, x in zip(classes, row, strict=True))
        yield "<tr>" + "".join(cells) + "</tr>"
    yield "</table>"


def _bars(
    counts: Mapping[str, int],
    title: str,
    counted: str = "Ops",
    notes: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """A table with a bar for each count."""
    shown = dict(list(counts.items())[:_ROWS])
    left = sum(counts.values()) - sum(shown.values())
    if left:
        shown[f"{len(counts) - _ROWS} more"] = left
    largest = max(shown.values(), default=0) or 1
    yield f'<table><tr><th>{title}<th class="number">{counted}<th></tr>'
    for name, count in shown.items():
        note = (notes or {}).get(name)
        label = html.escape(name or "no line or scope of yours")
        label += f' <span class="refused">{note}</span>' if note else ""
        width = 100 * count / largest
        yield (
            f'<tr><td><code>{label}</code></td><td class="number">{count}</td><td class="picture">'
            f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
            f'aria-label="{count}"><rect width="{width:.1f}" height="10"/></svg></td></tr>'
        )
    yield "</table>"
