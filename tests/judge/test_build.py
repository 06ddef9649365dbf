"""What builds and describes the releases says the same."""

from __future__ import annotations

import pathlib
import re
import tomllib

from jax2tf._src.api import versions

ROOT = pathlib.Path(__file__).parents[2]


def test_the_source_archive_of_the_judge_has_its_backend():
    """setuptools leaves a backend out that stands beside pyproject.toml, and no wheel is built."""
    folder = ROOT / "judge"
    system = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]
    file = f"{system['build-backend']}.py"
    assert (folder / file).is_file()
    assert f"include {file}" in (folder / "MANIFEST.in").read_text().splitlines()


def test_the_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [versions.__version__]
