"""The table `[tool.tf_substrates]` of a project's pyproject.toml.

[tool.tf_substrates]
packages = ["some_package"]
substrates = ["numpy", "jax"]

[tool.tf_substrates.omit]
numpy = ["some_package.training"]

[[tool.tf_substrates.disabled]]
test = "tests/test_prices.py::PriceTest::test_delta"
substrates = ["numpy"]
reason = "NumPy has no derivatives"
kind = "never"
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import pathlib
import tomllib
from collections.abc import Collection, Iterable
from typing import Any

from tf_substrates.rewriter.packages import Planned, planned, source_of, write

SUBSTRATES = ("numpy", "jax")
KINDS = ("never", "not yet")
_TABLE = "tool.tf_substrates"


@dataclasses.dataclass(frozen=True)
class Disabled:
    """A test that fails on some substrates, and why.

    Attributes:
      test: its name as pytest prints it without a substrate: `tests/test_a.py::ATest::test_b`.
        What stands below it is disabled too.
      kind: "never" where no substrate of that kind can pass it, "not yet" where one should.
    """

    test: str
    substrates: tuple[str, ...]
    reason: str
    kind: str = "not yet"


@dataclasses.dataclass(frozen=True)
class Project:
    """What a project says about its substrates.

    Attributes:
      folder: where its pyproject.toml is, beside its packages or beside `src`.
      packages: its packages that are rewritten, together.
      substrates: on which ones.
      omit: modules that a substrate leaves out.
      disabled: tests that fail.
    """

    folder: pathlib.Path
    packages: tuple[str, ...]
    substrates: tuple[str, ...] = SUBSTRATES
    omit: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    disabled: tuple[Disabled, ...] = ()

    def source(self, package: str) -> pathlib.Path:
        """The folder of one of the packages: the project's own, else an installed one.

        Raises:
          ModuleNotFoundError: there is none.
        """
        for parent in (self.folder, self.folder / "src"):
            if (parent / package / "__init__.py").is_file():
                return parent / package
        return source_of(package)

    def rewrite(self, substrate: str, out: str | os.PathLike) -> list[pathlib.Path]:
        """Writes the packages on a substrate into a folder, and returns where each is."""
        return write(self.planned(substrate, out))

    def planned(self, substrate: str, out: str | os.PathLike) -> list[Planned]:
        """What `rewrite` of the same arguments will write. It writes nothing."""
        return [
            planned(
                str(self.source(package)),
                substrate,
                out,
                self.omit.get(substrate, ()),
                others=[other for other in self.packages if other != package],
            )
            for package in self.packages
        ]


def read(file: str | os.PathLike) -> Project:
    """The table of a pyproject.toml.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: it has no such table, or the table has an unknown key or a value of another type.
    """
    path = pathlib.Path(file)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: there is no such file. What to do: give a package to rewrite, or the"
            f" pyproject.toml with the table [{_TABLE}] in --project."
        )
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except ValueError as error:
        raise ValueError(f"{path}: it is no file of TOML: {error}.") from error
    if "tf_substrates" not in tool:
        raise ValueError(
            f"{path}: there is no table [{_TABLE}]. What to do: add one that names `packages`."
        )
    return _Reader(path).project(tool["tf_substrates"])


class _Reader:
    """Checks the table; what is refused is named by its path in the file."""

    def __init__(self, file: pathlib.Path):
        self.file = file

    def refuse(self, where: str, what: str) -> ValueError:
        return ValueError(f"{self.file}: {where} {what}")

    def project(self, table: Any) -> Project:
        table = self.table(table, _TABLE, ("packages",), ("substrates", "omit", "disabled"))
        omit = self.table(table.get("omit", {}), f"{_TABLE}.omit", (), SUBSTRATES)
        disabled = table.get("disabled", [])
        if not isinstance(disabled, list):
            raise self.refuse(f"{_TABLE}.disabled", f"is a list of tables, not {disabled!r}.")
        packages = self.texts(table["packages"], f"{_TABLE}.packages")
        for name in packages:
            if not name.isidentifier():
                raise self.refuse(f"{_TABLE}.packages", f"has names of packages, not {name!r}.")
        return Project(
            self.file.parent,
            packages,
            self.substrates(table.get("substrates", list(SUBSTRATES)), f"{_TABLE}.substrates"),
            {name: self.texts(value, f"{_TABLE}.omit.{name}") for name, value in omit.items()},
            tuple(self.disabled(d, f"{_TABLE}.disabled[{i}]") for i, d in enumerate(disabled)),
        )

    def disabled(self, table: Any, where: str) -> Disabled:
        table = self.table(table, where, ("test", "reason"), ("substrates", "kind"))
        for key in ("test", "reason"):
            if not isinstance(table[key], str) or not table[key]:
                raise self.refuse(f"{where}.{key}", f"is a text, not {table[key]!r}.")
        names = self.substrates(table.get("substrates", list(SUBSTRATES)), f"{where}.substrates")
        kind = table.get("kind", "not yet")
        if kind not in KINDS:
            raise self.refuse(f"{where}.kind", f"is 'never' or 'not yet', not {kind!r}.")
        return Disabled(table["test"], names, table["reason"], kind)

    def table(
        self, value: Any, where: str, needed: Iterable[str], known: Collection[str]
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(where, f"is a table, not {value!r}.")
        allowed = [*needed, *known]
        for key in value:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                raise self.refuse(
                    where,
                    f"has an unknown key {key!r}. Known are: {', '.join(allowed)}."
                    + (f" Near it is: {near[0]}." if near else ""),
                )
        for key in needed:
            if key not in value:
                raise self.refuse(where, f"has no key {key!r}, which it needs.")
        return value

    def texts(self, value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(where, f"is a list of texts, not {value!r}.")
        return tuple(value)

    def substrates(self, value: Any, where: str) -> tuple[str, ...]:
        names = self.texts(value, where)
        for name in names:
            if name not in SUBSTRATES:
                raise self.refuse(where, f"has 'numpy' and 'jax', not {name!r}.")
        return names
