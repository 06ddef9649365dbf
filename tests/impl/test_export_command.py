"""`python -m jax2tf export`."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jax2tf import __main__ as command

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def model(params, x, scale=1.0):
    return jnp.tanh(x @ params["w"]) * scale


def alone(x, y):
    return x + y


def broken(x):
    raise ZeroDivisionError("of the function's own")


class Namespace:
    inner = staticmethod(alone)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with parameters; gives status, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "models", sys.modules[__name__])
    np.savez("w.npz", w=W)

    def call(*arguments):
        try:
            status = command.main(["export", *arguments])
        except SystemExit as error:
            status = error.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_a_file(run):
    status, out, _ = run(
        *("models:model", "--params", "w.npz", "--input", "x=b,4:float32"),
        *("--input", "scale=:float32", "--to", "model.tflite", "--option", "quantize=float16"),
    )
    assert status == 0
    assert out.startswith("model.tflite: litert, ")
    for words in ("serving_default(scale: float32[], x: float32[b, 4])", "output: largest", "b=3"):
        assert words in out


def test_inputs_by_position_and_no_parameters(run):
    status, out, _ = run("models:Namespace.inner", "-i", "b", "-i", "b", "--to", "model")
    assert status == 0
    assert "serving_default(x: float32[b], y: float32[b])" in out
    assert tf.saved_model.load("model").serving_default([1.0], [2.0])["output"].numpy() == [3]


def test_options(run):
    arguments = ("models:alone", "-i", "b", "-i", "b", "--to", "folder")
    status, out, _ = run(*arguments, "--format", "savedmodel", "--no-verify", "--no-progress")
    assert (status, "not run" in out) == (0, True)
    status, _, err = run(*arguments)
    assert (status, "overwrite" in err) == (1, True)
    status, out, _ = run(*arguments, "--overwrite", "--constraint", "b >= 9", "--tolerance", "1e-6")
    assert (status, "b=12" in out) == (0, True)
    status, _, err = run(*arguments, "--overwrite", "--tolerance", "-1")
    assert (status, "tolerance should be a number that is not negative" in err) == (1, True)


@pytest.mark.parametrize("named", [True, False])
def test_representative_data(run, named):
    np.savez("samples.npz", x=np.random.default_rng(0).normal(size=(8, 2, 4)))
    status, out, _ = run(
        *("models:model", "--params", "w.npz", "-i", "x=b,4" if named else "b,4"),
        *("--to", "model.tflite", "--option", "quantize=int8", "--option", "integer_io=True"),
        *("--representative-data", "samples.npz"),
    )
    assert (status, "representative input 1" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["models", "--to", "m"], "should be given as MODULE:FUNCTION, got 'models'"),
        (["models:absent", "--to", "m"], "there is no 'absent' in models"),
        (["absent:f", "--to", "m"], "there is no module 'absent'; run this where"),
        (["models.absent:f", "--to", "m"], "there is no module 'models.absent'"),
        (["models:W", "--to", "m"], "fun should be a function, .* got ndarray"),
        (["models:alone", "-i", "x=b", "-i", "b", "--to", "m"], "all have names"),
        (["models:alone", "-i", "x=b", "-i", "x=b", "--to", "m"], "all have names"),
        (["models:alone", "-i", "z=b", "--to", "m"], "an entry for 'z'"),
        (["models:alone", "-i", "b:float33", "-i", "b", "--to", "m"], "float33"),
        (["models:alone", "-i", "b", "-i", "b", "--to", "m.h5"], "no format has the suffix"),
        (["models:alone", "--to", "m", "--option", "opset"], "should be NAME=VALUE, got 'opset'"),
        (["models:alone", "--to", "m", "--option", "opset=3"], "has no option 'opset'"),
        (["models:alone", "--to", "m", "--params", "absent.npz"], "no checkpoint absent.npz"),
    ],
)
def test_what_is_refused(run, tmp_path, arguments, words):
    status, _, err = run(*arguments)
    assert status == 1
    assert err.startswith("python -m jax2tf export: jax2tf")
    assert err.count("\n") == 1
    assert re.search(words, err)
    assert sorted(os.listdir(tmp_path)) == ["w.npz"]


def test_errors_of_the_function_keep_their_traceback(run):
    with pytest.raises(ZeroDivisionError):
        run("models:broken", "-i", "b", "--to", "m")


def test_what_argparse_refuses(run):
    assert run("models:alone")[0] == 2
    assert run("models:alone", "--to", "m", "--format", "coreml")[0] == 2
    status, out, _ = run("--help")
    assert (status, "x=b,224,224,3:float32" in out) == (0, True)


def test_as_a_program(tmp_path):
    (tmp_path / "net.py").write_text("def double(x):\n    return x * 2\n")
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, *["-m", "jax2tf", "export", "net:double", "-i", "x=b,2", "--to", "out"]],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "impl")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("out: savedmodel, ")
