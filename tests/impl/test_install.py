"""`jax2tf.install` and `python -m jax2tf`: JAX's own jax2tf is replaced, and put back exactly."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import jax
import jax.experimental
import jax.numpy as jnp
import pytest

import jax2tf
from jax2tf import __main__ as command

NAME = "jax.experimental.jax2tf"
MODULES = (NAME, f"{NAME}.jax2tf", f"{NAME}.call_tf")
ORIGINAL = {name: importlib.import_module(name) for name in MODULES}


def state():
    """All that `install` may change."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith(NAME)}
    return modules, vars(jax.experimental).get("jax2tf")


@pytest.fixture
def before():
    """The state without anything installed, to which a test returns."""
    jax2tf.uninstall()
    assert state() == (ORIGINAL, ORIGINAL[NAME])
    yield state()
    jax2tf.uninstall()
    assert state() == (ORIGINAL, ORIGINAL[NAME])


def public(module):
    """The names that a module defines, or takes from elsewhere to give."""
    return {name for name in dir(module) if not name.startswith("_")}


def test_every_way_to_import_it(before):
    jax2tf.install()
    import jax.experimental.jax2tf as by_attribute
    from jax.experimental import jax2tf as by_name
    from jax.experimental.jax2tf import call_tf, convert
    from jax.experimental.jax2tf.call_tf import call_tf as of_module
    from jax.experimental.jax2tf.jax2tf import PolyShape, dtype_of_val

    assert by_attribute is by_name is jax.experimental.jax2tf is sys.modules[NAME]
    assert (convert, call_tf, of_module) == (jax2tf.convert, jax2tf.call_tf, jax2tf.call_tf)
    assert (PolyShape, dtype_of_val) == (jax2tf.PolyShape, jax2tf.dtype_of_val)
    assert by_name.convert(jnp.sin)(0.0) == 0
    assert importlib.util.find_spec(NAME).name == NAME


def test_uninstall_puts_everything_back(before):
    jax2tf.install()
    assert state() != before
    jax2tf.uninstall()
    assert state() == before
    from jax.experimental import jax2tf as original

    assert original.convert is not jax2tf.convert


def test_what_stood_there_was_nothing(before, monkeypatch):
    """Where JAX has no jax2tf any more, or nobody imported it."""
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(jax.experimental, "jax2tf")
    jax2tf.install()
    assert jax.experimental.jax2tf.convert is jax2tf.convert
    jax2tf.uninstall()
    assert state() == ({}, None)
    assert "jax2tf" not in vars(jax.experimental)
    monkeypatch.undo()


def test_again_changes_nothing(before):
    jax2tf.uninstall()
    assert state() == before
    jax2tf.install()
    installed = state()
    jax2tf.install()
    assert state() == installed
    jax2tf.uninstall()
    assert state() == before


def test_from_many_threads(before):
    errors = []

    def toggle():
        try:
            for _ in range(50):
                jax2tf.install()
                module = importlib.import_module(NAME)
                assert callable(module.convert)
                jax2tf.uninstall()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=toggle) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert state() == before


def test_the_package_has_every_public_name(before):
    names = public(ORIGINAL[NAME])
    assert {"convert", "call_tf", "PolyShape"} <= names
    jax2tf.install()
    assert names <= public(sys.modules[NAME])
    assert public(jax2tf) >= public(sys.modules[NAME]) - {"jax2tf"}


@pytest.mark.parametrize("name", MODULES[1:])
def test_a_module_has_every_name_or_says_what_to_use(before, name):
    made_here = {
        key
        for key in public(ORIGINAL[name])
        if str(getattr(getattr(ORIGINAL[name], key), "__module__", "")).startswith(NAME)
    }
    jax2tf.install()
    module = sys.modules[name]
    assert made_here & public(module)
    for key in made_here - public(module):
        with pytest.raises(AttributeError, match=rf"{name}.{key}: .*What to do: .+uninstall\(\)"):
            getattr(module, key)
    with pytest.raises(AttributeError, match="leave native_serialization and enable_xla out"):
        sys.modules[NAME].DEFAULT_NATIVE_SERIALIZATION  # noqa: B018


@pytest.mark.parametrize("function", ["convert", "call_tf", "eval_polymorphic_shape"])
def test_every_parameter_of_the_original(function):
    """By the same name, and by position where it can be given so."""
    theirs, ours = (
        inspect.signature(getattr(module, function)).parameters
        for module in (ORIGINAL[NAME], jax2tf)
    )
    assert set(theirs) <= set(ours)
    for index, (name, parameter) in enumerate(theirs.items()):
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert list(ours)[index] == name
            assert ours[name].kind is parameter.kind


def test_modules_of_ours_are_not_imported_twice(before):
    jax2tf.install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{NAME}.convert")


def test_versions(capsys):
    assert command.main(["versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"jax2tf {jax2tf.__version__} on Python ")
    (row,) = (line.split() for line in lines if line.startswith("jax "))
    assert row[1] == jax.__version__


@pytest.mark.parametrize("arguments", [["run"], ["run", "absent.py", "--flag"], []])
def test_commands_that_say_nothing(arguments, capsys):
    before = state()
    try:
        status = command.main(arguments)
    except SystemExit as error:
        status = error.code
    jax2tf.uninstall()
    assert status == 2
    assert capsys.readouterr().err
    assert state() == before


def test_run(tmp_path):
    """A script finds it before anything else; a module too, and both get their arguments."""
    program = textwrap.dedent("""
        import sys
        from jax.experimental import jax2tf
        import beside
        print(__name__, jax2tf.Module.__module__, *sys.argv[1:], beside.WORD, sys.path[0])
        if "module" not in sys.argv:
            import runpy
            import jax2tf.__main__ as command
            command.main(["run", "-m", "script", "module", "-m"])
            sys.exit(3)
        """)
    (tmp_path / "script.py").write_text(program)
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    elsewhere = pathlib.Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "jax2tf", "run", tmp_path / "script.py", "--flag", "-m", "x"],
        capture_output=True,
        text=True,
        check=False,
        cwd=elsewhere,
    )
    assert done.returncode == 3, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        f"__main__ jax2tf._src.api.module --flag -m x beside {tmp_path}",
        f"__main__ jax2tf._src.api.module module -m beside {tmp_path}",
    ]


def test_a_script_finds_first_what_lies_beside_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "script.py").write_text("import sys\nprint(sys.path[0], sys.path[-1])")
    monkeypatch.setattr(sys, "path", ["here", *sys.path, "last"])
    monkeypatch.setattr(sys, "argv", ["jax2tf"])
    assert command.main(["run", str(tmp_path / "script.py")]) == 0
    jax2tf.uninstall()
    assert capsys.readouterr().out.split() == [str(tmp_path), "last"]


def test_keras_on_jax_exports(tmp_path):
    """A strided convolution over open sizes, which JAX's own jax2tf does not convert."""
    program = textwrap.dedent("""
        import sys
        import keras
        import numpy as np
        import tensorflow as tf

        assert keras.config.backend() == "jax"
        images = keras.Input([None, None, 3])
        x = keras.layers.Conv2D(4, 3, strides=2, padding="same", activation="gelu")(images)
        x = keras.layers.GlobalAveragePooling2D()(keras.layers.BatchNormalization()(x))
        model = keras.Model(images, keras.layers.Dense(2)(x))
        x = np.linspace(-1, 1, 3 * 8 * 9 * 3, dtype=np.float32).reshape(3, 8, 9, 3)
        options = {"native": {}, "ops": {"native_serialization": False, "enable_xla": False}}
        for name, kwargs in options.items():
            folder = f"{sys.argv[1]}/{name}"
            model.export(folder, verbose=False, jax2tf_kwargs=kwargs)
            restored = tf.saved_model.load(folder)
            np.testing.assert_allclose(restored.serve(x), model(x), rtol=1e-4, atol=1e-5)
            functions = restored.serve.concrete_functions
            graph = functions[0].graph.as_graph_def()
            nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
            print(name, sorted({node.op for node in nodes if node.op.startswith("Xla")}))
        """)
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "jax2tf", "run", tmp_path / "program.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["native ['XlaCallModule']", "ops []"]
