"""Random programs as users write them: trees of mixed dtypes in and out, JAX's transformations
nested inside, arrays captured from outside, keys, keyword arguments, defaults, static arguments.

A program works on a list of values, each of a kind. Floats and numbers of half precision never
become one another, because a number that rounding changed in half precision is wrong in single.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.impl.fuzzing import functions, kinds

Draw = Callable[[st.SearchStrategy], Any]
STATICS = {"n": (0, 1, 3), "how": ("sin", "cos"), "flag": (False, True, None)}


class Pair(NamedTuple):
    """A tuple with names, as arguments and results often are."""

    first: Any
    second: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Leaf:
    """An array that the program takes."""

    kind: str
    dtype: Any
    shape: tuple[int, ...]
    seed: int

    def value(self, rows: int = 0) -> Any:
        """An array of this kind; `rows` more than the shape says, where it has rows."""
        shape = (self.shape[0] + rows, *self.shape[1:]) if self.has_rows else self.shape
        rng = np.random.default_rng(self.seed)
        if self.kind == "key":
            return jax.random.wrap_key_data(rng.integers(0, 9, (2,)).astype(np.uint32))
        if self.kind == "raw key":
            return rng.integers(0, 9, (2,)).astype(np.uint32)
        if self.kind == "complex":
            real, imaginary = rng.integers(-4, 5, (2, *shape)) / 2
            return (real + 1j * imaginary).astype(self.dtype)
        if self.kind in ("float", "half"):
            return np.asarray(rng.integers(-8, 9, shape) / 4).astype(self.dtype)
        return np.asarray(rng.integers(0, 5, shape)).astype(self.dtype)

    @property
    def has_rows(self) -> bool:
        return len(self.shape) == 2

    @property
    def is_inexact(self) -> bool:
        return self.kind in ("float", "half", "complex")

    def __repr__(self) -> str:
        name = "key" if self.kind == "key" else np.dtype(self.dtype).name
        return f"{name}{list(self.shape)}#{self.seed}"


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """A function of some of the values so far, and the functions of one array that it is given."""

    name: str
    operands: tuple[int, ...]
    parts: tuple[functions.Part, ...]

    def __call__(self, values: Sequence[Any]) -> Any:
        function = kinds.STEPS[self.name].function
        return function(functions.chain(self.parts), *(values[i] for i in self.operands))

    def __repr__(self) -> str:
        return f"{self.name}{list(self.parts) or ''}{self.operands}"


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A JAX function and what it is called with.

    Attributes:
      leaves: the arrays that it takes.
      args, kwargs: trees of indices into `leaves`; an index may stand there twice, or nowhere.
      steps: what it computes.
      result: a tree of indices into leaves and results of steps.
      scalars: keyword arguments that are Python numbers or None, by name.
      statics: arguments that are no arrays, by name; the program is jitted where there are any.
    """

    leaves: tuple[Leaf, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    steps: tuple[Step, ...]
    result: Any
    scalars: dict[str, Any]
    statics: dict[str, Any]

    def __call__(self, *args: Any, factor: Any = 2.0, nothing: Any = None, **kwargs: Any) -> Any:
        statics = {name: kwargs.pop(name) for name in self.statics}
        values: list[Any] = [None] * len(self.leaves)
        for index, value in zip(
            jax.tree.leaves((self.args, self.kwargs)), jax.tree.leaves((args, kwargs)), strict=True
        ):
            # What is passed twice counts twice in a gradient.
            values[index] = value if values[index] is None else kinds.both(values[index], value)
        # What is not passed is captured; NumPy's own arithmetic has other dtypes.
        pairs = zip(self.leaves, values, strict=True)
        values = [jnp.asarray(leaf.value() if v is None else v) for leaf, v in pairs]
        for step in self.steps:
            values.append(kinds.with_statics(step(values), factor, statics))
        return jax.tree.map(lambda i: values[i], self.result)

    def call(self, fun: Callable[..., Any], values: Sequence[Any]) -> Any:
        """What `fun` gives for values of the leaves, where the program's trees have them."""
        args, kwargs = jax.tree.map(lambda i: values[i], (self.args, self.kwargs))
        return fun(*args, **kwargs, **self.scalars, **self.statics)

    @property
    def function(self) -> Callable[..., Any]:
        """The program as it is given to JAX and to `convert`."""
        return self.jitted if self.statics else self

    @property
    def jitted(self) -> Callable[..., Any]:
        """The program under jax.jit, with its static arguments."""
        return jax.jit(self.__call__, static_argnames=tuple(self.statics))

    def with_other_statics(self) -> Program:
        """The program for the next value of each static argument."""
        after = {
            name: STATICS[name][(STATICS[name].index(value) + 1) % len(STATICS[name])]
            for name, value in self.statics.items()
        }
        return dataclasses.replace(self, statics=after)

    @property
    def passed(self) -> list[int]:
        """Which leaves are arguments."""
        return sorted(set(jax.tree.leaves((self.args, self.kwargs))))


def _trees(draw: Draw, indices: Sequence[int], depth: int = 1) -> Any:
    """A tree of some of the indices, with None and empty trees in it."""
    form = draw(st.sampled_from(("one", "one", "dict", "tuple", "list", "pair", "none", "empty")))
    if form in ("none", "empty") or not indices:
        return draw(st.sampled_from((None, (), {}))) if form == "empty" else None
    if form == "one" or not depth:
        return draw(st.sampled_from(indices))
    items = [_trees(draw, indices, depth - 1) for _ in range(draw(st.integers(1, 3)))]
    if form == "dict":
        return dict(zip("bac", items, strict=False))
    if form == "pair":
        return Pair(items[0], items[-1])
    return items if form == "list" else tuple(items)


@st.composite
def programs(
    draw: Draw,
    reverse: bool = True,
    statics: tuple[int, int] = (1, 8),
    steps: Sequence[str] = tuple(kinds.STEPS),
    parts: Sequence[str] = tuple(functions.ALL | functions.LEAVES),
) -> Program:
    """A program.

    Args:
      reverse: whether it may hold what JAX differentiates in reverse mode alone.
      statics: how many programs of how many have static arguments.
      steps: among which steps its own are; there are arguments for the first one of them.
      parts: among which parts those of its steps are.
    """
    named, chosen = steps, []
    leaves = _leaves(draw, kinds.STEPS[named[0]].operands)
    args = tuple(_trees(draw, range(len(leaves))) for _ in range(draw(st.integers(1, 3))))
    kwargs = {n: _trees(draw, range(len(leaves))) for n in ("k", "l") if draw(st.booleans())}
    values = [leaf.kind for leaf in leaves]
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        possible = [n for n in named if set(kinds.STEPS[n].operands) <= set(values)]
        name = draw(st.sampled_from(possible))
        step = kinds.STEPS[name]
        operands = tuple(
            draw(st.sampled_from([i for i, v in enumerate(values) if v == kind]))
            for kind in step.operands
        )
        half = step.result == "half"
        drawn = functions.parts(half=half, reverse=reverse, among=parts)
        chosen.append(Step(name, operands, draw(drawn) if step.takes_parts else ()))
        values.append(step.result)
    last = range(len(leaves), len(values))
    result = {"results": [*last], "some": _trees(draw, range(len(values)))}
    return Program(
        leaves=leaves,
        args=args,
        kwargs=kwargs,
        steps=tuple(chosen),
        result=draw(st.sampled_from((result, [*last], last[-1], result["some"]))),
        scalars=draw(st.sampled_from(({}, {}, {"factor": 3}, {"factor": 1.5, "nothing": None}))),
        statics=_statics(draw) if draw(st.integers(1, statics[1])) <= statics[0] else {},
    )


def _leaves(draw: Draw, wanted: Sequence[str]) -> tuple[Leaf, ...]:
    rows = draw(st.sampled_from((2, 2, 1, 0)))
    wide = jax.config.jax_enable_x64 and draw(st.booleans())
    dtypes = {
        "float": (np.float64 if wide else np.float32,),
        "half": (jnp.bfloat16, np.float16),
        "int": (np.int32, np.int8, np.uint8, np.uint32, *([np.int64] * wide)),
        "bool": (np.bool_,),
        "complex": (np.complex128 if wide else np.complex64,),
        "raw key": (np.uint32,),
        "key": (None,),
    }
    others = draw(st.lists(st.sampled_from(sorted(dtypes)), max_size=3))
    leaves = []
    for kind in ("float", *wanted, *others):
        keyed = kind in ("key", "raw key")
        shape = () if keyed else draw(st.sampled_from(((3,), (rows, 3), ())))
        dtype = draw(st.sampled_from(dtypes[kind]))
        leaves.append(Leaf(kind, dtype, shape, draw(st.integers(0, 3))))
    return tuple(leaves)


def _statics(draw: Draw) -> dict[str, Any]:
    return {name: draw(st.sampled_from(values)) for name, values in STATICS.items()}
