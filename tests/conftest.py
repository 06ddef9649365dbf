"""Takes the engine's hooks, so that the matrix runs with the other tests."""

from harnesses.engine.plugin import pytest_addoption, pytest_configure, pytest_unconfigure

__all__ = ["pytest_addoption", "pytest_configure", "pytest_unconfigure"]
