"""The layers of tf_substrates/numpy: which module may import which, also in functions.

A module imports from its own layer and from those before it, and nothing in a circle.
"""

from __future__ import annotations

import ast
import graphlib
import pathlib

import pytest

import tf_substrates

PACKAGE = pathlib.Path(tf_substrates.__file__).parent
NUMPY = "tf_substrates.numpy."
# From the first to the last; a module that stands nowhere is an operation.
LAYERS = {
    "tensors": {
        *("array_classes", "captures", "debugging", "derivable_loops", "dtypes", "errors"),
        *("known_values", "namespaces", "nest", "nest_up_to", "operands", "recorded_operators"),
        *("recording", "registered_types", "shapes", "tensors", "traced_variables"),
    },
    "operations": set(),
    "control flow and derivatives": {
        *("branches", "carried", "composite_tensors", "control_flow", "counted_loops"),
        *("forward_accumulator", "functions", "gradient_tape", "modules", "python_functions"),
        *("tensor_array", "variables", "while_loops"),
    },
    "values made of tensors, and tests": {
        *("compiled_tests", "graph_names", "indexed_slices", "initializers", "linear_operators"),
        *("test_case", "testing"),
    },
    "the API": {"static", "tf"},
}
ORDER = list(LAYERS)
# Modules that import another one when they are called, by importlib: of the NumPy side, whose
# classes and results JAX's side takes, or of what is made by what they register.
DYNAMIC = {"errors", "known_values", "matrix_functions", "namespaces", "random"}


def _name(path: pathlib.Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {_name(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def _imported(source: str, name: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (full & set(SOURCES)) | ({node.module} if full - set(SOURCES) else set())
    return (found & set(SOURCES)) - {name}


IMPORTS = {name: _imported(source, name) for name, source in SOURCES.items()}


def _layer(module: str) -> str:
    part = module.removeprefix(NUMPY).partition(".")[0]
    return next((layer for layer, parts in LAYERS.items() if part in parts), "operations")


def _is_allowed(module: str, other: str) -> bool:
    return ORDER.index(_layer(module)) >= ORDER.index(_layer(other))


def test_there_is_no_circle_of_imports():
    try:
        graphlib.TopologicalSorter(IMPORTS).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_modules_import_from_their_layer_and_those_before():
    wrong = {
        (module, other)
        for module, others in IMPORTS.items()
        for other in others
        if module.startswith(NUMPY) and other.startswith(NUMPY) and not _is_allowed(module, other)
    }
    assert sorted(wrong) == []


def test_the_layers_name_modules_that_are_there():
    names = {name.removeprefix(NUMPY) for name in SOURCES if name.startswith(NUMPY)}
    assert set().union(*LAYERS.values()) <= names


@pytest.mark.parametrize(
    ("module", "other"), [("tensors", "linalg"), ("reductions", "while_loops"), ("variables", "tf")]
)
def test_an_arrow_that_runs_back_is_seen(module, other):
    assert not _is_allowed(NUMPY + module, NUMPY + other)


def test_imports_when_called_are_those_that_are_listed():
    calls = {
        name.removeprefix(NUMPY)
        for name, source in SOURCES.items()
        if name.startswith(NUMPY) and "import_module(" in source
    }
    assert calls == DYNAMIC
