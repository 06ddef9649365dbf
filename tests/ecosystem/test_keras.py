"""Keras on its JAX backend exports what jax2tf converts."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "docs/examples"


def test_keras_on_jax(tmp_path):
    """In a process of its own: Keras reads its backend once."""
    code = "import json, sys, keras_on_jax; print(json.dumps(keras_on_jax.main(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    accuracy, in_tensorflow, in_litert = json.loads(done.stdout.splitlines()[-1])
    assert accuracy > 0.9
    assert in_tensorflow < 1e-5
    assert in_litert < 1e-5
