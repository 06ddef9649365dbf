"""Tests in the style of TensorFlow Probability's own, beside an installed one, on both substrates.

`tox -e libraries` runs them; elsewhere TensorFlow Probability is not installed.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).with_name("probability")


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_probability") is None,
    reason="TensorFlow Probability is not installed",
)
@pytest.mark.parametrize("substrate", ["numpy", "jax"])
def test_tests_in_the_style_of_tensorflow_probability(substrate):
    options = ["-p", "tf_substrates.pytest_plugin", "-p", "no:cacheprovider", "-q", "--tb=short"]
    # A plain `tensorflow` may be installed; what is rewritten does not import it.
    command = [sys.executable, "-m", "pytest", *options, "--substrate", substrate, "."]
    environment = {**os.environ, "PYTEST_XDIST_WORKER": ""}
    done = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True)
    last = (done.stdout.splitlines() or [""])[-1]
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", last)
    assert passed is not None
    assert int(passed[1]) > 60, last
