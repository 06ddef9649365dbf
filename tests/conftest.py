"""Takes the engine's hooks, so that the matrix runs with the other tests; hypothesis profiles."""

import gc
import itertools
import random
from pathlib import Path

import hypothesis
import keras
import pytest

from harnesses.engine import plugin
from harnesses.engine.plugin import pytest_configure, pytest_unconfigure
from tests.cases import other_cases, share_of, shuffled, some_cases
from tests.file_times import seconds_by_file, slowest

__all__ = ["pytest_configure", "pytest_unconfigure"]

_HERE = Path(__file__).parent

# The tests try the same examples every time, the fuzz job many new ones, in four parts: TensorFlow
# keeps what it compiles, 7 GB of 5,000 programs. A deadline would measure how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5_000)
hypothesis.settings.load_profile("tests")


# Long, and about processes, files and what is written rather than about one version of JAX: where
# CI has two Pythons, one of them runs these. Files and folders, below this one.
_ONCE = frozenset(
    {
        "browser",
        "impl/graph",
        "impl/onnx",
        "impl/test_broadcasting.py",
        "impl/test_command_line_errors.py",
        "impl/test_dtensor.py",
        "impl/test_export_command.py",
        "impl/test_export_litert.py",
        "impl/test_export_paths.py",
        "impl/test_export_verification.py",
        "impl/test_fuzz_call_tf_planted.py",
        "impl/test_fuzz_planted.py",
        "impl/test_fuzz_planted_combinations.py",
        "impl/test_import.py",
        "impl/test_locate.py",
        "impl/test_pairs_harnesses.py",
        "impl/test_sharding.py",
        "impl/test_unwritten_ops.py",
        "judge/test_command.py",
        "judge/test_converters.py",
        "judge/test_meshes.py",
        "reports",
        "substrates/test_pytest_plugin.py",
        "substrates/test_rewriter_targets.py",
        "substrates/test_shipping.py",
        "test_documentation.py",
        "test_examples.py",
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a matrix, and one that takes a part of each test's cases."""
    plugin.pytest_addoption(parser)
    parser.addoption(
        "--cases",
        type=share_of,
        default=1,
        metavar="1/N",
        help="of each test one case in N, the same ones every time, at least one",
    )
    parser.addoption(
        "--other-cases",
        type=share_of,
        metavar="1/N",
        help="the cases that --cases 1/N leaves out, and all cases of the tests marked `once`",
    )
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="runs files, and tests in each, in another order",
    )
    parser.addoption(
        "--slow-files",
        type=int,
        default=0,
        metavar="N",
        help="prints the N files whose tests took longest",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that are run once; leaves out cases and changes the order, if it is asked to.

    Raises:
      pytest.UsageError: one of the files or folders is not there.
    """
    paths = {_HERE / name for name in _ONCE}
    for path in paths:
        if not path.exists():
            raise pytest.UsageError(f"tests/conftest.py: _ONCE names {path}, which is not there")
    for item in items:
        if paths & {item.path, *item.path.parents}:
            item.add_marker("once")
    by_name = {item.nodeid: item for item in items}
    if config.option.other_cases is None:
        kept, left_out = some_cases(list(by_name), config.option.cases)
    else:
        once = {item.nodeid for item in items if item.get_closest_marker("once")}
        kept, left_out = other_cases(list(by_name), config.option.other_cases, once)
    if config.option.shuffle is not None:
        kept = shuffled(kept, config.option.shuffle)
    if left_out:
        config.hook.pytest_deselected(items=[by_name[name] for name in left_out])
    items[:] = [by_name[name] for name in kept]


# Counts the files whose tests have run in this process.
_FILES = itertools.count(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """The collector passes over what is there for the whole run: libraries, harnesses, the tests.

    These are a million objects. Each export collects garbage, and would look at all of them.
    """
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """And over what the tests of a file leave behind: traces and graphs in caches.

    What the caches have dropped since then is found in every fiftieth file.
    """
    if nextitem is None or item.path != nextitem.path:
        if next(_FILES) % 50 == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Chooses the seed of a fuzz job, before Hypothesis reads it: the workers get the same one."""
    if config.option.hypothesis_profile == "fuzz" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.getrandbits(32))


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Layers of Keras draw the same first weights in every run: a tolerance holds for these."""
    keras.utils.set_random_seed(0)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The seed, by which `--hypothesis-seed` repeats a fuzz job."""
    seed = config.option.hypothesis_seed
    return None if seed is None else f"--hypothesis-seed={seed}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The files whose tests took longest, if `--slow-files` asks for them."""
    number = terminalreporter.config.option.slow_files
    if number:
        reports = [r for of_outcome in terminalreporter.stats.values() for r in of_outcome]
        tests = [r for r in reports if isinstance(r, pytest.TestReport)]
        terminalreporter.section("slowest files")
        for line in slowest(seconds_by_file(tests), number):
            terminalreporter.line(line)
