"""A harness: one use of one primitive, with what it is fed and how near the answer has to be."""

import importlib
import inspect
import os
import pkgutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np
from packaging.specifiers import SpecifierSet

from harnesses.harness.arguments import Arg
from harnesses.harness.dtypes import is_complex, is_float

# ULPs by which a result of a dtype may differ where a harness states nothing. Dtypes that are not
# listed, integers and bool among them, are compared exactly.
DEFAULT_ULPS: Mapping[str, int] = {
    "bfloat16": 1,
    "float16": 1,
    "float32": 4,
    "float64": 4,
    "complex64": 4,
    "complex128": 4,
}

# Families that move or cast values and compute none: not a bit may differ.
EXACT_FAMILIES = frozenset({"arrays", "conversions", "indexing", "sorting"})

# Of the files of families, the beginning of their paths.
_INSIDE = f"{Path(__file__).parents[1]}{os.sep}"
# What else lies there; the harnesses of other directions, which need TensorFlow, are imported on
# demand.
_NO_FAMILIES = frozenset(
    f"harnesses.{name}"
    for name in ("__main__", "call_tf", "cell", "engine", "harness", "probes", "substrates")
)

CONVERT = "convert"
# The families of harnesses that ask about another direction: TensorFlow inside JAX, and
# TensorFlow's API without TensorFlow.
CALL_TF = "call_tf"
SUBSTRATES = "substrates"
DIRECTIONS = (CONVERT, CALL_TF, SUBSTRATES)

_SIXTY_FOUR_BITS = frozenset({"int64", "uint64", "float64", "complex128"})

Check = Callable[[tuple, Any, Any], float]


@dataclass(frozen=True)
class Harness:
    """One use of one primitive. `define` makes them; see there for the meaning of each field."""

    family: str
    primitive: str
    name: str
    fun: Callable[..., Any]
    args: Any
    dtype: np.dtype
    params: Mapping[str, Any]
    ulps: int | Mapping[str, int] | None
    scale: str
    x64: bool
    tags: frozenset[str]
    check: Check | None
    where: str = field(compare=False)
    jax_versions: str | None = None

    @property
    def direction(self) -> str:
        """What is asked about: "convert" of a JAX function, "call_tf" of a TensorFlow one, or the
        "substrates" of a program that is written against TensorFlow.
        """
        return _direction(self.family)

    def make_args(self, example: int = 0) -> tuple:
        """The arguments of `fun`: the same NumPy arrays on every call, others for each example."""
        seed = f"{self.name}#{example}" if example else self.name
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        return jax.tree.map(lambda arg: arg.make(rng), tuple(self.args), is_leaf=_is_arg)

    def runs_on(self, version: str) -> bool:
        """Whether a version of JAX has what the harness asks for."""
        asked = self.jax_versions
        return asked is None or SpecifierSet(asked).contains(version, prereleases=True)

    def tolerance(self, dtype: np.dtype) -> float:
        """How many ULPs a result of `dtype` may be away from JAX's."""
        if isinstance(self.ulps, int):
            return self.ulps if is_float(dtype) or is_complex(dtype) else 0
        stated = {} if self.family in EXACT_FAMILIES else DEFAULT_ULPS
        return (stated if self.ulps is None else self.ulps).get(dtype.name, 0)


# By direction and name: two directions may ask about the same function.
_REGISTRY: dict[tuple[str, str], Harness] = {}


def define(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    args: Any,
    *,
    dtype: Any,
    params: Mapping[str, Any] | None = None,
    ulps: int | Mapping[str, int] | None = None,
    scale: str = "element",
    x64: bool | None = None,
    tags: tuple[str, ...] = (),
    check: Check | None = None,
    jax_versions: str | None = None,
    family: str | None = None,
) -> Harness:
    """Adds a harness named `{primitive}_{case}_{dtype}` to the database.

    Args:
      primitive: the name of the primitive, or of the public function, that is asked about.
      case: what is special about this use; empty for the plain one.
      fun: what is converted. It takes the arrays that `args` describe.
      args: a list or tuple of argument makers; an element may be a pytree of makers.
      dtype: the dtype that the harness claims to work for.
      params: the params that matter, to show and for limitations to refer to.
      ulps: the tolerance, for every floating result or by dtype name (a dtype that is not named:
        0). None: 0 in `EXACT_FAMILIES`, `DEFAULT_ULPS` elsewhere. Integers and bools are exact.
      scale: "element" measures in ULPs of each expected element; "array" in ULPs of the largest
        finite one, for contractions and for reductions in which terms cancel.
      x64: whether 64-bit dtypes are enabled. None: if an argument or `dtype` has 64 bits.
      tags: "any_zero_sign" lets zeros of either sign agree; "ordered" means that the result depends
        on the order in which XLA combines numbers, which a GPU leaves open; "not_grad", "not_jvp"
        ... mean that a TensorFlow function is not asked about in that mode; "raises" that a program
        of the substrates raises, so that the class of the exception is what is compared.
      check: `check(args, expected, actual)` returns the error in ULPs instead of the comparison of
        values; for results that are right in more than one way (Q and R, eigenvectors).
      jax_versions: a version specifier such as ">=0.12", for what other versions of JAX lack. State
        it rather than defining the harness under a condition: tables list those of all versions.
      family: only for harnesses that are not defined in a family's module.

    Raises:
      ValueError: if the name is taken; names both places.
    """
    module, where = _caller()
    dtype = np.dtype(dtype)
    name = "_".join(part for part in (primitive, case, dtype.name) if part)
    family = family or module.removeprefix("harnesses.").partition(".")[0]
    key = _direction(family), name
    if key in _REGISTRY:
        raise ValueError(
            f"two harnesses are named {name!r}: {_REGISTRY[key].where} and {where}; "
            "give one of them another case"
        )
    if scale not in ("element", "array"):
        raise ValueError(f"harness {name!r} at {where}: scale={scale!r}, not 'element' or 'array'")
    if x64 is None:
        leaves = jax.tree.leaves(tuple(args), is_leaf=_is_arg)
        x64 = not _SIXTY_FOUR_BITS.isdisjoint([dtype.name, *(arg.dtype.name for arg in leaves)])
    harness = Harness(
        family=family,
        primitive=primitive,
        name=name,
        fun=fun,
        args=args,
        dtype=dtype,
        params=dict(params or {}),
        ulps=ulps,
        scale=scale,
        x64=x64,
        tags=frozenset(tags),
        check=check,
        where=where,
        jax_versions=jax_versions,
    )
    _REGISTRY[key] = harness
    return harness


def all_harnesses(
    jax_version: str | None = jax.__version__, direction: str = CONVERT
) -> list[Harness]:
    """Every harness of a direction that a version of JAX can run, in the order of definition.

    By default of the running JAX; with None of all versions.
    """
    import harnesses

    if direction == CONVERT:
        _import_families(harnesses.__path__)
    else:
        importlib.import_module(f"harnesses.{direction}")  # that of call_tf imports TensorFlow
    every = [harness for harness in _REGISTRY.values() if harness.direction == direction]
    return [h for h in every if jax_version is None or h.runs_on(jax_version)]


def harnesses_elsewhere(direction: str = CONVERT) -> list[Harness]:
    """Every harness of a direction that the running version of JAX does not run."""
    every = all_harnesses(None, direction)
    return [harness for harness in every if not harness.runs_on(jax.__version__)]


def _direction(family: str) -> str:
    return family if family in DIRECTIONS else CONVERT


def _caller() -> tuple[str, str]:
    """The module that asked for a harness, and the place: `linalg.py:12`, `functions/nn.py:3`.

    The place is the statement of the module that stands for the harness, a loop over a table or the
    call of a helper, not the line of the helper that all harnesses come through.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith("harnesses.harness."):
        frame = frame.f_back
    assert frame is not None
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(_INSIDE):
        if outer.f_code.co_name == "<module>":
            frame = outer
            break
        outer = outer.f_back
    # Text and no paths: ten thousand harnesses ask, before the first cell of every run.
    file = frame.f_code.co_filename
    inside = file.removeprefix(_INSIDE) if file.startswith(_INSIDE) else os.path.basename(file)
    return frame.f_globals["__name__"], f"{inside.replace(os.sep, '/')}:{frame.f_lineno}"


def _import_families(path: Iterable[str], prefix: str = "harnesses.") -> None:
    """Imports the modules of all families; a large family is a package of them."""
    for module in pkgutil.iter_modules(path, prefix):
        if module.name in _NO_FAMILIES:
            continue
        imported = importlib.import_module(module.name)
        if module.ispkg:
            _import_families(imported.__path__, f"{module.name}.")


def _is_arg(node: Any) -> bool:
    return isinstance(node, Arg)
