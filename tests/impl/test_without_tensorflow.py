"""`import jax2tf` in a process that has no TensorFlow, and what its functions say there."""

from __future__ import annotations

import inspect
import pathlib
import subprocess
import sys
import textwrap

import pytest

import jax2tf

PACKAGE = pathlib.Path(jax2tf.__file__).parent
# The modules that make classes of TensorFlow's or Keras', or import it for others.
NEED_IT = (
    *("api.keras", "api.keras_layer", "api.module", "dtensor.convert", "dtensor.placing"),
    *("export.onnx.functions", "export.program"),
)


def in_process_without_it(program: str) -> list[str]:
    """The lines that a program prints where `import tensorflow` fails."""
    program = "import sys; sys.modules['tensorflow'] = None\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_every_public_name_is_there():
    lines = in_process_without_it("""
        import jax2tf
        from jax2tf import *
        for name in jax2tf.__all__:
            print(name, isinstance(getattr(jax2tf, name), type), name in globals())
    """)
    expected = [f"{name} {isinstance(getattr(jax2tf, name), type)} True" for name in jax2tf.__all__]
    assert lines == expected


def test_signatures_and_docstrings_are_there():
    names = ["call_tf", "convert", "explain", "profile"]
    lines = in_process_without_it(f"""
        import inspect, jax2tf
        for name in {names}:
            function = getattr(jax2tf, name)
            print(name, inspect.signature(function), len(function.__doc__))
    """)
    expected = []
    for name in names:
        function = getattr(jax2tf, name)
        expected.append(f"{name} {inspect.signature(function)} {len(function.__doc__)}")
    assert lines == expected


def test_a_call_says_what_to_install():
    calls = [
        *("call_tf", "convert", "dtype_of_val", "eval_polymorphic_shape", "explain"),
        *("profile", "split_to_logical_devices", "Module", "keras.Layer", "dtensor.convert"),
        "dtensor.variables",
    ]
    lines = in_process_without_it(f"""
        import operator, jax2tf
        for name in {calls}:
            try:
                operator.attrgetter(name)(jax2tf)(print)
            except jax2tf.MissingPackageError as error:
                assert isinstance(error, ImportError)
                print(error.name, error)
    """)
    assert lines == [
        f"tensorflow jax2tf.{name} needs the package tensorflow, which is not installed. "
        "What to do: install it with pip install tensorflow, or tensorflow-cpu"
        for name in calls
    ]


def test_a_subclass_can_be_defined():
    assert in_process_without_it("""
        import jax2tf
        class Mine(jax2tf.Module):
            pass
        try:
            Mine(print)
        except jax2tf.MissingPackageError as error:
            print(str(error)[:25])
    """) == ["jax2tf.Module needs the p"]


def test_modules_can_be_imported():
    """Rules, passes, targets and the writer of ONNX need no TensorFlow."""
    modules = sorted(
        ".".join(path.relative_to(PACKAGE / "_src").with_suffix("").parts)
        for path in (PACKAGE / "_src").rglob("*.py")
        if path.stem != "__init__"
    )
    modules = [module for module in modules if module not in NEED_IT]
    assert "lowering.rules.linalg" in modules
    assert "api.convert" in modules
    lines = in_process_without_it(f"""
        import importlib
        for module in {modules}:
            try:
                importlib.import_module("jax2tf._src." + module)
            except ImportError as error:
                print(module, error)
        print("done", sys.modules["tensorflow"])
    """)
    assert lines == ["done None"]


def test_an_op_says_what_to_install():
    lines = in_process_without_it("""
        from jax2tf import MissingPackageError
        from jax2tf._src import compat, ops
        for make in (
            lambda: ops.reshape([1.0], [1]),
            lambda: ops.raw.Cos(x=1.0),
            lambda: ops.xla.xla_sort(1.0),
            compat.graphs.writable_graph,
        ):
            try:
                make()
            except MissingPackageError as error:
                print(str(error)[:45])
    """)
    assert lines == ["This part of jax2tf needs the package tensorfl"[:45]] * 4


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["versions"], 0, ""),
        (["explain", "math:sin"], 1, "python -m jax2tf explain needs the package tensorflow"),
        (
            ["export", "jax.numpy:sin", "--input", "x=3", "--to", "f.xml"],
            1,
            "the format 'openvino' needs the package tensorflow",
        ),
        (["export", "jax.nn:softplus", "--input", "x=b,3", "--to", "f.onnx"], 0, ""),
    ],
)
def test_the_command_line(tmp_path, monkeypatch, arguments, code, said):
    hides = """
        import sys

        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "tensorflow":
                    raise ModuleNotFoundError(f"No module named {name!r}", name="tensorflow")

        sys.meta_path.insert(0, Hidden())
    """
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(hides))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{PACKAGE.parent}")
    command = [sys.executable, "-m", "jax2tf", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code:
        assert said in done.stderr
        assert "What to do: install it with pip install tensorflow" in done.stderr
    elif arguments == ["versions"]:
        (row,) = (row for row in done.stdout.splitlines() if row.startswith("tensorflow "))
        assert row.split()[1] == "-"
