"""JAX2TF_WRITE_OPS=0: TensorFlow makes all ops of a process."""

import os
import subprocess
import sys

import pytest

# Prints the number of ops that were written.
_OPS = """
import tensorflow as tf
import jax2tf
from jax2tf._src.ops import writing
with writing.counted() as counts:
    tf.function(jax2tf.convert(lambda x: x * 2 + 1), autograph=False).get_concrete_function(1.0)
print(sum(n for (_, is_written), n in counts.items() if is_written))
"""


def _run(switch, *arguments):
    environment = {**os.environ, "JAX2TF_WRITE_OPS": switch}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_the_variable_switches_the_writer():
    written, unwritten = (_run(switch, "-c", _OPS) for switch in ("1", "0"))
    assert int(written.stdout) > 0, written.stderr
    assert int(unwritten.stdout) == 0, unwritten.stderr


@pytest.mark.once
def test_300_harnesses_pass_without_the_writer(tmp_path):
    """Mismatches that the ledger does not declare are red, and so the status is 1."""
    results = tmp_path / "rows.jsonl"
    options = ("--mode=graph", "--sample=300", "-n=0", f"--results={results}")
    run = _run("0", "-m", "harnesses", "run", *options)
    assert run.returncode == 0, run.stdout[-2000:]
    assert "300 ran" in run.stdout
