"""The rooms of the package: which module may import which, also for types only.

`ARROWS` says what the rooms of _src/lowering may import of each other, and `USERS` who else may
import them. An import that is not allowed, and that cannot be mended yet, stands in `EXCEPTIONS`
and goes from there with the import.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import pathlib

import pytest

import jax2tf

PACKAGE = pathlib.Path(jax2tf.__file__).parent
LOWERING = "jax2tf._src.lowering."
MAX_LINES, MAX_ENTRIES = 450, 20

ARROWS = {
    "refusals": set(),
    "registry": set(),
    "supported": {"refusals"},
    "context": {"registry", "refusals"},
    "emit": {"context", "registry", "refusals", "supported"},
    "a rule": {"emit", "context", "registry", "supported"},
    "rules": {"a rule"},
    "passes": {"emit", "context", "registry"},
    "foreign": {"emit", "context", "registry"},
    "pipeline": {"passes", "registry", "foreign"},
    "plan": {"pipeline", "passes", "registry", "emit", "refusals"},
    "eager": {"pipeline", "plan", "emit", "context"},
    "shared_functions": set(),
    "interpreter": {
        *("plan", "pipeline", "eager", "rules", "shared_functions", "passes", "emit"),
        *("context", "supported"),
    },
}
USERS = {
    "interpreter": {"api", "gradients", "export", "explain", "native"},
    "pipeline": {"api", "explain", "locate"},
    "registry": {"explain"},
    "eager": {"api"},
    "passes": {"api", "gradients", "export", "explain", "locate"},
    "supported": {"api", "explain"},
    "emit": {"api", "call_tf", "native"},
    "refusals": {"native"},
}
EXCEPTIONS: set[tuple[str, str]] = set()


def _name(path: pathlib.Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {_name(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def _imported(source: str, name: str, modules: set[str]) -> set[str]:
    """The modules that a source names in import statements, wherever these stand."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= (full & modules) | ({node.module} if full - modules else set())
    return (named & modules) - {name}


IMPORTS = {name: _imported(source, name, set(SOURCES)) for name, source in SOURCES.items()}
EDGES = [(name, other) for name, others in IMPORTS.items() for other in sorted(others)]


@functools.cache
def _room(module: str) -> str:
    """A part of lowering, or the package under _src that a module is in."""
    if not module.startswith(LOWERING):
        return module.removeprefix("jax2tf._src.").partition(".")[0]
    part, _, rest = module.removeprefix(LOWERING).partition(".")
    return "a rule" if part == "rules" and rest else part


def _is_allowed(module: str, other: str) -> bool:
    room, inner = _room(module), _room(other)
    if not other.startswith(LOWERING) or (room == inner != "a rule"):
        return True
    if module.startswith(LOWERING):
        return inner in ARROWS[room]
    return room in USERS.get(inner, ())


def test_there_is_no_circle_of_imports():
    # To import a module runs the packages that it is in.
    graph = {
        name: others | {p for other in others for p in _packages(other) - _packages(name) - {name}}
        for name, others in IMPORTS.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def _packages(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts) + 1)} - {module}


def test_imports_are_those_of_the_floor_plan():
    wrong = {edge for edge in EDGES if not _is_allowed(*edge)}
    assert sorted(wrong - EXCEPTIONS) == [], "not in ARROWS and USERS"
    assert sorted(EXCEPTIONS - wrong) == [], "exceptions that are not needed any more"


@pytest.mark.parametrize(
    "edge",
    [
        ("lowering.rules.arrays", "lowering.rules.casts"),
        ("lowering.emit.arrays", "lowering.rules.casts"),
        ("lowering.emit.arrays", "lowering.passes.masks"),
        ("lowering.context", "lowering.interpreter"),
        ("lowering.interpreter", "lowering.rules.casts"),
        ("tracing.trace", "lowering.interpreter"),
    ],
)
def test_an_arrow_that_runs_back_is_seen(edge):
    assert not _is_allowed(*(f"jax2tf._src.{module}" for module in edge))


def test_only_rules_register():
    registers = {
        name
        for name, source in SOURCES.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == f"{LOWERING}registry"
        if any(alias.name.startswith("register") for alias in node.names)
    }
    rules = {name for name in SOURCES if _room(name) == "a rule"}
    assert sorted(registers - rules) == []
    assert sorted(rules - registers) == [], "modules of rules/ that register no rule"


def test_no_module_is_long():
    lines = {name: source.count("\n") for name, source in SOURCES.items()}
    assert {name: number for name, number in lines.items() if number > MAX_LINES} == {}


def test_few_entries_stand_at_the_top():
    entries = [path.name for path in (PACKAGE / "_src").iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


def test_imports_are_seen_wherever_they_stand():
    source = (
        "if TYPE_CHECKING:\n    from a import b\ndef f():\n    import c\n    from d.e import g\n"
    )
    assert _imported(source, "here", {"a.b", "c", "d.e", "f"}) == {"a.b", "c", "d.e"}
