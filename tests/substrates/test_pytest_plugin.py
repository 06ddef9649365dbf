"""`pytest --substrate`: the tests of a library written against TensorFlow, on both substrates."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, tf_of

LIBRARY = {
    "small_lib/__init__.py": "from small_lib.rates import discount, draw",
    "small_lib/rates.py": """
        import tensorflow as tf

        def discount(rates, times):
          return tf.exp(-tf.convert_to_tensor(rates) * times)

        def draw(seed):
          return tf.random.stateless_normal([3], seed)
        """,
    "tests/values.py": """
        import tensorflow as tf
        RATES = tf.constant([0.1, 0.2])
        """,
    "tests/test_rates.py": """
        import sys
        import numpy as np
        import pytest
        import tensorflow.compat.v2 as tf
        import values
        from absl.testing import parameterized
        from tensorflow.python.framework import test_util
        import small_lib

        pytestmark = pytest.mark.filterwarnings("default")

        class RatesTest(tf.test.TestCase, parameterized.TestCase):

          @parameterized.named_parameters(("one", 1.0), ("two", 2.0))
          def test_discount(self, time):
            found = self.evaluate(small_lib.discount(values.RATES, time))
            self.assertIsInstance(found, np.ndarray)
            self.assertAllClose(found, np.exp([-0.1 * time, -0.2 * time]))
            self.assertDTypeEqual(found, np.float32)
            self.assertShapeEqual(found, values.RATES)

          @test_util.run_in_graph_and_eager_modes
          def test_draw(self):
            first, again = self.evaluate([small_lib.draw([1, 2]), small_lib.draw([1, 2])])
            self.assertAllEqual(first, again)
            self.assertNotAllClose(first, small_lib.draw([1, 3]))

          def test_refused(self):
            with self.assertRaises(tf.errors.InvalidArgumentError):
              self.evaluate(tf.reshape(values.RATES, [3]))
            with self.assertRaisesRegex(ValueError, "float64"):
              tf.convert_to_tensor(values.RATES, tf.float64)

          def test_gradient(self):
            with tf.GradientTape() as tape:
              tape.watch(values.RATES)
              y = small_lib.discount(values.RATES, 1.0)
            self.assertAllClose(tape.gradient(y, values.RATES), -y)

        def test_no_tensorflow():
          assert "tensorflow" not in sys.modules

        @pytest.mark.parametrize("n", [1, 2])
        def test_double(n):
          assert tf.constant(1.0, tf.float64).dtype == tf.float64

        if __name__ == "__main__":
          tf.test.main()
        """,
}

TABLE = """
[tool.tf_substrates]
packages = ["small_lib"]
"""

NO_GRADIENT = """
[[tool.tf_substrates.disabled]]
test = "tests/test_rates.py::RatesTest::test_gradient"
substrates = ["numpy"]
reason = "NumPy has no derivatives"
kind = "never"
"""


@pytest.fixture
def library(tmp_path):
    return written(tmp_path, LIBRARY)


# Tests that stand beside the code, in a package of a package and in a folder without `__init__`.
BESIDE = {
    "pyproject.toml": """
        [tool.tf_substrates]
        packages = ["beside"]
        [tool.pytest.ini_options]
        python_files = ["*_test.py"]
        """,
    "beside/__init__.py": """
        import tensorflow as tf
        from beside import math
        """,
    "beside/math/__init__.py": "from beside.math.generic import twice",
    "beside/math/generic.py": """
        import tensorflow as tf

        def twice(x):
          return tf.convert_to_tensor(x) * 2
        """,
    "beside/math/generic_test.py": """
        import sys
        import beside
        import tensorflow.compat.v2 as tf
        from beside.math import generic

        class TwiceTest(tf.test.TestCase):

          def test_twice(self):
            self.assertAllClose(generic.twice([1.0, 2.0]), [2.0, 4.0])

          def test_rewritten(self):
            self.assertIs(beside.math.twice, generic.twice)
            self.assertNotIn("tensorflow", sys.modules)
            self.assertTrue(__file__.endswith("generic_test.py"))
        """,
}
BESIDE["beside/data/generic_test.py"] = BESIDE["beside/math/generic_test.py"]


def written(folder, files):
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return folder


def run(library, table, *arguments):
    """The lines of a run of pytest, and its counts, `{"passed": 3}`."""
    (library / "pyproject.toml").write_text(textwrap.dedent(table))
    options = ["-p", "no:cacheprovider", "-rA", "--tb=line", *arguments]
    options += [] if "-n" in arguments else ["-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-p", "tf_substrates.pytest_plugin", *options]
    done = subprocess.run(command, cwd=library, capture_output=True, text=True)
    lines = done.stderr.splitlines() + done.stdout.splitlines()
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", (lines or [""])[-1])}
    return lines, counts


def test_a_librarys_tests_run_on_both_substrates(library):
    lines, counts = run(library, TABLE + NO_GRADIENT, "--substrate", "numpy", "--substrate", "jax")
    shown = "\n".join(lines)
    assert counts.keys() <= {"passed", "xfailed", "in", "warnings", "warning"}, shown
    assert (counts["passed"], counts["xfailed"]) == (15, 1), shown
    assert "PASSED tests/test_rates.py[jax]::RatesTest::test_gradient" in lines
    assert "PASSED tests/test_rates.py[numpy]::test_double[1]" in lines
    test = "tests/test_rates.py[numpy]::RatesTest::test_gradient"
    disabled = f"{test}: never: NumPy has no derivatives"
    assert disabled in lines
    assert any("disabled on a substrate" in line for line in lines)


def test_tests_beside_the_code_run(tmp_path):
    both = ("--substrate", "numpy", "--substrate", "jax")
    table = BESIDE["pyproject.toml"]
    lines, counts = run(written(tmp_path, BESIDE), table, *both, "beside", "-k", "TwiceTest")
    assert counts["passed"] == 8, lines
    for folder in ("math", "data"):
        assert f"PASSED beside/{folder}/generic_test.py[jax]::TwiceTest::test_rewritten" in lines
    asked = "beside/math/generic_test.py[numpy]::TwiceTest::test_twice"
    lines, counts = run(tmp_path, table, *both, "-n", "1", asked)
    assert counts["passed"] == 1, lines
    assert any(line.endswith(f"PASSED {asked}") for line in lines), lines
    lines, _ = run(tmp_path, table, "--substrate", "jax", asked)
    assert any("What to do: add --substrate numpy" in line for line in lines)


def test_a_conftest_in_a_package_is_rewritten_for_one_substrate(tmp_path):
    conftest = """
        import pytest
        import tensorflow as tf
        from beside.math import twice

        @pytest.fixture
        def six():
          return twice(tf.constant(3.0))
        """
    uses = """
        import sys
        import tensorflow as tf

        def test_six(six):
          assert isinstance(six, tf.Tensor) and float(six) == 6
          assert "tensorflow" not in sys.modules
        """
    files = {"beside/math/conftest.py": conftest, "beside/math/uses_test.py": uses}
    library, table = written(tmp_path, BESIDE | files), BESIDE["pyproject.toml"]
    for asked in ("beside", "beside/math/uses_test.py"):
        lines, counts = run(library, table, "--substrate", "numpy", "-k", "test_six", asked)
        assert counts["passed"] == 1, lines
    lines, _ = run(library, table, "--substrate", "numpy", "--substrate", "jax", "beside")
    assert any("belongs to one substrate, and this run has numpy and jax" in x for x in lines)
    (library / "bare").mkdir()
    lines, _ = run(library, table.replace("beside", "bare"), "--substrate", "numpy")
    assert any("'bare' is a folder without an __init__.py" in line for line in lines), lines


def test_disabled_tests_are_proved_both_ways(library):
    _, counts = run(library, TABLE, "--substrate", "numpy")
    assert (counts["passed"], counts["failed"]) == (7, 1)

    passes = NO_GRADIENT.replace("RatesTest::test_gradient", "test_double")
    lines, counts = run(library, TABLE + NO_GRADIENT + passes, "--substrate", "numpy")
    assert (counts["passed"], counts["failed"], counts["xfailed"]) == (5, 2, 1)
    assert any("XPASS(strict)" in line and "NumPy has no derivatives" in line for line in lines)

    unknown = NO_GRADIENT.replace("test_gradient", "test_gradients")
    lines, _ = run(library, TABLE + unknown, "--substrate", "numpy")
    assert any(
        "disables 'tests/test_rates.py::RatesTest::test_gradients' on numpy" in x for x in lines
    )


def test_a_file_that_does_not_import_can_be_disabled(library):
    (library / "tests" / "test_lacks.py").write_text(
        "import tensorflow as tf\nfrom tensorflow import keras\ndef test_a(): pass\n"
    )
    table = TABLE + NO_GRADIENT
    lines, counts = run(library, table, "--substrate", "numpy", "tests/test_lacks.py")
    assert counts["error"] == 1
    assert any("tests/test_lacks.py[numpy]" in line for line in lines)
    table += NO_GRADIENT.replace("test_rates.py::RatesTest::test_gradient", "test_lacks.py")
    _, counts = run(library, table, "--substrate", "numpy", "tests/test_lacks.py")
    assert counts["xfailed"] == 1


def test_without_a_substrate_nothing_changes_and_a_table_is_needed(library):
    lines, counts = run(library, TABLE)
    assert (counts["passed"], counts["failed"]) == (7, 1), lines  # TensorFlow is there
    assert any("FAILED tests/test_rates.py::test_no_tensorflow" in line for line in lines)
    lines, _ = run(library, "", "--substrate", "jax")
    assert any(
        "--substrate: " in line and "no table [tool.tf_substrates]" in line for line in lines
    )


# tf.test.TestCase: each assertion, with what it takes and what it refuses.

NAN = float("nan")
HALF = np.array([1.0], np.float16)
HOLDS = [
    ("assertAllEqual", ([1, 2], [1, 2])),
    ("assertAllEqual", ([NAN], [NAN])),
    ("assertAllEqual", ([b"a"], [b"a"])),
    ("assertNotAllEqual", ([1, 2], [1, 3])),
    ("assertAllClose", ([1.0, NAN], [1.0 + 1e-7, NAN])),
    ("assertAllClose", ({"a": [1.0, (2.0, [3.0])]}, {"a": [1.0, (2.0, [3.0])]})),
    ("assertAllClose", ([np.zeros(2), 1.0], [np.zeros(2), 1.0])),
    ("assertNotAllClose", ([1.0], [1.1])),
    ("assertAllCloseAccordingToType", (HALF, HALF * np.float16(1.0009))),
    ("assertNear", (1.0, 1.1, 0.2)),
    ("assertArrayNear", ([1.0], [1.1], 0.2)),
    ("assertNDArrayNear", (np.ones(2), np.ones(2), 0.2)),
    ("assertShapeEqual", (np.ones([2, 3]), np.zeros([2, 3]))),
    ("assertDTypeEqual", (np.ones(2), np.float64)),
    ("assertAllGreater", ([2, 3], 1)),
    ("assertAllLess", ([2, 3], 4)),
    ("assertAllGreaterEqual", ([2, 3], 2)),
    ("assertAllLessEqual", ([2, 3], 3)),
    ("assertAllInRange", ([2, 3], 2, 3)),
    ("assertAllInSet", ([2, 3], {2, 3})),
]
FAILS = [
    ("assertAllEqual", ([1, 2], [1, 3])),
    ("assertAllEqual", ([1, 1], 1)),
    ("assertNotAllEqual", ([1, 2], [1, 2])),
    ("assertAllClose", ([1.0], [1.0 + 1e-4])),
    ("assertAllClose", ([1.0, 1.0], 1.0)),
    ("assertAllClose", ({"a": 1.0}, {"b": 1.0})),
    ("assertAllClose", ({"a": [1.0]}, {"a": [2.0]})),
    ("assertNotAllClose", ([1.0], [1.0])),
    ("assertAllCloseAccordingToType", (HALF, HALF * np.float16(1.01))),
    ("assertNear", (1.0, 1.1, 0.01)),
    ("assertArrayNear", ([1.0], [1.1], 0.01)),
    ("assertNDArrayNear", (np.ones(2), np.zeros(2), 0.2)),
    ("assertShapeEqual", (np.ones([2, 3]), np.zeros([3, 2]))),
    ("assertDTypeEqual", (np.ones(2), np.float32)),
    ("assertAllGreater", ([2, 1], 1)),
    ("assertAllLess", ([2, 4], 4)),
    ("assertAllGreaterEqual", ([2, 1], 2)),
    ("assertAllLessEqual", ([2, 4], 3)),
    ("assertAllInRange", ([2, 3], 2, 3, False, True)),
    ("assertAllInRange", ([2, 3], 2, 3, True)),
    ("assertAllInSet", ([2, 4], {2, 3})),
]


def test_cases():
    """TensorFlow's own TestCase, which is the law, and ours."""
    return [
        pytest.param(tf.test.TestCase(), id=name)
        for name, tf in zip(
            ("tensorflow", *SUBSTRATES), (tensorflow, *map(tf_of, SUBSTRATES)), strict=True
        )
    ]


CASES = test_cases()
del test_cases


@pytest.mark.parametrize("case", CASES)
def test_assertions(case):
    for name, arguments in HOLDS:
        getattr(case, name)(*arguments)
    for name, arguments in FAILS:
        with pytest.raises(AssertionError):
            getattr(case, name)(*arguments)
    with pytest.raises(ValueError, match="Can't compare dict to non-dict"):
        case.assertAllClose({"a": 1.0}, [1.0])


@pytest.mark.parametrize("case", CASES)
def test_evaluate(case):
    tf = {"numpy": tf_of("numpy"), "jax": tf_of("jax")}.get(
        type(case).__module__.split(".")[1], tensorflow
    )
    found = case.evaluate({"a": [tf.constant([1.0]), None], "b": tf.Variable(2)})
    assert (found["a"][0].tolist(), found["a"][1], found["b"]) == ([1.0], None, 2)
    assert type(found["a"][0]) is np.ndarray
    assert isinstance(found["b"], np.int32)
    assert case.evaluate(lambda: tf.constant(3)) == 3
    with case.session(), case.assertRaisesOpError("Input to reshape"):
        tf.reshape(tf.zeros([2]), [3])
    with pytest.raises(AssertionError), case.assertRaisesOpError("something else"):
        tf.reshape(tf.zeros([2]), [3])


def test_the_signatures_of_assertions_are_tensorflows():
    ours = tf_of("numpy").test.TestCase
    for name in sorted({name for name, _ in HOLDS + FAILS} | {"evaluate"}):
        theirs = inspect.signature(getattr(tensorflow.test.TestCase, name)).parameters.values()
        mine = inspect.signature(getattr(ours, name)).parameters.values()
        assert [(p.name, p.default) for p in mine] == [(p.name, p.default) for p in theirs], name
