"""Takes the engine's hooks, so that the matrix runs with the other tests; hypothesis profiles."""

import random

import hypothesis
import keras
import pytest

from harnesses.engine.plugin import pytest_addoption, pytest_configure, pytest_unconfigure

__all__ = ["pytest_addoption", "pytest_configure", "pytest_unconfigure"]

# The tests try the same examples every time, the fuzz job many new ones, in four parts: TensorFlow
# keeps what it compiles, 7 GB of 5,000 programs. A deadline would measure how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5_000)
hypothesis.settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Chooses the seed of a fuzz job, before Hypothesis reads it: the workers get the same one."""
    if config.option.hypothesis_profile == "fuzz" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.getrandbits(32))


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Layers of Keras draw the same first weights in every run: a tolerance holds for these."""
    keras.utils.set_random_seed(0)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The seed, by which `--hypothesis-seed` repeats a fuzz job."""
    seed = config.option.hypothesis_seed
    return None if seed is None else f"--hypothesis-seed={seed}"
