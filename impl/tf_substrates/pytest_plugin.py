"""A plugin of pytest: `pytest --substrate numpy --substrate jax` runs test files on substrates.

The test files and the packages of `[tool.tf_substrates]` in the root folder's pyproject.toml are
rewritten while they are imported. A test file stands once for each substrate, and can be asked for
by that name: `tests/test_a.py[jax]::ATest::test_b`. A disabled test is run, and red if it passes.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import pathlib
import re
import sys
import unittest
from collections.abc import Generator, Iterable, Sequence
from types import ModuleType
from typing import Any

import pytest

from tf_substrates.rewriter import project
from tf_substrates.rewriter.hook import install


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("tf_substrates").addoption(
        "--substrate",
        action="append",
        choices=list(project.SUBSTRATES),
        default=[],
        help="run a library's tests on this substrate in place of TensorFlow; may be repeated",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    substrates = list(dict.fromkeys(early_config.known_args_namespace.substrate))
    if substrates:
        _prepared(early_config, substrates)


def pytest_unconfigure(config: pytest.Config) -> None:
    _forget_plain_names()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--substrate"):
        # pytest takes a bracket in an argument for the parameters of a test. An option, because
        # pytest-xdist hands options to its workers, and the arguments as they are here.
        if not hasattr(config.option, _FILES_ON):
            setattr(config.option, _FILES_ON, _take_substrates_out(config))
        config.pluginmanager.register(_OnSubstrates(config), "tf_substrates.running")


# Names of assertions that Python 3.12 took away, and libraries' tests have.
_OLD_ASSERTIONS = {
    "assertRaisesRegexp": "assertRaisesRegex",
    "assertRegexpMatches": "assertRegex",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertItemsEqual": "assertCountEqual",
    "assertEquals": "assertEqual",
    "assertNotEquals": "assertNotEqual",
    "assertAlmostEquals": "assertAlmostEqual",
    "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assert_": "assertTrue",
}
_FILES_ON = "tf_substrates_files_on"
_ON_A_SUBSTRATE = re.compile(r"(?P<file>.*\.py)\[(?P<substrate>\w+)\](?P<test>(::.*)?)", re.S)


def _take_substrates_out(config: pytest.Config) -> dict[str, list[str]]:
    """By file, the substrates that all arguments name for it; the arguments then name none."""
    whole: list[pathlib.Path] = []
    found: dict[str, list[str]] = {}
    for i, argument in enumerate(config.args):
        named = _ON_A_SUBSTRATE.fullmatch(argument)
        if named is None:
            whole.append(_path(config, argument.partition("::")[0]))
            continue
        if named["substrate"] not in config.getoption("--substrate"):
            raise pytest.UsageError(
                f"{argument}: this run has no substrate {named['substrate']!r}. What to do: add"
                f" --substrate {named['substrate']}."
            )
        config.args[i] = named["file"] + named["test"]
        found.setdefault(str(_path(config, named["file"])), []).append(named["substrate"])
    return {
        file: list(dict.fromkeys(substrates))
        for file, substrates in found.items()
        if not any(pathlib.Path(file).is_relative_to(path) for path in whole)
    }


def _path(config: pytest.Config, argument: str) -> pathlib.Path:
    return pathlib.Path(os.path.abspath(config.invocation_params.dir / argument))


def _prepared(config: pytest.Config, substrates: list[str]) -> project.Project:
    """The project, whose packages can then be found, with 64-bit types on JAX.

    It runs before the first `conftest.py` is imported; in a worker of pytest-xdist that has this
    plugin by `-p`, when it is configured.
    """
    try:
        found = project.read(config.rootpath / "pyproject.toml")
        for package in found.packages:
            _put_on_path(found.source(package).parent)
    except (FileNotFoundError, ModuleNotFoundError, ValueError) as error:
        raise pytest.UsageError(f"--substrate: {error}") from None
    _forget_plain_names()
    sys.meta_path.insert(0, _PlainNames(substrates, found))
    if "jax" in substrates:
        import jax

        # TensorFlow's tests use its 64-bit types, which JAX has when asked.
        jax.config.update("jax_enable_x64", True)
    return found


class _PlainNames:
    """Finds the project's packages by their plain names too: rewritten, on the one substrate.

    pytest imports a `conftest.py` that stands in a package by its plain name, and with it the
    package. It is rewritten as a test file is.
    """

    def __init__(self, substrates: list[str], found: project.Project):
        self.substrates = substrates
        self.project = found

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package not in self.project.packages:
            return None
        if len(self.substrates) > 1:
            raise ImportError(
                f"--substrate: a conftest.py in {package}, or what one imports, belongs to one"
                f" substrate, and this run has {' and '.join(self.substrates)}. What to do: run"
                " pytest once for each."
            )
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        (substrate,) = self.substrates
        prefix = f"tf_substrates.on_{substrate}"
        if not any(getattr(finder, "prefix", None) == prefix for finder in sys.meta_path):
            install(substrate, self.project.packages, self.project.omit.get(substrate, ()))
        module = importlib.import_module(f"{prefix}.{spec.name}")
        # Python gives the module the spec of the plain name.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it has run under the name that it has on the substrate."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def _forget_plain_names() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _PlainNames)]


class _OnSubstrates:
    """The hooks of a run with `--substrate`."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.substrates = list(dict.fromkeys(config.getoption("--substrate")))
        self.project = _prepared(config, self.substrates)
        self.packages = list(self.project.packages)
        self.files_on: dict[str, list[str]] = getattr(config.option, _FILES_ON)

    def pytest_sessionstart(self) -> None:
        for old, name in _OLD_ASSERTIONS.items():
            if not hasattr(unittest.TestCase, old):
                setattr(unittest.TestCase, old, getattr(unittest.TestCase, name))
        # A program of Abseil's parses its flags before its tests begin; here they have their
        # defaults.
        absl_flags = _absl_flags()
        if absl_flags is not None and not absl_flags.FLAGS.is_parsed():
            absl_flags.FLAGS.mark_as_parsed()

    def load(self, file: pathlib.Path, substrate: str) -> ModuleType:
        """A test file as a module on a substrate."""
        folder, names = self._names_beside(file)
        _put_on_path(folder)
        self.packages += [name for name in names if name not in self.packages]
        install(substrate, self.packages, self.project.omit.get(substrate, ()))
        dotted = ".".join(file.relative_to(folder).with_suffix("").parts)
        module = importlib.import_module(f"tf_substrates.on_{substrate}.{dotted}")
        if pathlib.Path(str(module.__file__)) != file:
            raise pytest.Collector.CollectError(
                f"{file} and {module.__file__} have one name. What to do: give one of them another"
                " name, or their folders an __init__.py."
            )
        return module

    def _names_beside(self, file: pathlib.Path) -> tuple[pathlib.Path, list[str]]:
        """The folder that a test file is imported from, and the top-level names to rewrite."""
        for package in self.project.packages:
            # Its folders need no __init__.py of their own.
            if file.is_relative_to(self.project.source(package)):
                return self.project.source(package).parent, [package]
        folder = file.parent
        if not (folder / "__init__.py").is_file():
            beside = sorted(folder.glob("*.py"))
            return folder, [
                f.stem for f in beside if f.stem.isidentifier() and f.stem != "conftest"
            ]
        while (folder.parent / "__init__.py").is_file():
            folder = folder.parent
        return folder.parent, [folder.name]

    def disabled(self, nodeid: str, substrate: str) -> project.Disabled | None:
        """What the project says of a test, by its name without the substrate."""
        for entry in self.project.disabled:
            if substrate in entry.substrates and (
                nodeid == entry.test or nodeid.startswith((entry.test + "::", entry.test + "["))
            ):
                return entry
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        collectors = yield
        return [made for collector in collectors for made in self._on_each(parent, collector)]

    def _on_each(
        self, parent: pytest.Collector, collector: pytest.Collector
    ) -> list[pytest.Collector]:
        if not isinstance(collector, pytest.Module):
            return [collector]
        return [
            _Module.from_parent(
                parent,
                path=collector.path,
                name=f"{collector.name}[{substrate}]",
                nodeid=f"{collector.nodeid}[{substrate}]",
                run=self,
                substrate=substrate,
                file_id=collector.nodeid,
            )
            for substrate in self.files_on.get(str(collector.path), self.substrates)
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_directory(
        self, path: pathlib.Path, parent: pytest.Collector
    ) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
        collector = yield
        if isinstance(collector, pytest.Package):
            return _Package.from_parent(parent, path=path)
        return collector

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = set()
        files = set()
        for item in items:
            module = item.getparent(_Module)
            if module is not None:
                files.add((module.file_id, module.substrate))
                entry = self.disabled(module.plain_id(item), module.substrate)
                if entry is not None:
                    found.add((entry, module.substrate))
                    reason = f"{entry.kind}: {entry.reason}"
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        if not any("::" in argument for argument in self.config.args):
            self._refuse_unknown(files, found)

    def _refuse_unknown(self, files: set, found: set) -> None:
        for entry in self.project.disabled:
            for substrate in entry.substrates:
                collected = (entry.test.partition("::")[0], substrate) in files
                if collected and (entry, substrate) not in found:
                    raise pytest.UsageError(
                        f"[tool.tf_substrates] disables {entry.test!r} on {substrate}, and there is"
                        " no such test. What to do: take the entry out, or correct its name."
                    )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = [
            report for report in terminalreporter.stats.get("xfailed", []) if report.wasxfail
        ]
        if reports:
            terminalreporter.section("disabled on a substrate")
        # Those that may pass one day come first.
        for report in sorted(reports, key=lambda report: report.wasxfail.startswith("never: ")):
            terminalreporter.line(f"{report.nodeid}: {report.wasxfail}")


class _Package(pytest.Package):
    """A folder with an `__init__.py`, which pytest would import as it is, with TensorFlow."""

    def setup(self) -> None:
        """Nothing: the test files import the rewritten package."""


class _Module(pytest.Module):
    """A test file on one substrate."""

    def __init__(self, *, run: _OnSubstrates, substrate: str, file_id: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.run = run
        self.substrate = substrate
        self.file_id = file_id

    def plain_id(self, node: pytest.Item) -> str:
        """A test's name without the substrate."""
        return self.file_id + node.nodeid[len(self.nodeid) :]

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        whole_file = self.run.disabled(self.file_id, self.substrate) is not None
        try:
            self.obj = self.run.load(self.path, self.substrate)
        except Exception as error:
            # Reported as the failure of a test, so that an entry for the whole file can expect it.
            if whole_file:
                return [_Import.from_parent(self, name="import", error=error)]
            raise
        marks = getattr(self.obj, "pytestmark", [])
        for mark in marks if isinstance(marks, list) else [marks]:
            self.add_marker(mark)
        return super().collect()


class _Import(pytest.Item):
    """The import of a test file that fails."""

    def __init__(self, *, error: Exception, **kwargs: Any):
        super().__init__(**kwargs)
        self.error = error

    def runtest(self) -> None:
        raise self.error


def _absl_flags() -> ModuleType | None:
    try:
        return importlib.import_module("absl.flags")
    except ModuleNotFoundError:
        return None


def _put_on_path(folder: pathlib.Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
