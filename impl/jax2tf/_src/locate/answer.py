"""The result of `locate`, as an object that prints itself."""

from __future__ import annotations

import dataclasses
import enum
import json
import math

from jax2tf._src.locate import bits, page
from jax2tf._src.locate.bits import Layer
from jax2tf._src.util.typing import PyTree

# Of other wrong equations so many are printed.
_SHOWN = 3


class Party(enum.Enum):
    """Who is wrong."""

    NOBODY = "nobody"
    FILE = "the file"
    JAX = "JAX's rounding"
    LOWERING = "the lowering of jax2tf"
    WRITER = "the converter that wrote the file"
    KERNEL = "the engine's kernel"
    ENGINE = "the engine or its converter"
    OPTIMISER = "the engine's optimiser, or ops that are merged"
    BITS = "the smaller number of bits"
    UNKNOWN = "not known"


@dataclasses.dataclass(frozen=True)
class Line:
    """One equation on both sides.

    Attributes:
      index: its number in the flat program.
      text: the equation: results, primitive, operands.
      source: the line of the user, or empty.
      callers: the lines of the user that called it, innermost first; none beyond a jax.jit.
      scope: the named scopes around it.
      difference: the largest difference to JAX's value; None if it cannot be read.
      error: the error of its own, in units of what is allowed; None if it cannot be read.
      values: the first elements in JAX and on the other side, as text.
      tensor: the name of its result in the file; empty if it was not read there.
      layer: the parameters that it reads, of a line in `Located.also`.
    """

    index: int
    text: str
    source: str
    scope: str
    difference: float | None = None
    error: float | None = None
    values: tuple[str, str] = ("", "")
    tensor: str = ""
    callers: tuple[str, ...] = ()
    layer: str = ""


@dataclasses.dataclass(frozen=True)
class Located:
    """Where, and by whose fault, a file or graph begins to differ from JAX.

    Attributes:
      target: the file, or the name of the graph.
      agrees: whether the outputs are within the tolerance of `export`.
      deviations: the deviation of each output.
      equation: the first wrong equation; None if there is none.
      primitive: its primitive.
      shapes: the shapes of its operands and results, such as "float32[2,3] -> float32[2]".
      dtype: the dtype of the wrong result.
      source: the user's line, such as "model.py:12:4 (layer)".
      layer: the parameters that the equation reads, such as `"['layers'][7]"`; if it reads none,
        that with which its layer begins.
      scope: the named scopes around it.
      difference: the largest difference to JAX's result on the same operands.
      error: the same in units of what the primitive and its operands' last bits explain.
      also: later equations that are wrong on their own account, too.
      among: other equations that may be it, because an op computes them together.
      step: the steps of the loops that the equation is in, outermost first.
      party: who is wrong.
      reason: how this is known.
      remedy: what to do.
      program: a program that shows it.
      lines: all equations on both sides.
      layers: what each layer loses, for a file with fewer bits (`quantize`, `compress_to_fp16`).
    """

    target: str
    agrees: bool
    deviations: dict[str, float]
    lines: tuple[Line, ...] = ()
    layers: tuple[Layer, ...] = ()
    equation: Line | None = None
    primitive: str = ""
    shapes: str = ""
    dtype: str = ""
    source: str = ""
    layer: str = ""
    scope: str = ""
    difference: float = 0.0
    error: float = 0.0
    also: tuple[Line, ...] = ()
    among: tuple[Line, ...] = ()
    step: tuple[str, ...] = ()
    party: Party = Party.NOBODY
    reason: str = ""
    remedy: str = ""
    program: str = ""

    def __str__(self) -> str:
        return "\n".join([self._text(), *self._table()])

    def _table(self) -> list[str]:
        """The layers of a file with fewer bits, as lines of text."""
        if not self.layers:
            return []
        lines = [self.most_lost(), "", *bits.table(self.layers)]
        return [f"  {line}".rstrip() for line in lines]

    def most_lost(self) -> str:
        """The layers that lose most, in words; empty for a file with all bits."""
        if not self.layers:
            return ""
        worst = bits.worst(self.layers)[:3]
        parts = ", ".join(f"{layer.name} ({100 * layer.share:.0f}%)" for layer in worst)
        return f"most of the outputs' error is made by the layers of {parts}"

    def _text(self) -> str:
        far = ", ".join(f"{name}: {d:.3g}" for name, d in self.deviations.items())
        if self.equation is None and self.party is Party.NOBODY:
            return f"{self.target}: no equation differs from JAX. Outputs ({far}). {self.reason}"
        if self.equation is None:
            return (
                f"{self.target}: {self.party.value} is wrong. Outputs ({far}). {self.reason}. What "
                f"to do: {self.remedy}"
            )
        lines = [
            f"{self.target}: {self.party.value} is wrong, at {self.primitive}"
            f"{f', {self.source}' if self.source else ''}",
            f"  equation:   {self.equation.index} of {len(self.lines)}: {self.equation.text}",
            f"  shapes:     {self.shapes}",
            *(
                [f"  called at:  {', '.join(callers)}"]
                if (callers := self.equation.callers)
                else []
            ),
            *([f"  layer:      that of the parameter {self.layer}"] if self.layer else []),
            *([f"  scope:      {self.scope}"] if self.scope else []),
            *([f"  step:       {', '.join(self.step)}"] if self.step else []),
            f"  difference: {self._off()}",
            f"  outputs:    {far}, {self._within()}",
            *(
                [f"  or one of:  {', '.join(str(x.index) for x in self.among)} (not read there)"]
                if self.among
                else []
            ),
            *([f"  also wrong: {self._also()}"] if self.also else []),
            f"  why:        {self.reason}",
            f"  what to do: {self.remedy}",
        ]
        if self.program:
            lines += ["  a program that shows it:", ""]
            lines += [f"    {line}".rstrip() for line in self.program.splitlines()]
        return "\n".join(lines)

    def _within(self) -> str:
        """What the outputs say, in words."""
        if self.agrees:
            return (
                "within the tolerance; inside, values are off by more than their operands explain"
            )
        return "beyond the tolerance"

    def _off(self) -> str:
        if not self.error:
            return "not known: no result that is wrong can be read in the file"
        return f"{self.difference:.3g}, {self.error:.3g} times what is allowed"

    def _also(self) -> str:
        """The other wrong equations, in words."""
        texts = [
            ", ".join([f"{line.index}", *filter(None, (line.layer, line.source))])
            for line in self.also[:_SHOWN]
        ]
        more = len(self.also) - len(texts)
        return "; ".join([*texts, *([f"{more} more"] if more else [])])

    def overlay(self) -> str:
        """The errors as node data of Model Explorer (JSON), by the names of tensors in the file.

        Model Explorer colours the nodes of the file by them; `html` has all equations, also those
        that stand nowhere in the file.
        """
        return json.dumps({"jax2tf.locate": page.node_data(self)}, indent=1)

    def json(self) -> str:
        """All that the answer says, as JSON; infinite numbers and NaN are texts."""
        fields = {**dataclasses.asdict(self), "party": self.party.value}
        return json.dumps(_plain(fields), indent=1)

    def html(self) -> str:
        """The answer as one self-contained HTML page, without scripts."""
        return page.page(self)

    def _repr_html_(self) -> str:
        return self.html()


def _plain(value: PyTree) -> PyTree:
    """The value without floats that JSON does not have."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
