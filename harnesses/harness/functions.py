"""Public functions as a table: each under its name, with one call of it or several.

    define_functions("jax.numpy", {
        "cumsum": use(Normal((3, 4), "float32"), axis=1),
        "percentile": use(Normal((8,), "float32"), 30).but(ulps=2),
    })

The function is looked up by its name, so a harness cannot ask about another one.
"""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from harnesses.harness.definition import is_arg
from harnesses.harness.families import define

# Of these and all public modules below them, each function has a harness or a reason.
PUBLIC_MODULES = (
    "jax.numpy",
    "jax.lax",
    "jax.scipy",
    "jax.nn",
    "jax.random",
    "jax.image",
    "jax.ops",
)


@dataclasses.dataclass(frozen=True)
class Use:
    """One call of a public function. `use` makes them."""

    args: tuple
    kwargs: Mapping[str, Any]
    then: Callable[[Any], Any] | None = None
    within: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    case: str = ""
    dtype: Any = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def but(
        self,
        *,
        then: Callable[[Any], Any] | None = None,
        within: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
        case: str = "",
        dtype: Any = None,
        **options: Any,
    ) -> "Use":
        """The same call, of which more is said.

        Args:
          then: what the harness does with the result: arrays out of an object, a shape into arrays.
          within: a transformation of the harness's function, such as a vmap with a named axis.
          case: what is special about it, where there are several of a function.
          dtype: the dtype that the harness claims; by default that of the first array.
          **options: of `define`, such as `ulps`, `check` or `jax_versions`.
        """
        return dataclasses.replace(
            self,
            then=then or self.then,
            within=within or self.within,
            case=case or self.case,
            dtype=dtype or self.dtype,
            options={**self.options, **options},
        )


def use(*args: Any, **kwargs: Any) -> Use:
    """A call with these arguments; makers in them, at any depth, stand for the harness's arrays.

    Whatever else there is, sizes and axes and functions, is the same on every call.
    """
    return Use(args, kwargs)


def each(names: str, *calls: Use) -> dict[str, tuple[Use, ...]]:
    """The same calls of several functions, whose names stand with spaces between them."""
    return dict.fromkeys(names.split(), calls)


def define_functions(
    module: str,
    uses: Mapping[str, Use | Sequence[Use]],
    *,
    ulps: Mapping[str, int] | None = None,
) -> None:
    """Defines the harnesses of public functions of `module`, each named `{module}.{function}_...`.

    A name with a dot is that of an attribute of an attribute: "norm.pdf" of "jax.scipy.stats".
    `ulps` holds the tolerances of the functions that need more than the default.
    """
    for name, calls in uses.items():
        for call in [calls] if isinstance(calls, Use) else calls:
            _define(module, name, call, (ulps or {}).get(name))


def _define(module: str, name: str, call: Use, ulps: int | None) -> None:
    tree: Any
    leaves, tree = jax.tree.flatten((call.args, dict(call.kwargs)), is_leaf=is_arg)
    makers = [leaf for leaf in leaves if is_arg(leaf)]

    def fun(*arrays: Any) -> Any:
        given = iter(arrays)
        args, kwargs = tree.unflatten(next(given) if is_arg(leaf) else leaf for leaf in leaves)
        result = public_function(module, name)(*args, **kwargs)
        return result if call.then is None else call.then(result)

    dtype = call.dtype or (makers[0].dtype if makers else np.float32)
    # How exact each element is, is asked of the primitives: a composition may cancel.
    options = {"scale": "array", "ulps": ulps, **call.options}
    transformed = fun if call.within is None else call.within(fun)
    define(f"{module}.{name}", call.case, transformed, makers, dtype=dtype, **options)


def public_names() -> set[str]:
    """The full names of all that JAX's public modules hold for calling, classes included."""
    return {
        f"{module.__name__}.{name}"
        for module in _public_modules()
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    }


def _public_modules() -> Iterator[ModuleType]:
    for package in PUBLIC_MODULES:
        module = importlib.import_module(package)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
            if not any(part.startswith("_") for part in found.name.split(".")):
                yield importlib.import_module(found.name)


def public_function(module: str, name: str) -> Any:
    """What a public module has under a name, which may be one with dots."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
