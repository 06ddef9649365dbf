"""How a .xml of OpenVINO and its .bin are replaced so that the two always fit each other.

OpenVINO finds the .bin by the name of the .xml, and reads weights at the places that the .xml says,
whatever stands there. No step of the system replaces two files. So the .bin holds the weights of
both models for a while: the old ones in front, the new ones behind, and a .xml that reads the new
ones there. Each step replaces one file, and after each the two are the old or the new model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from jax2tf._src.export import placing

_CONSTANT = re.compile(r'(<data\b[^<>]*\boffset=")(\d+)("[^<>]*\bsize="\d+")')


def steps(written: Sequence[Path], targets: Sequence[Path]) -> placing.Steps:
    """What to put where, in this order.

    Args:
      written: the .bin and the .xml that were written. Files are made beside them.
      targets: where they go.
    """
    (new_bin, new_xml), (old_bin, old_xml) = written, targets
    if not (old_bin.exists() and old_xml.exists()):
        return placing.each(written, targets)
    old, new = old_bin.read_bytes(), new_bin.read_bytes()
    start = max(len(old), len(new))
    names = ("both.bin", "shifted.xml", "twice.bin")
    both, shifted, twice = (new_bin.with_name(f"{i}_{name}") for i, name in enumerate(names))
    both.write_bytes(old.ljust(start, b"\0") + new)
    shifted.write_text(_shifted(new_xml.read_text(encoding="utf-8"), start), encoding="utf-8")
    twice.write_bytes(new.ljust(start, b"\0") + new)
    return [
        (both, old_bin),  # the old .xml reads the front
        (shifted, old_xml),  # it reads what is behind
        (twice, old_bin),  # now the new ones stand in front too
        (new_xml, old_xml),  # it reads the front
        (new_bin, old_bin),
    ]


def _shifted(graph: str, start: int) -> str:
    """The text of a .xml whose constants stand `start` bytes farther on in the .bin."""
    return _CONSTANT.sub(lambda found: f"{found[1]}{int(found[2]) + start}{found[3]}", graph)
