"""The version, and what `import jax2tf` says where JAX or TensorFlow have moved what it needs."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

import pytest
from packaging.version import Version

import jax2tf
from jax2tf._src.api import versions

ROOT = pathlib.Path(__file__).parents[2]
CONSTRAINTS = ROOT / ".ci/constraints.txt"


def test_the_version_stands_in_one_place():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in pyproject["project"]
    source = pyproject["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert source == "jax2tf._src.api.versions.__version__"
    assert jax2tf.__version__ == versions.__version__


def test_the_changelog_begins_with_the_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == jax2tf.__version__


def rows_of_the_table():
    _, table, *_ = versions.table().split("\n\n")
    return {row.split()[0]: row for row in table.splitlines()[1:]}


def test_the_table_speaks_of_the_versions_that_are_pinned():
    pins = dict(re.findall(r"^([\w-]+)==(\d+\.\d+)", CONSTRAINTS.read_text(), flags=re.MULTILINE))
    pins["tensorflow"] = pins.pop("tensorflow-cpu")
    rows = rows_of_the_table()
    assert len(rows.keys() & pins.keys()) > 8
    for name in rows.keys() & pins.keys():
        tested = re.split(r"  +", rows[name])[2].split(" to ")
        first, last = (Version(version) for version in (tested[0], tested[-1]))
        assert first <= Version(pins[name]) <= last, rows[name]


def test_the_table_marks_what_is_newer_or_older_than_what_was_tested(monkeypatch):
    installed = {
        "onnxruntime": "1.99.1",
        "keras": "2.15.0",
        "numpy": "2.5.9",
        "jaxlib": "0.13.0rc1",
    }
    monkeypatch.setattr(versions, "_of_distribution", lambda name: installed.get(name, "-"))
    rows = rows_of_the_table()
    assert "1.99.1 (newer)" in rows["onnxruntime"]
    assert "2.15.0 (older)" in rows["keras"]
    assert "0.13.0rc1 (newer)" in rows["jaxlib"]
    assert sum("(" in row for row in rows.values()) == 3, rows


def test_the_table_says_how_to_install_what_is_missing(monkeypatch):
    """Its extras exist and bring the packages; Keras comes with TensorFlow."""
    monkeypatch.setattr(versions, "_of_distribution", lambda name: "-")
    *_, commands = versions.table().split("\n\n")
    assert commands.splitlines() == [
        "To install what is missing:",
        "    pip install 'jax2tf[tensorflow,litert,onnx,openvino,checkpoints]'",
        "    pip install --no-deps tensorflowjs",
    ]
    with monkeypatch.context() as without:
        without.setattr(versions, "_of_module", lambda name: "-")
        assert "    pip install 'jax2tf[litert-int8]'  # instead, without" in versions.table()
    monkeypatch.setattr(versions, "_of_distribution", lambda name: "1.0")
    assert "install what" not in versions.table()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    brought = {name: [re.split(r"\W*[>=<]", r)[0] for r in extras[name]] for name in extras}
    for name, (_, extra, _) in versions._OTHERS.items():
        if extra:
            by_another = {"keras": "tensorflow", "onnx": "onnx-ir"}
            assert by_another.get(name, name) in brought[extra], name


@pytest.mark.parametrize(
    "broken",
    [
        "sys.modules['jax._src.source_info_util'] = None; del jax._src.source_info_util",
        "import jax._src.interpreters.ad as ad; del ad.CustomVJPException",
    ],
)
def test_a_private_name_that_moved(broken):
    program = f"import sys, jax, tensorflow as tf\n{broken}\ntry:\n  import jax2tf\n"
    program += "except ImportError as error:\n  print(error, '|', jax.__version__, tf.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    text, _, versions = done.stdout.partition("|")
    jax_version, tf_version = versions.split()
    for words in (
        "tested with jax 0.10 to 0.12 and tensorflow 2.20 to 2.22",
        f"installed are jax {jax_version} and tensorflow {tf_version}",
        "What to do: install tested versions",
    ):
        assert words in text, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("command", [["-c", "import jax2tf"], ["-m", "jax2tf", "versions"]])
def test_without_jax_it_says_what_to_install(tmp_path, monkeypatch, command):
    hides = """
        import sys

        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "jax":
                    raise ModuleNotFoundError(f"No module named {name!r}", name="jax")

        sys.meta_path.insert(0, Hidden())
    """
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(hides))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT / 'impl'}")
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "jax2tf needs jax, which is not installed. What to do: install it" in last
    assert "pip install jax tensorflow" in last
    if command[0] == "-m":
        assert "Traceback" not in done.stderr
        (row,) = (row for row in done.stdout.splitlines() if row.startswith("jax "))
        assert row.split()[1] == "-", done.stdout
