"""The result of `explain`, as an object that prints itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from jax2tf._src.explain import page
from jax2tf._src.explain.report import Refusal, Report


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The reports on a function, one for each target.

    Attributes:
      function: the name of the function.
      arguments: shape and dtype of each argument, by its path.
      results: shape and dtype of each result.
      reports: one for each target.
    """

    function: str
    arguments: Mapping[str, str]
    results: tuple[str, ...]
    reports: tuple[Report, ...]

    def __getitem__(self, target: str) -> Report:
        """The report of the target with that name.

        Raises:
          KeyError: the target has no report. The message lists the targets that have a report.
        """
        for report in self.reports:
            if report.target == target:
                return report
        names = ", ".join(report.target for report in self.reports)
        raise KeyError(f"jax2tf.explain was not asked about {target!r}; there are {names}")

    @property
    def dynamic(self) -> tuple[str, ...]:
        """The arguments and results whose shapes are known only at run time, as text."""
        named = [*self.arguments.items(), *((f"result {i}", s) for i, s in enumerate(self.results))]
        return tuple(f"{path}: {spec}" for path, spec in named if _is_dynamic(spec))

    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        given = ", ".join(f"{path}: {spec}" for path, spec in self.arguments.items())
        yield f"{self.function}({given}) -> {', '.join(self.results)}"
        for report in self.reports:
            said = f"{report.size} ops" if report.converts else _refused(report)
            yield f"  {report.target:<12}{said}{_touching(report)}"
        for refusal, targets in self._by_refusal().items():
            yield ""
            yield f"{refusal.primitive}, in {', '.join(targets)}:"
            yield f"  where:  {refusal.source or 'no line of yours'}" + (
                f", {refusal.count} times" if refusal.count > 1 else ""
            )
            yield f"  why:    {refusal.reason}"
            yield f"  remedy: {refusal.remedy}"
        if any(report.limitations for report in self.reports):
            yield ""
            yield "The limitations: found[target].limitations, and the page (html(), --html)."

    def _by_refusal(self) -> dict[Refusal, list[str]]:
        targets: dict[Refusal, list[str]] = {}
        for report in self.reports:
            for refusal in report.refusals:
                targets.setdefault(refusal, []).append(report.target)
        return targets

    def html(self) -> str:
        """The explanation as one self-contained HTML page, without scripts."""
        return page.page(self, self._by_refusal())

    def _repr_html_(self) -> str:
        return self.html()


def _refused(report: Report) -> str:
    uses = sum(refusal.count for refusal in report.refusals)
    names = sorted({refusal.primitive for refusal in report.refusals})
    return f"does not convert: {uses} use{'s' if uses > 1 else ''} of {', '.join(names)}"


def _touching(report: Report) -> str:
    count = len(report.limitations)
    return f"; {count} known limitation{'s' if count > 1 else ''} may touch it" if count else ""


def _is_dynamic(spec: str) -> bool:
    shape = spec[spec.index("[") + 1 : spec.rindex("]")]
    return any(not size.strip().isdigit() for size in shape.split(",") if size.strip())
