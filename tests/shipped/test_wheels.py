"""Libraries written against TensorFlow, shipped as wheels for NumPy and JAX.

`tox -e shipped` runs this where tf_substrates is installed from its own wheel and TensorFlow is
not: what NumPy and JAX need, pytest, and setuptools to build with.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

import tf_substrates

LIBRARY = pathlib.Path(__file__).parent / "library"
SUBSTRATES = ("numpy", "jax")
# What its author writes beside a rewritten package.
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "vanilla-pricing-{0}"
version = "1.2.0"
dependencies = ["jax2tf"]

[tool.setuptools.packages.find]
include = ["vanilla_pricing_{0}*", "logistic_{0}*"]
"""
# How many tests are in each wheel: derivatives are left out on NumPy.
TESTS = {"numpy": 15, "jax": 18}


def python(*arguments: str, folder: pathlib.Path, path: pathlib.Path | None = None) -> str:
    """What a process prints that has to succeed, with a folder on the path of modules."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables["JAX_ENABLE_X64"] = "1"
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def rewritten(substrate: str, out: pathlib.Path) -> dict[pathlib.Path, bytes]:
    """The files that the command writes."""
    command = ["-m", "tf_substrates", "rewrite", "--substrate", substrate, "--out", str(out)]
    python(*command, folder=LIBRARY)
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}


@pytest.fixture(scope="module", params=SUBSTRATES)
def shipped(request, tmp_path_factory):
    """The substrate, and the folder into which the libraries' wheel for it is installed."""
    substrate = request.param
    folder = tmp_path_factory.mktemp(substrate)
    source, wheels, target = (folder / name for name in ("source", "wheels", "installed"))
    rewritten(substrate, source)
    (source / "pyproject.toml").write_text(PROJECT.format(substrate))
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    alone = ("--no-deps", "--no-index")
    build = ("--no-build-isolation", "--wheel-dir", str(wheels), str(source))
    python(*pip, "wheel", *alone, *build, folder=folder)
    (wheel,) = wheels.iterdir()
    python(*pip, "install", *alone, "--target", str(target), str(wheel), folder=folder)
    return substrate, target


def test_tensorflow_is_not_here(shipped):
    _, target = shipped
    for name in ("tensorflow", "keras", "tf_keras"):
        assert importlib.util.find_spec(name) is None
        found = f"import importlib.util; print(importlib.util.find_spec({name!r}))"
        assert python("-c", found, folder=target, path=target) == "None\n"
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    assert not {n for n in installed if n.startswith(("tensorflow", "keras", "tf-", "tf_"))}
    assert {"numpy", "jax", "jax2tf"} <= installed


def test_what_is_tested_is_the_wheel_of_tf_substrates():
    installed = pathlib.Path(sysconfig.get_path("purelib"))
    assert pathlib.Path(tf_substrates.__file__).is_relative_to(installed)


def test_the_tests_of_the_libraries_pass(shipped):
    substrate, target = shipped
    packages = [f"vanilla_pricing_{substrate}", f"logistic_{substrate}"]
    options = ["-p", "no:cacheprovider", "-q", "--import-mode=importlib", "--pyargs", *packages]
    lines = python("-m", "pytest", *options, folder=target, path=target).splitlines()
    assert re.match(rf"{TESTS[substrate]} passed in", lines[-1]), "\n".join(lines)


def test_numpy_alone_is_imported_for_numpy(shipped):
    substrate, target = shipped
    package = f"vanilla_pricing_{substrate}"
    program = (
        f"import sys, {package} as lib, logistic_{substrate} as logistic\n"
        "logistic.Logistic(0.0, 1.0).sample([2], seed=1)\n"
        "print('%.12f' % lib.option_price(0.2, 100.0, 1.0, 100.0, dtype='float64'))\n"
        "print(sorted({'jax', 'tensorflow'} & set(sys.modules)))"
    )
    found = python("-c", program, folder=target, path=target).splitlines()
    assert found == ["7.965567455406", "['jax']" if substrate == "jax" else "[]"]


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_rewriting_again_gives_the_same_bytes(substrate, tmp_path):
    first, second = (rewritten(substrate, tmp_path / name) for name in ("first", "second"))
    assert first == second
    assert pathlib.Path(f"vanilla_pricing_{substrate}", "greeks.py") in first or (
        substrate == "numpy"
    )
