"""Primitives: which exist, which library defines them, how JAX compiles those of others."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jax._src import core as _jax_core
from jax._src.interpreters import mlir as _mlir

from jax2tf._src.util.typing import Param, PyTree

if TYPE_CHECKING:
    # Importing jax.extend takes JAX longer than this package takes for all that it imports at once.
    from jax.extend import core as jex_core


# The primitives of `prng` were in other modules until JAX 0.10.1.
_MODULES_OF_PRIMITIVES = (
    "jax._src.callback",
    "jax._src.core",
    "jax._src.custom_partitioning",
    "jax._src.cudnn.scaled_matmul_stablehlo",
    "jax._src.debugging",
    "jax._src.export.shape_poly",
    "jax._src.lax.control_flow.conditionals",
    "jax._src.lax.control_flow.loops",
    "jax._src.lax.lax",
    "jax._src.lax.linalg",
    "jax._src.lax.parallel",
    "jax._src.lax.scaled_dot",
    "jax._src.pjit",
    "jax._src.prng",
    "jax._src.random",
    "jax._src.random.core",
    "jax._src.random.prng",
    "jax._src.shard_map",
    "jax._src.xla_metadata",
)


def modules_of_primitives() -> Iterator[types.ModuleType]:
    """Modules with primitives that jax.extend.core.primitives and jax.lax do not name."""
    for name in _MODULES_OF_PRIMITIVES:
        with contextlib.suppress(ModuleNotFoundError):
            yield importlib.import_module(name)


def is_implemented_by_jax(primitive: jex_core.Primitive) -> bool:
    """Whether the primitive has only JAX's own implementation, which binds it again or raises.

    Only the module of the function tells.
    """
    function = getattr(primitive.impl, "func", primitive.impl)  # opens a functools.partial
    return (getattr(function, "__module__", None) or "jaxlib").startswith(("jax._src", "jaxlib"))


def compiled_function(primitive: jex_core.Primitive) -> Callable[..., PyTree] | None:
    """The JAX function that mlir.lower_fun made the lowering of `primitive`; None for other rules.

    lower_fun keeps it in a closure, and the registry of lowerings has no public name.
    """
    entry = _mlir._lowerings.get(primitive)
    if entry is None or getattr(entry.rule, "__qualname__", "") != _LOWERED_FUNCTION:
        return None
    closure = inspect.getclosurevars(entry.rule).nonlocals
    function, multiple_results = closure["fun"], closure["multiple_results"]
    return function if multiple_results else lambda *args, **params: [function(*args, **params)]


_LOWERED_FUNCTION = _mlir.lower_fun(lambda: ()).__qualname__


def is_compiled_by_others(primitive: jex_core.Primitive) -> bool:
    """Whether another library has registered a lowering of `primitive` for JAX's compiler."""
    return any(not _is_jax_own(rule) for rule in _lowerings_of(primitive))


def is_compiled_by_jax(primitive: jex_core.Primitive) -> bool:
    """Whether JAX itself has a lowering of `primitive`, for any device."""
    return any(map(_is_jax_own, _lowerings_of(primitive)))


def _lowerings_of(primitive: jex_core.Primitive) -> list[Callable[..., PyTree]]:
    """The lowerings of `primitive` for all devices; their registries have no public names."""
    registries = (_mlir._lowerings, *_mlir._platform_specific_lowerings.values())
    return [lowerings[primitive].rule for lowerings in registries if primitive in lowerings]


def _is_jax_own(function: Callable[..., PyTree]) -> bool:
    function = getattr(function, "func", function)  # opens a functools.partial
    return (getattr(function, "__module__", None) or "jaxlib").startswith(("jax.", "jaxlib"))


def pallas_interpreter(params: dict[str, Param]) -> Callable[..., PyTree] | None:
    """The JAX function that interprets a pallas_call with interpret=True; None without it.

    It has no public name. It is imported here, because importing pallas takes a second.
    """
    if params.get("interpret") is not True:
        return None
    from jax._src.pallas import hlo_interpreter

    others = {name: value for name, value in params.items() if name != "interpret"}
    return functools.partial(hlo_interpreter.pallas_call_hlo_interpret, **others)


def is_collective(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation names an axis, for which JAX gives it a private effect.

    An equation that calls a jaxpr has the effects of that jaxpr's equations.
    """
    return any(isinstance(effect, _jax_core.NamedAxisEffect) for effect in eqn.effects)
