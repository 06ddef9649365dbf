"""The database: every harness that the families' builders define."""

import importlib
import pkgutil
from types import ModuleType

import jax

from harnesses.harness import place
from harnesses.harness.definition import CONVERT, Harness
from harnesses.harness.families import harnesses_of_builders

_PACKAGE = f"{place.PREFIX}harnesses"
# What lies beside the families; the harnesses of other directions, which need TensorFlow, are
# imported on demand.
_NO_FAMILIES = frozenset(
    f"{_PACKAGE}.{name}"
    for name in ("__main__", "call_tf", "cell", "engine", "harness", "probes", "substrates")
)


def all_harnesses(
    jax_version: str | None = jax.__version__, direction: str = CONVERT
) -> list[Harness]:
    """Every harness of a direction that a version of JAX can run, in the order of definition.

    By default of the running JAX; with None of all versions.
    """
    package = _PACKAGE if direction == CONVERT else f"{_PACKAGE}.{direction}"
    _import_modules(importlib.import_module(package))
    every = [h for h in harnesses_of_builders() if h.direction == direction]
    return [h for h in every if jax_version is None or h.runs_on(jax_version)]


def harnesses_elsewhere(direction: str = CONVERT) -> list[Harness]:
    """Every harness of a direction that the running version of JAX does not run."""
    every = all_harnesses(None, direction)
    return [harness for harness in every if not harness.runs_on(jax.__version__)]


def _import_modules(package: ModuleType) -> None:
    """Imports the modules of a package that hold families; a large family is a package of them."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name in _NO_FAMILIES:
            continue
        imported = importlib.import_module(module.name)
        if module.ispkg:
            _import_modules(imported)
