"""Takes the engine's hooks, so that the matrix runs with the other tests; hypothesis profiles."""

import hypothesis

from harnesses.engine.plugin import pytest_addoption, pytest_configure, pytest_unconfigure

__all__ = ["pytest_addoption", "pytest_configure", "pytest_unconfigure"]

# The tests try the same examples every time, the fuzz job many new ones. A deadline would measure
# how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=20_000)
hypothesis.settings.load_profile("tests")
