"""Replaces the .xml and the .bin of an OpenVINO model so that the two always fit each other.

OpenVINO finds the .bin by the name of the .xml, and reads weights at the offsets in the .xml
without a check. File systems cannot replace two files at once. So the .bin first gets the weights
of both models, the new ones behind the old ones, and then a .xml with shifted offsets reads the new
ones. Each step replaces one file, and after each step the pair is the old or the new model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from jax2tf._src.export import destination

_CONSTANT = re.compile(r'(<data\b[^<>]*\boffset=")(\d+)("[^<>]*\bsize="\d+")')


def steps(written: Sequence[Path], targets: Sequence[Path]) -> destination.Steps:
    """The renames, in order.

    Args:
      written: the new .bin and .xml. Temporary files are written beside them.
      targets: the places of the two.
    """
    (new_bin, new_xml), (old_bin, old_xml) = written, targets
    if not (old_bin.exists() and old_xml.exists()):
        return destination.each(written, targets)
    old, new = old_bin.read_bytes(), new_bin.read_bytes()
    start = max(len(old), len(new))
    names = ("both.bin", "shifted.xml", "twice.bin")
    both, shifted, twice = (new_bin.with_name(f"{i}_{name}") for i, name in enumerate(names))
    both.write_bytes(old.ljust(start, b"\0") + new)
    shifted.write_text(_shifted(new_xml.read_text(encoding="utf-8"), start), encoding="utf-8")
    twice.write_bytes(new.ljust(start, b"\0") + new)
    return [
        (both, old_bin),  # the old .xml reads the old weights, in front
        (shifted, old_xml),  # this .xml reads the new weights, behind them
        (twice, old_bin),  # the new weights are now in front, too
        (new_xml, old_xml),  # the new .xml reads them there
        (new_bin, old_bin),
    ]


def _shifted(graph: str, start: int) -> str:
    """The text of a .xml with `start` added to the offsets of its constants in the .bin."""
    return _CONSTANT.sub(lambda match: f"{match[1]}{int(match[2]) + start}{match[3]}", graph)
