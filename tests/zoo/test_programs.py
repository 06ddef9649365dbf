"""Programs of JAX's libraries, with small random weights, in every mode: `tox run -e zoo`."""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from packaging.requirements import Requirement

from tests.zoo import programs
from tests.zoo.modes import LAWS, PROGRAM_MODES
from tests.zoo.program import PROGRAMS, Program

FIELDS = [found.name for found in pkgutil.iter_modules(programs.__path__)]
for field in FIELDS:
    importlib.import_module(f"{programs.__name__}.{field}")


def _extra() -> list[Requirement]:
    """What `tox run -e zoo` installs; a marker says which Python a library needs."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    return list(map(Requirement, pyproject["project"]["optional-dependencies"]["zoo"]))


def _here() -> list[Program]:
    """All programs but those of libraries that the extra leaves out on this Python."""
    left_out = {r.name for r in _extra() if r.marker is not None and not r.marker.evaluate()}
    return [p for p in PROGRAMS.values() if p.library not in left_out]


def _cells() -> Iterator[object]:
    for program in _here():
        for mode in PROGRAM_MODES:
            if mode != "polymorphic" or program.batch is not None:
                # A worker runs all modes of a program, which share JAX's results.
                group = pytest.mark.xdist_group(str(program))
                yield pytest.param(program, mode, id=f"{program}-{mode}", marks=group)


@pytest.mark.parametrize(("program", "mode"), _cells())
def test_a_program_gives_what_jax_gives(program, mode):
    with jax.enable_x64(program.x64):
        if mode not in program.fails:
            PROGRAM_MODES[mode](program)
            return
        claim = program.fails[mode]
        if claim.whose == "jax":
            with pytest.raises(Exception, match=claim.message) as raised:
                LAWS[mode](program)
            assert claim.error in _classes(raised.value)
        with pytest.raises(Exception, match=claim.message) as raised:
            PROGRAM_MODES[mode](program)
        assert claim.whose == "jax" or claim.error in _classes(raised.value)


def _classes(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def test_the_extra_installs_what_the_programs_need():
    assert {p.library for p in PROGRAMS.values()} - {"jax"} == {r.name for r in _extra()}


def test_the_zoo_has_forty_programs_of_fifteen_libraries_in_six_fields():
    assert len(_here()) >= 40
    assert len({p.library for p in _here()}) >= 15
    assert len(FIELDS) >= 6
