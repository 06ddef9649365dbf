"""What `import jax2tf` says where JAX or TensorFlow have moved what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "broken",
    [
        "sys.modules['jax._src.source_info_util'] = None",
        "import jax._src.interpreters.ad as ad; del ad.CustomVJPException",
    ],
)
def test_a_private_name_that_moved(broken):
    program = f"import sys, jax, tensorflow as tf\n{broken}\ntry:\n  import jax2tf\n"
    program += "except ImportError as error:\n  print(error, '|', jax.__version__, tf.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    text, _, versions = done.stdout.partition("|")
    jax_version, tf_version = versions.split()
    for words in (
        "tested with jax 0.10 to 0.12 and tensorflow 2.20 to 2.22",
        f"installed are jax {jax_version} and tensorflow {tf_version}",
        "What to do: install tested versions",
    ):
        assert words in text, done.stdout + done.stderr[-2000:]
