"""The guide to models of JAX's frameworks runs, line by line, and gives what it says."""

from __future__ import annotations

import doctest
import pathlib
import re

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/frameworks.md"


def test_the_examples_run():
    text = re.sub(r"^```.*$", "", GUIDE.read_text(), flags=re.MULTILINE)
    example = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    assert len(example.examples) > 50
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(example, out=report.append)
    assert not report, "".join(report)
