"""What several tests of the implementation use."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

from tests.running import MODES


@pytest.fixture(params=MODES)
def mode(request) -> Callable[..., Callable[..., object]]:
    """How TensorFlow runs what convert made."""
    return MODES[request.param]


@pytest.fixture(scope="session")
def without_jax() -> Callable[..., list[str]]:
    """Gives the lines that code prints in a process in which importing jax fails."""
    return _without_jax


def _without_jax(code: str, *arguments) -> list[str]:
    program = "import sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None\n"
    program += "import numpy as np, tensorflow as tf\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
