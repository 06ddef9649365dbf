"""The guide to models of JAX's frameworks runs, line by line, and gives what it says."""

from __future__ import annotations

from tests.test_documentation import ROOT, run, session_of


def test_the_examples_run():
    session = session_of(ROOT / "docs/guides/frameworks.md")
    assert len(session.examples) > 50
    run(session)
