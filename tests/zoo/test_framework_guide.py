"""The guide to models of JAX's frameworks runs, line by line, and gives what it says."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.test_documentation import ROOT, run, session_of

PAGE = ROOT / "docs/guides/frameworks.md"


def test_the_examples_run():
    """In a process of its own, because Keras reads its backend when TensorFlow is imported."""
    assert len(session_of(PAGE).examples) > 80
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr[-6000:]


if __name__ == "__main__":
    run(session_of(PAGE))
