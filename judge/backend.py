"""Builds the wheel of the judge: copies the repository's packages into src/jax2tf_judge.

The packages import each other as `harnesses`, `limitations` and `reports`, which are too common for
names at the top of an environment. The copies import each other as `jax2tf_judge.harnesses` and so
on. A source distribution holds the copies, from which the wheel is made without the repository.
"""

import re
import shutil
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the hooks that this module does not change

_HERE = Path(__file__).parent
_REPOSITORY = _HERE.parent
_SOURCE = _HERE / "src" / "jax2tf_judge"
_PACKAGES = ("harnesses", "limitations", "reports")
# Of reports: what is about this project's own tables, code or results.
_LEFT_OUT = ("__pycache__", "tables", "results", "benchmarks", "mutation", "planted")
_NAMES = "|".join(_PACKAGES)
# `from harnesses.cell import x`, `import reports`, and commands in messages and docstrings.
_IMPORT = re.compile(rf"^(\s*)(from|import) ({_NAMES})\b", re.MULTILINE)
_COMMAND = re.compile(rf"python -m ({_NAMES})\b")

_INIT = '''"""A conformance suite for converters from JAX."""

from jax2tf_judge.harnesses.harness.place import VERSION as __version__
from jax2tf_judge.harnesses.engine.converters import Converter
from jax2tf_judge.harnesses.engine.suite import Suite

__all__ = ["Converter", "Suite", "__version__"]
'''

_MAIN = '''"""`python -m jax2tf_judge run --impl my_module:MyConverter` and the other commands."""

import sys

from jax2tf_judge.harnesses.__main__ import main
from jax2tf_judge.harnesses.cell.pipes import exit_with

if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
'''


def _copy() -> None:
    """Writes src/jax2tf_judge anew; in a source distribution it is there already."""
    if not (_REPOSITORY / "harnesses").is_dir():
        return
    shutil.rmtree(_SOURCE, ignore_errors=True)
    for package in _PACKAGES:
        ignored = shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(_REPOSITORY / package, _SOURCE / package, ignore=ignored)
    for path in _SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        text = _IMPORT.sub(r"\1\2 jax2tf_judge.\3", text)
        path.write_text(_COMMAND.sub(r"python -m jax2tf_judge.\1", text), encoding="utf-8")
    (_SOURCE / "__init__.py").write_text(_INIT, encoding="utf-8")
    (_SOURCE / "__main__.py").write_text(_MAIN, encoding="utf-8")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook of PEP 517, with the packages copied."""
    _copy()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """The hook of PEP 517, with the packages copied."""
    _copy()
    return build_meta.build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """The hook of PEP 517, with the packages copied."""
    _copy()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def get_requires_for_build_wheel(config_settings=None):
    """The hook of PEP 517: what the build needs is read with the version, which the copies have."""
    _copy()
    return build_meta.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings=None):
    """As for a wheel."""
    _copy()
    return build_meta.get_requires_for_build_sdist(config_settings)
