"""A library written against TensorFlow, rewritten and run where TensorFlow is not installed."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import pytest

from tf_substrates.__main__ import main
from tf_substrates.rewriter import project

# Two packages, one of which uses the other; `plots` is for TensorFlow alone.
FILES = {
    "pyproject.toml": """
        [tool.tf_substrates]
        packages = ["tiny_prices", "tiny_shapes"]

        [tool.tf_substrates.omit]
        numpy = ["tiny_prices.plots", "tiny_prices.greeks"]
        jax = ["tiny_prices.plots"]

        [[tool.tf_substrates.disabled]]
        test = "tests/test_greeks.py"
        substrates = ["numpy"]
        reason = "NumPy has no derivatives"
        """,
    "src/tiny_prices/__init__.py": """
        from tiny_prices.options import Model, black_scholes
        from tiny_prices import greeks
        from tiny_prices.plots import plot
        from tiny_shapes import largest

        __all__ = ["Model", "black_scholes", "greeks", "largest", "plot"]
        """,
    "src/tiny_prices/options.py": """
        import tensorflow.compat.v2 as tf
        from tiny_shapes import as_batch


        def cdf(x):
          return (tf.math.erf(x / 2**0.5) + 1) / 2


        def black_scholes(volatilities, strikes, expiries, spots, dtype=None, name=None):
          with tf.name_scope(name or "black_scholes"):
            volatilities, strikes, expiries, spots = [
                as_batch(tf.convert_to_tensor(x, dtype=dtype))
                for x in (volatilities, strikes, expiries, spots)
            ]
            sigma = volatilities * tf.math.sqrt(expiries)
            d1 = (tf.math.log(spots / strikes) + sigma**2 / 2) / sigma
            return spots * cdf(d1) - strikes * cdf(d1 - sigma)


        class Model(tf.Module):
          def __init__(self, volatility):
            super().__init__(name="model")
            self.volatility = tf.constant(volatility, tf.float64)

          def price(self, strikes):
            strikes = tf.constant(strikes, tf.float64)
            found = tf.TensorArray(tf.float64, size=3)
            _, found = tf.while_loop(
                lambda i, _: i < 3,
                lambda i, ta: (i + 1, ta.write(
                    i, black_scholes(self.volatility, strikes[i], 1.0, 100.0, tf.float64)[0])),
                (0, found))
            return found.stack()
        """,
    "src/tiny_prices/greeks.py": """
        import tensorflow as tf
        from .options import black_scholes


        def delta(spot):
          with tf.GradientTape() as tape:
            tape.watch(spot)
            price = black_scholes(0.2, 100.0, 1.0, spot, dtype=spot.dtype)
          return tape.gradient(price, spot)
        """,
    "src/tiny_prices/plots.py": "raise ImportError('no plots on a substrate')",
    "src/tiny_shapes/__init__.py": """
        import tensorflow as tf


        def as_batch(x):
          if x.shape.rank > 1:
            raise ValueError(f"of rank {x.shape.rank}, at most 1 is expected")
          return tf.reshape(x, [-1] + x.shape.as_list()[1:])


        def largest(x):
          return x.dtype.as_numpy_dtype(tf.reduce_max(x).numpy())
        """,
}

# Importing TensorFlow fails as it does where it is not installed, also by way of another package.
WITHOUT_TENSORFLOW = """
import importlib.abc, sys

class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FORBIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""

PROGRAM = """
import tiny_prices_{0} as lib
print(lib.__all__)
strikes = [90.0, 100.0, 110.0]
prices = lib.Model(0.2).price(strikes)
print(prices.dtype, *("%.12f" % p for p in prices))
try:
    lib.black_scholes(0.2, [[90.0]], 1.0, 100.0)
except ValueError as error:
    found = lib.largest(prices)
    print(error, type(found).__name__, round(found, 9))
"""

ON_JAX = """
import jax
print("%.12f" % jax.jit(lib.greeks.delta)(jax.numpy.float64(100.0)))
price = lambda spot: lib.black_scholes(0.2, 100.0, 1.0, spot, spot.dtype)[0]
print("%.12f" % jax.jit(jax.grad(price))(100.0))
"""

ON_TENSORFLOW = """
import tensorflow as tf
print("%.12f" % lib.greeks.delta(tf.constant(100.0, tf.float64)))
"""

PRICES = "13.589108116055 7.965567455406 4.292010941410"
RANK = "of rank 2, at most 1 is expected float64 13.589108116"
DELTA = "0.539827837277"


@pytest.fixture
def library(tmp_path, monkeypatch):
    for name, text in FILES.items():
        file = tmp_path / "library" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    monkeypatch.chdir(tmp_path / "library")
    return tmp_path / "library"


def bytes_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(arguments, **kwargs):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **kwargs)


@pytest.mark.parametrize("substrate", ["numpy", "jax"])
def test_a_rewritten_library_runs_without_tensorflow(library, tmp_path, monkeypatch, substrate):
    out = tmp_path / "out"
    command = ["-m", "tf_substrates", "rewrite", "--substrate", substrate, "--out", str(out)]
    assert run(command, check=True).stdout.splitlines() == [
        str(out / f"tiny_{what}_{substrate}") for what in ("prices", "shapes")
    ]
    first = bytes_of(out)
    run(command, check=True)
    assert bytes_of(out) == first

    forbidden = {"tensorflow", "keras"} | ({"jax"} if substrate == "numpy" else set())
    program = WITHOUT_TENSORFLOW.replace("FORBIDDEN", repr(sorted(forbidden)))
    program += PROGRAM.format(substrate) + (ON_JAX if substrate == "jax" else "")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    done = run(["-c", program], cwd=out)
    assert done.stderr == ""
    names = ["Model", "black_scholes", *(["greeks"] if substrate == "jax" else []), "largest"]
    expected = [str(names), f"float64 {PRICES}", RANK]
    assert done.stdout.splitlines() == expected + ([DELTA, DELTA] if substrate == "jax" else [])


def test_the_tests_of_the_shipped_libraries_pass_on_tensorflow():
    """Those that `tox -e shipped` runs of its wheels, where there is no TensorFlow."""
    source = pathlib.Path(__file__).parents[1] / "shipped/library/src"
    options = ["-p", "no:cacheprovider", "-q", "--import-mode=importlib", "--confcutdir=."]
    done = run(["-m", "pytest", *options, "vanilla_pricing", "logistic"], cwd=source)
    assert done.stdout.splitlines()[-1].startswith("18 passed"), done.stdout


def test_the_numbers_are_tensorflows(library, monkeypatch):
    (library / "src/tiny_prices/plots.py").write_text("plot = None\n")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    program = PROGRAM.replace("tiny_prices_{0}", "tiny_prices") + ON_TENSORFLOW
    done = run(["-c", program], cwd=library / "src", check=True)
    assert done.stdout.splitlines()[1:] == [f"<dtype: 'float64'> {PRICES}", RANK, DELTA]


def test_the_table(library):
    found = project.read("pyproject.toml")
    assert found == project.Project(
        pathlib.Path(),
        ("tiny_prices", "tiny_shapes"),
        ("numpy", "jax"),
        {"numpy": ("tiny_prices.plots", "tiny_prices.greeks"), "jax": ("tiny_prices.plots",)},
        (project.Disabled("tests/test_greeks.py", ("numpy",), "NumPy has no derivatives"),),
    )
    assert found.source("tiny_prices") == pathlib.Path("src/tiny_prices")


def test_the_command_takes_every_substrate_of_the_table(library, tmp_path, capsys):
    assert main(["rewrite", "--out", str(tmp_path / "out")]) == 0
    assert [pathlib.Path(line).name for line in capsys.readouterr().out.splitlines()] == [
        "tiny_prices_numpy",
        "tiny_shapes_numpy",
        "tiny_prices_jax",
        "tiny_shapes_jax",
    ]


REFUSED = [
    ("package = ['a']", r"tool.tf_substrates has an unknown key 'package'.*Near it is: packages"),
    ("substrates = ['jax']", r"tool.tf_substrates has no key 'packages'"),
    ("packages = 'a'", r"tool.tf_substrates.packages is a list of texts, not 'a'"),
    ("packages = []\nsubstrates = ['torch']", r"substrates has 'numpy' and 'jax', not 'torch'"),
    ("packages = []\nomit = ['a']", r"tool.tf_substrates.omit is a table, not \['a'\]"),
    ("packages = []\nomit.jaxx = ['a']", r"omit has an unknown key 'jaxx'.*Near it is: jax"),
    ("packages = []\nomit.jax = [1]", r"tool.tf_substrates.omit.jax is a list of texts, not \[1\]"),
    ("packages = []\ndisabled = 'a'", r"tool.tf_substrates.disabled is a list of tables, not 'a'"),
    (
        "packages = []\n[[tool.tf_substrates.disabled]]\ntest = 'a'",
        r"tool.tf_substrates.disabled\[0\] has no key 'reason'",
    ),
    (
        "packages = []\n[[tool.tf_substrates.disabled]]\ntest = 'a'\nreason = ''",
        r"tool.tf_substrates.disabled\[0\].reason is a text, not ''",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_the_table_may_not_hold_is_refused_by_name(tmp_path, text, message, capsys):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.tf_substrates]\n{text}\n")
    with pytest.raises(ValueError, match=message):
        project.read(file)
    assert main(["rewrite", "--project", str(file), "--out", str(tmp_path / "out")]) == 2
    assert str(file) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_no_table(tmp_path, capsys):
    file = tmp_path / "pyproject.toml"
    assert main(["rewrite", "--project", str(file), "--out", str(tmp_path)]) == 2
    file.write_text("[project]\nname = 'a'\n")
    with pytest.raises(ValueError, match=r"there is no table \[tool.tf_substrates\]"):
        project.read(file)


def test_what_does_not_go_together_on_the_command_line(tmp_path, capsys):
    for given in (["json"], ["--name", "a"], ["--omit", "a"]):
        with pytest.raises(SystemExit):
            main(["rewrite", *given, "--out", str(tmp_path)])
    assert "needs --substrate" in capsys.readouterr().err
