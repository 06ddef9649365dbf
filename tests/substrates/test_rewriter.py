"""The rewriter: what it replaces, that lines stay, and whole packages by hook and by command."""

from __future__ import annotations

import ast
import importlib
import os
import pathlib
import subprocess
import sys
import textwrap
import traceback

import jax
import numpy as np
import pytest

import tf_substrates
from tests.substrates.comparing import tf_of
from tf_substrates.__main__ import main
from tf_substrates.rewriter import packages
from tf_substrates.rewriter.edits import as_text, as_tree
from tf_substrates.rewriter.places import Substrate
from tf_substrates.rewriter.rules import edits_of

JAX = Substrate("jax", modules={"lib": "lib_jax"}, omitted=frozenset({"lib.sgd"}))

# What an author writes, and what it becomes on JAX in the package `lib`.
REWRITES = [
    ("import tensorflow as tf", "import tf_substrates.jax.tf as tf"),
    ("import tensorflow.compat.v2 as tf", "import tf_substrates.jax.tf as tf"),
    ("import tensorflow.compat.v1 as tf1", "import tf_substrates.jax.tf.compat.v1 as tf1"),
    ("import tensorflow", "import tf_substrates.jax.tf as tensorflow"),
    (
        "import tensorflow.math",
        "import tf_substrates.jax.tf.math; import tf_substrates.jax.tf as tensorflow",
    ),
    ("from tensorflow import math as m", "from tf_substrates.jax.tf import math as m"),
    ("from tensorflow.compat import v2 as tf", "from tf_substrates.jax import tf as tf"),
    (
        "from tensorflow.linalg import diag, eye",
        "from tf_substrates.jax.tf.linalg import diag, eye",
    ),
    ("import lib.a.b as b", "import lib_jax.a.b as b"),
    ("import lib", "import lib_jax as lib"),
    ("import lib.a", "import lib_jax.a; import lib_jax as lib"),
    ("from lib import a, b as c", "from lib_jax import a, b as c"),
    ("from lib.a import f", "from lib_jax.a import f"),
    ("from . import a", "from . import a"),
    ("from . import a, sgd", "from . import a"),
    ("from .sgd import f", "pass"),
    ("from lib import sgd", "pass"),
    (
        "import numpy as np, tensorflow as tf",
        "import numpy as np; import tf_substrates.jax.tf as tf",
    ),
    ("import numpy as np", "import numpy as np"),
    ("import tensorflow_probability as tfp", "import tensorflow_probability as tfp"),
    ("import libx", "import libx"),
    ("JAX_MODE = False", "JAX_MODE = True"),
    ("NUMPY_MODE = False", "NUMPY_MODE = False"),
    ("load('lib.a.b')", "load('lib_jax.a.b')"),
    ("load('lib')", "load('lib')"),
    ("'the words of lib.a are not a name'", "'the words of lib.a are not a name'"),
    ("def f():\n  import tensorflow as tf", "def f():\n  import tf_substrates.jax.tf as tf"),
    (
        "try:\n  from lib import a\nexcept ImportError:\n  a = None",
        "try:\n  from lib_jax import a\nexcept ImportError:\n  a = None",
    ),
    (
        "from lib.sgd import f\nfrom lib.a import g\n__all__ = ['f', 'g']",
        "pass\nfrom lib_jax.a import g\n__all__ = ['g']",
    ),
]

IMPORT = "from tf_substrates.jax.tensor_attributes import as_tensorflow as _as_tensorflow"
# Attributes of shapes, dtypes and tensors. {i} is the import, {t} the function.
MEMBERS = [
    ("y = x.shape.rank", "{i}; y = {t}(x.shape).rank"),
    ("y = f(x).shape.as_list()[0]", "{i}; y = {t}(f(x).shape).as_list()[0]"),
    ("'doc'\ny = d.as_numpy_dtype(1)", "'doc'\n{i}; y = {t}(d).as_numpy_dtype(1)"),
    (
        "y = a.shape.concatenate(b.shape.dims).rank(c.numpy())",
        "{i}; y = {t}(a.shape).concatenate({t}(b.shape).dims).rank({t}(c).numpy())",
    ),
    ("y = x.get_shape().as_list()", "{i}; y = {t}({t}(x).get_shape()).as_list()"),
    ("y = x.dtype.max", "{i}; y = {t}(x.dtype).max"),
    ("y = x.max", "y = x.max"),
    ("y = x.shape + [1]", "{s}; y = _as_shape(x.shape) + [1]"),
    ("y = [1] + x.shape[1:] + [2]", "{s}; y = [1] + _as_shape(x.shape[1:]) + [2]"),
    ("y = batch + [None]", "{s}; y = _as_shape(batch) + [None]"),
    ("y = x.shape[:-1].rank", "{i}; y = {t}(x.shape[:-1]).rank"),
    (
        "ok = isinstance(x, (tf.Tensor, int))",
        "{c}; ok = isinstance(x, (_as_classes(tf.Tensor), int))",
    ),
    ("y = batch + (1,)", "y = batch + (1,)"),
    ("y = x.shape[0] + 1", "y = x.shape[0] + 1"),
    ("y = shape_x.ndims", "{i}; y = {t}(shape_x).ndims"),
    ("y = shaped.rank", "y = shaped.rank"),
    ("y = tree.rank", "y = tree.rank"),
    ("x.shape.rank = 1", "x.shape.rank = 1"),
    ("import jax.numpy\ny = jax.numpy.ref", "{i}; import jax.numpy\ny = {t}(jax.numpy).ref"),
    ("y = self.numpy()", "y = self.numpy()"),
    ("def f(x):\n  return x.numpy()\n", "def f(x):\n  return {t}(x).numpy()\n{i}\n"),
    ("'doc'\ndef f(x): return x.numpy()", "'doc'; {i}\ndef f(x): return {t}(x).numpy()"),
    (
        "import tensorflow as tf\ny = f'{x.shape.rank:2} of {x}'",
        "{i}; import tf_substrates.jax.tf as tf\ny = f'{{t}(x.shape).rank:2} of {x}'",
    ),
    (
        "y = (x\n  .shape\n  .rank)",
        "{i}; y = ({t}(x\n  .shape)\n  .rank)",
    ),
]


@pytest.mark.parametrize(("source", "expected"), MEMBERS, ids=[s for s, _ in MEMBERS])
def test_attributes_are_read_of_what_has_them(source, expected):
    edits = edits_of(source, JAX, "lib")
    expected = expected.replace("{i}", IMPORT).replace("{t}", "_as_tensorflow")
    expected = expected.replace("{s}", IMPORT.replace("as_tensorflow", "as_shape"))
    expected = expected.replace("{c}", IMPORT.replace("as_tensorflow", "as_classes"))
    assert as_text(source, edits) == expected
    assert ast.dump(as_tree(source, edits)) == ast.dump(ast.parse(expected))


@pytest.mark.parametrize(("source", "expected"), REWRITES, ids=[s for s, _ in REWRITES])
def test_what_is_replaced(source, expected):
    assert as_text(source, edits_of(source, JAX, package="lib")) == expected


SEVERAL_LINES = textwrap.dedent(
    '''
    """Über Nichts: the module lib.a."""
    from lib.a import (
        f,
        g,  # a comment
    )
    é = "lib.a"; x = 1 / 0
    name = ("lib."
            "a.b"); y = 1
    '''
)


def test_lines_stay_and_the_tree_is_that_of_the_text():
    edits = edits_of(SEVERAL_LINES, JAX, "lib")
    text, tree = as_text(SEVERAL_LINES, edits), as_tree(SEVERAL_LINES, edits)
    assert text.count("\n") == SEVERAL_LINES.count("\n")
    of_text = ast.parse(text)
    # Where breaks were kept there stands an empty tuple more.
    of_text.body = [
        n for n in of_text.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Tuple))
    ]
    assert ast.dump(tree) == ast.dump(of_text)
    assert "lib_jax.a.b" in text
    assert '"""Über Nichts: the module lib.a."""' in text


def test_columns_stay_in_the_tree():
    tree = as_tree(SEVERAL_LINES, edits_of(SEVERAL_LINES, JAX, "lib"))
    authors = ast.parse(SEVERAL_LINES)
    division = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp)]
    original = [n for n in ast.walk(authors) if isinstance(n, ast.BinOp)]
    place = [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) for n in division]
    assert place == [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) for n in original]


PACKAGE = {
    "__init__.py": """
        from tiny_lib import shapes
        from tiny_lib.prices import price
        from tiny_lib.training import fit

        __all__ = ["fit", "price", "shapes"]
        """,
    "prices.py": """
        import tensorflow.compat.v2 as tf
        from tiny_lib.shapes import flat

        JAX_MODE = False


        def price(spot, strike):
          return tf.maximum(flat(spot) - strike, 0.)


        def where():
          return "jax" if JAX_MODE else "elsewhere"


        def fails():
          return tf.reshape([1., 2.], [3])


        def lacks():
          import tensorflow as lazily
          return lazily.math.sobol_sample(2, 3)
        """,
    "shapes.py": """
        import tensorflow as tf

        def flat(x):
          x = tf.convert_to_tensor(x)
          return tf.reshape(x, tf.concat([[-1], tf.shape(x)[1:]], axis=0))
        """,
    "training.py": """
        import tensorflow as tf
        raise ImportError("not on a substrate")
        """,
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "source" / "tiny_lib"
    folder.mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / name).write_text(textwrap.dedent(text))
    (folder / "data.txt").write_text("7\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder
    for name in [n for n in sys.modules if "tiny_lib" in n]:
        del sys.modules[name]
    sys.meta_path[:] = [
        f for f in sys.meta_path if getattr(f, "prefix", "") != "tf_substrates.on_jax"
    ]
    if on_jax := sys.modules.get("tf_substrates.on_jax"):
        vars(on_jax).pop("tiny_lib", None)


def test_the_hook(package, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    import tf_substrates.on_jax

    tf_substrates.install("jax", ["tiny_lib"], omit=["tiny_lib.training"])
    from tf_substrates.on_jax.tiny_lib import prices

    from tf_substrates.on_jax import tiny_lib

    assert prices.where() == "jax"
    assert tiny_lib.price([1.0, 3.0], 2.0).tolist() == [0.0, 1.0]
    assert tiny_lib.__all__ == ["price", "shapes"]
    assert list(package.glob("__pycache__/*opt-jax*.pyc"))
    with pytest.raises(Exception, match="Input to reshape") as caught:
        prices.fails()
    frame = traceback.extract_tb(caught.value.__traceback__)[1]
    assert pathlib.Path(frame.filename) == package / "prices.py"
    assert frame.line == "return tf.reshape([1., 2.], [3])"
    with pytest.raises(AttributeError, match=r"tf.math.sobol_sample is TensorFlow's and not yet"):
        prices.lacks()


def test_a_second_import_reads_bytecode_and_no_rules(package, tmp_path):
    program = (
        "import sys, tf_substrates; tf_substrates.install('jax', ['tiny_lib']);"
        "from tf_substrates.on_jax.tiny_lib import shapes;"
        "print(*sorted({'ast', 'tf_substrates.rewriter.rules'} & set(sys.modules)))"
    )
    # The package that is imported is without what imports `tf`, which JAX's own modules are.
    (package / "__init__.py").write_text("")
    (package / "shapes.py").write_text("import tiny_lib\n")
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=package.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert printed == ["ast tf_substrates.rewriter.rules", ""]


def test_a_package_that_is_not_installed_by_the_hook():
    from tf_substrates import on_numpy

    with pytest.raises(AttributeError, match=r'install\("numpy", \[\'nowhere\'\]\)'):
        on_numpy.nowhere  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="no package 'nowhere_at_all'"):
        tf_substrates.install("numpy", ["nowhere_at_all"])
    with pytest.raises(TypeError, match="list of names"):
        tf_substrates.install("numpy", "json")
    with pytest.raises(ValueError, match="'numpy' and 'jax', not 'torch'"):
        tf_substrates.install("torch", ["json"])


def bytes_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("substrate", ["numpy", "jax"])
def test_a_written_package_runs_alone_and_again_has_the_same_bytes(package, tmp_path, substrate):
    out = tmp_path / "out"
    written = packages.write(
        [packages.planned("tiny_lib", substrate, out, omit=["tiny_lib.training"])]
    )[0]
    first = bytes_of(written)
    assert (
        packages.write([packages.planned("tiny_lib", substrate, out, omit=["tiny_lib.training"])])[
            0
        ]
        == written
    )
    assert bytes_of(written) == first
    modules = ["__init__.py", "data.txt", "prices.py", "shapes.py"]
    assert sorted(map(str, first)) == [".tf_substrates.json", *modules]
    assert [p.name for p in out.iterdir()] == [f"tiny_lib_{substrate}"]
    program = (
        f"import sys, tiny_lib_{substrate} as lib; print(lib.price([1., 3.], 2.).tolist());"
        "print(*sorted({'tensorflow', 'jax'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[0.0, 1.0]", "jax" if substrate == "jax" else ""]


def test_half_a_package_is_never_written(package, tmp_path):
    (package / "zzz.py").write_text("def f(:\n")
    with pytest.raises(SyntaxError):
        packages.write([packages.planned("tiny_lib", "jax", tmp_path / "out")])[0]
    assert not (tmp_path / "out").exists()


CHECKED = """
import tensorflow as tf
import tensorflow.compat.v2 as tf2
from tensorflow import linalg as tfl, keras
from tensorflow.math import exp, sobol_sample


def f(x):
  return tf.exp(x).numpy() + tf2.math.sobol_sample(1) + tfl.LinearOperatorToeplitz(x) + np.tf.what


tf.nowhere.else_
"""


def test_check_names_what_is_missing_by_file_and_line(tmp_path, capsys):
    file = tmp_path / "some.py"
    file.write_text(CHECKED)
    assert main(["check", str(file)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{file}:4: tf.keras (refused: it is of Keras, a library of its own. What to do: use Keras"
        " 3 on JAX, or a library of JAX for layers and optimizers)",
        f"{file}:5: tf.math.sobol_sample",
        f"{file}:9: tf.linalg.LinearOperatorToeplitz",
        f"{file}:9: tf.math.sobol_sample",
        f"{file}:12: tf.nowhere (TensorFlow 2.21 has no such name)",
        "2 names are missing, in 3 places",
        "1 name is refused, in 1 place",
        "1 name is not TensorFlow's, in 1 place",
    ]
    assert last == "verdict: what is missing stops it (1 file was looked at)"
    file.write_text("import tensorflow as tf\ntf.io.read_file('x')\n")
    assert main(["check", str(file)]) == 0
    assert "verdict: what is listed fails where it runs" in capsys.readouterr().out
    file.write_text("import tensorflow as tf\ntf.exp(tf.float32.max)\n")
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "verdict: all that it uses of TensorFlow is here (1 file was looked at)"
    ]
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty")]) == 2
    assert "has no file of Python (.py) to look at" in capsys.readouterr().err
    assert main(["check", "nowhere_at_all"]) == 2
    assert "no package 'nowhere_at_all'" in capsys.readouterr().err


def test_check_looks_at_what_is_rewritten_alone(tmp_path, capsys):
    package = tmp_path / "tensorflow_probability"
    for module in (
        "python/math",
        "python/layers/util",
        "python/internal/tf_keras",
        "substrates/jax/x",
    ):
        file = package / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import tensorflow as tf\ntf.nowhere()\n")
    assert main(["check", str(package), "--substrate", "jax"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{package}/python/math.py:2: tf.nowhere (TensorFlow 2.21 has no such name)",
        "1 name is not TensorFlow's, in 1 place",
        "3 modules are not looked at: `rewrite` leaves or replaces them",
        "verdict: what is listed fails where it runs, the rest is here (1 file was looked at)",
    ]


# What a package imports beside TensorFlow, and whether that is written against TensorFlow.
OTHERS = {
    "import other_lib": True,
    "from other_lib.inner import a": True,
    "def f():\n    import other_lib": True,
    "try:\n    from other_lib import a\nexcept ImportError:\n    a = None": True,
    "import for_several": False,
    "import json, numpy, jax": False,
    "import tensorflow_somewhere": True,
    "import not_installed_anywhere": False,
    'def f():\n    """```\n    import tensorflow_somewhere\n    import other_lib\n    """': False,
    '"""Usage.\n\nimport other_lib\n"""\nimport for_several': False,
}


@pytest.mark.parametrize("statement", OTHERS)
def test_libraries_that_are_written_against_tensorflow_too_are_named(
    tmp_path, monkeypatch, capsys, statement
):
    texts = {
        "main_lib": f"import tensorflow as tf\n{statement}\n",
        "other_lib": "from tensorflow import exp\n",
        "for_several": "def f():\n    import tensorflow\n",
    }
    for name, text in texts.items():
        (tmp_path / "src" / name).mkdir(parents=True)
        (tmp_path / "src" / name / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.chdir(tmp_path)
    given = ["main_lib", "--substrate", "numpy"]
    assert main(["rewrite", *given, "--out", "out"]) == 0
    told = [capsys.readouterr().err]
    assert main(["check", *given]) == 0
    told.append(capsys.readouterr().out)
    for text in told:
        assert ("written against TensorFlow too" in text) == OTHERS[statement]
        assert ('packages = ["main_lib", ' in text) == OTHERS[statement]
    assert told[1].splitlines()[-1].startswith("verdict: all that it uses of TensorFlow is here")
    if "other_lib" in statement:
        table = '[tool.tf_substrates]\npackages = ["main_lib", "other_lib"]\n'
        (tmp_path / "pyproject.toml").write_text(table)
        assert main(["rewrite", "--out", "both"]) == 0
        assert capsys.readouterr().err == ""


def test_the_command_rewrites(package, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["rewrite", "tiny_lib", "--substrate", "jax", "--out", str(out), "--name", "tiny"]
    assert main(given) == 0
    assert capsys.readouterr().out.strip() == str(out / "tiny")
    assert "from tiny.shapes import flat" in (out / "tiny" / "prices.py").read_text()


@pytest.mark.parametrize("module", ["math", "math.bits", "arrays.gathering"])
def test_the_own_modules_are_rewritten_however_deep(module):
    numpy_side = importlib.import_module(f"tf_substrates.numpy.{module}")
    jax_side = importlib.import_module(f"tf_substrates.jax.{module}")
    assert jax_side.__file__ == numpy_side.__file__
    if "." in module:
        assert (numpy_side.JAX_MODE, numpy_side.xp.__name__) == (False, "numpy")
        assert (jax_side.JAX_MODE, jax_side.xp.__name__) == (True, "jax.numpy")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"tf_substrates.jax.{module}.nothing")


NUMBERS = """import numpy as np
_ROOT = np.sqrt(2.0)
def f(x, n):
    y = x / np.sqrt(2 * np.pi) + 2 * np.log(3.0) * x
    return -_ROOT * y, n / _ROOT, np.ones(3) * np.pi, f"{x * np.pi}", _ROOT * 2
"""


def test_elements_of_arrays_of_numpy_are_numbers_in_their_function_alone():
    source = """import numpy as np
def series(x):
    terms = np.array([0.5, 2.0])
    return [x * terms[i] for i in range(2)]
def other(terms, x):
    return x * terms[0]
"""
    lines = as_text(source, edits_of(source, Substrate("jax", modules={}), "p")).splitlines()
    assert lines[3].strip() == "return [x * _as_number(terms[i]) for i in range(2)]"
    assert lines[5].strip() == "return x * terms[0]"


def test_numbers_of_numpy_take_the_dtype_of_a_tensor_on_jax():
    on_jax = as_text(NUMBERS, edits_of(NUMBERS, Substrate("jax", modules={}), "p"))
    lines = on_jax.splitlines()
    assert lines[0].endswith("; import numpy as np")
    assert lines[3].strip() == (
        "y = x / _as_number(np.sqrt(2 * np.pi)) + _as_number(2 * np.log(3.0)) * x"
    )
    assert lines[4].strip() == (
        'return _as_number(-_ROOT) * y, n / _as_number(_ROOT), np.ones(3) * np.pi, f"{x * np.pi}",'
        " _ROOT * 2"
    )
    assert as_text(NUMBERS, edits_of(NUMBERS, Substrate("numpy", modules={}), "p")) == NUMBERS
    scope = {}
    edits = edits_of(NUMBERS, Substrate("jax", modules={}), "p")
    exec(compile(as_tree(NUMBERS, edits), "", "exec"), scope)
    x = jax.numpy.ones((), np.float32)
    with_64_bits = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        assert [y.dtype for y in scope["f"](x, x)[:2]] == [np.float32, np.float32]
    finally:
        jax.config.update("jax_enable_x64", with_64_bits)


@pytest.mark.parametrize("substrate", ["numpy", "jax"])
def test_lists_of_slices_and_lists_beside_shapes(substrate):
    source = """
class A:
    def __init__(self, x):
        self.batch = x.shape[:-1]
    def last(self, x, n):
        slices = [slice(None)] * n
        slices[-1] = slice(1, None)
        return x[slices], self.batch + [n]
"""
    scope = {}
    edits = edits_of(source, Substrate(substrate, modules={}), "p")
    exec(compile(as_tree(source, edits), "", "exec"), scope)
    x = tf_of(substrate).reshape(tf_of(substrate).range(6), [2, 3])
    row, shape = scope["A"](x).last(x, 2)
    assert np.asarray(row).tolist() == [[1, 2], [4, 5]]
    assert list(shape) == [2, 2]
