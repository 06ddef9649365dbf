"""A function of a StableHLO module as a JAX function: its arguments, its parameters, its checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, tree_util

from jax2tf._src import compat
from jax2tf._src.api.errors import LoadError
from jax2tf._src.stablehlo import reading
from jax2tf._src.stablehlo import rules as _rules  # registers the rules
from jax2tf._src.stablehlo.evaluator import TOKEN, Evaluator, as_array
from jax2tf._src.stablehlo.program import Program, TensorType, TokenType
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import PyTree

assert _rules

Flat = Callable[[Mapping[str, PyTree], Sequence[PyTree]], Sequence[PyTree]]


@dataclasses.dataclass(frozen=True)
class Argument:
    """What a function takes at one place: a path as in "args[0]['x']", a shape and a dtype.

    A size that is not an int is open: None, or an expression of symbolic dimensions.
    """

    path: str
    shape: tuple[PyTree, ...]
    dtype: np.dtype


class LoadedFunction:
    """A JAX function that was read from a file.

    Attributes:
      name: the function's name in the file.
      params: the values of variables by name; empty where the file has none.
      specs: the arguments in their structure, `(args, kwargs)`; each has a `shape` and a `dtype`.
    """

    def __init__(
        self,
        name: str,
        flat: Flat,
        arguments: Sequence[Argument],
        in_tree: PyTree,
        out_tree: PyTree,
        params: Mapping[str, PyTree] | None = None,
    ) -> None:
        self.name = self.__name__ = self.__qualname__ = name
        self.params = dict(params or {})
        self._arguments = tuple(arguments)
        self._in_tree, self._out_tree = in_tree, out_tree
        self.__doc__ = self._documentation()
        self._jitted = jax.jit(self._evaluator(flat))

    def _evaluator(self, flat: Flat) -> Callable[..., list[PyTree]]:
        def evaluate(params: Mapping[str, PyTree], *leaves: PyTree) -> list[PyTree]:
            return [
                x if _is_float0(x) or _is_key(x) else jnp.asarray(as_array(x))
                for x in flat(params, leaves)
            ]

        evaluate.__name__ = evaluate.__qualname__ = self.name
        return evaluate

    @property
    def specs(self) -> PyTree:
        """`(args, kwargs)` of shapes and dtypes."""
        return tree_util.tree_unflatten(self._in_tree, self._arguments)

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        return self.apply(self.params, *args, **kwargs)

    def apply(self, params: Mapping[str, PyTree], *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Calls the function with other values of its variables, as gradients by them need it.

        Raises:
          TypeError: a name, or the dtype of a value, is not that of a variable.
          ValueError: a value has another shape than its variable.
        """
        self._check_params(params)
        leaves, tree = tree_util.tree_flatten(self._with_name(args, kwargs))
        if tree != self._in_tree:
            raise TypeError(
                f"jax2tf.load: {self.name} takes arguments of another structure: expected "
                f"{self._in_tree}, got {tree}. What to do: call it with ({self._by_name()})"
                f"{self._specs_by_name()}"
            )
        checked = [self._checked(a, x) for a, x in zip(self._arguments, leaves, strict=True)]
        return tree_util.tree_unflatten(self._out_tree, self._jitted(params, *checked))

    def _check_params(self, params: Mapping[str, PyTree]) -> None:
        where = f"jax2tf.load: {self.name}: params"
        missing = [name for name in self.params if name not in params]
        unknown = [name for name in params if name not in self.params]
        if missing or unknown:
            names = f"without {missing}" if missing else f"with {unknown}"
            raise TypeError(f"{where} must have the names {[*self.params]}, got them {names}")
        for name, own in self.params.items():
            value = params[name]
            array = value if isinstance(value, jax.Array) else np.asarray(value)
            if array.shape != own.shape:
                raise ValueError(
                    f"{where}[{name!r}] must have the shape {_shown(own.shape)}, got "
                    f"{_shown(array.shape)}"
                )
            dtypes = [jax.dtypes.canonicalize_dtype(x.dtype) for x in (own, array)]
            if dtypes[0] != dtypes[1]:
                raise TypeError(
                    f"{where}[{name!r}] must have the dtype {dtypes[0]}, got {dtypes[1]}"
                )

    def _with_name(
        self, args: tuple[PyTree, ...], kwargs: Mapping[str, PyTree]
    ) -> tuple[tuple[PyTree, ...], Mapping[str, PyTree]]:
        """The arguments of a call, where the only argument may be given without its name."""
        own_args, own_kwargs = self.specs
        if len(own_kwargs) == 1 and len(args) == 1 and not own_args and not kwargs:
            return (), dict(zip(own_kwargs, args, strict=True))
        return args, kwargs

    def _specs_by_name(self) -> str:
        """What `specs` of an export has for arguments that have names."""
        args, kwargs = self.specs
        if args or not kwargs:
            return ""
        return ", and export it with specs={" + ", ".join(f'"{name}": ...' for name in kwargs) + "}"

    def _by_name(self) -> str:
        """The arguments as a call has them: `..., images=...`."""
        args, kwargs = self.specs
        return ", ".join([*("..." for _ in args), *(f"{name}=..." for name in kwargs)])

    def _checked(self, argument: Argument, value: PyTree) -> PyTree:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
        expected, dtype = (
            x.dtype if _is_key(x) else jax.dtypes.canonicalize_dtype(x.dtype)
            for x in (argument, array)
        )
        where = f"jax2tf.load: {self.name}: {argument.path}"
        if expected != argument.dtype:
            raise TypeError(
                f"{where} has the dtype {argument.dtype}, which JAX has only with 64 bits. What to "
                'do: jax.config.update("jax_enable_x64", True) before the call.'
            )
        if dtype != expected:
            raise TypeError(f"{where} must have the dtype {expected}, got {dtype}")
        fits = len(array.shape) == len(argument.shape) and all(
            not isinstance(size, int) or size == got
            for size, got in zip(argument.shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{where} must have the shape {_shown(argument.shape)}, got {_shown(array.shape)}"
            )
        return array

    def _documentation(self) -> str:
        lines = [f"{self.name}, read by jax2tf.load.", "", "Args:"]
        lines += [f"  {a.path}: {a.dtype}{_shown(a.shape)}" for a in self._arguments]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        arguments = ", ".join(f"{a.path}: {a.dtype}{_shown(a.shape)}" for a in self._arguments)
        return f"<function {self.name}({arguments})>"


def _shown(shape: Sequence[PyTree]) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def of_exported(exported: export.Exported, origin: str) -> LoadedFunction:
    """The function that jax.export wrote, with the structure of its arguments."""
    if exported.nr_devices != 1:
        raise LoadError(
            f"jax2tf.load: {origin} is a program for {exported.nr_devices} devices. What to do: "
            "export the function for one device: without a mesh, or with a mesh of one device."
        )
    evaluate = _evaluated(exported, origin)

    def flat(params: Mapping[str, PyTree], leaves: Sequence[PyTree]) -> Sequence[PyTree]:
        return evaluate(*leaves)

    example = tree_util.tree_unflatten(exported.in_tree, range(len(exported.in_avals)))
    paths = [_path(path) for path, _ in tree_util.tree_flatten_with_path(example)[0]]
    arguments = [
        Argument(path, aval.shape, aval.dtype if _is_key(aval) else np.dtype(aval.dtype))
        for path, aval in zip(paths, exported.in_avals, strict=True)
    ]
    return LoadedFunction(exported.fun_name, flat, arguments, exported.in_tree, exported.out_tree)


def _evaluated(exported: export.Exported, origin: str) -> Callable[..., Sequence[PyTree]]:
    """An exported function of flat arguments, with the vjp that the file may have."""
    evaluator = Evaluator(reading.program_of_artifact(exported.mlir_module_serialized, origin))
    kept = exported.module_kept_var_idx
    before = platform_operands(exported.platforms)
    n_tokens = len(exported.ordered_effects)

    def evaluate(*leaves: PyTree) -> Sequence[PyTree]:
        operands = [*before, *[TOKEN] * n_tokens, *(_as_in_the_file(leaves[i]) for i in kept)]
        results = evaluator.main("main", operands)[n_tokens:]
        return tuple(map(_with_dtype, results, exported.out_avals))

    if not exported.has_vjp() or n_tokens:
        return evaluate
    derivative: Lru[Callable[..., Sequence[PyTree]]] = Lru(1)

    def backward(leaves: Sequence[PyTree], cotangents: Sequence[PyTree]) -> tuple[PyTree, ...]:
        """Reads the vjp when it is asked for: an Exported in memory has one of any order."""
        read = lambda: _evaluated(_vjp_of(exported), f"vjp of {origin}")  # noqa: E731
        evaluated = derivative.value("vjp", read)
        return tuple(evaluated(*leaves, *cotangents))

    @jax.custom_vjp
    def with_vjp(*leaves: PyTree) -> Sequence[PyTree]:
        return evaluate(*leaves)

    with_vjp.defvjp(lambda *leaves: (evaluate(*leaves), leaves), backward)
    return with_vjp


def _vjp_of(exported: export.Exported) -> export.Exported:
    with compat.exports.reading_expired_files():
        return exported.vjp()


def _is_float0(value: PyTree) -> bool:
    """Whether it has the dtype of cotangents of integers, for which a module has truth values."""
    return bool(getattr(value, "dtype", None) == jax.dtypes.float0)


def _is_key(value: PyTree) -> bool:
    """Whether it has a dtype of random keys, for which a module has words of 32 bits."""
    return jax.dtypes.issubdtype(getattr(value, "dtype", np.int32), jax.dtypes.prng_key)


def _as_in_the_file(value: PyTree) -> PyTree:
    if _is_key(value):
        return jax.random.key_data(value)
    return np.zeros(value.shape, bool) if _is_float0(value) else value


def _with_dtype(value: PyTree, aval: PyTree) -> PyTree:
    value = jnp.asarray(as_array(value))
    if _is_key(aval):
        return jax.random.wrap_key_data(value, impl=compat.jaxprs.prng_impl(aval.dtype))
    return np.zeros(value.shape, jax.dtypes.float0) if _is_float0(aval) else value


def platform_operands(platforms: Sequence[str]) -> list[PyTree]:
    """What a module for several platforms takes first: the number of the CPU, if it has one."""
    if len(platforms) < 2:
        return []
    index = platforms.index("cpu") if "cpu" in platforms else 0
    return [np.array(index, np.int32)]


def _path(path: PyTree) -> str:
    root = ("args", "kwargs")[path[0].idx]
    return root + tree_util.keystr(path[1:])


def of_program(program: Program, name: str, origin: str) -> LoadedFunction:
    """A function of a module, whose arguments have no structure."""
    function = program.functions[name]
    types = [t for t in function.body.types if not isinstance(t, TokenType)]
    if not all(isinstance(t, TensorType) for t in (*types, *function.types)):
        raise LoadError(f"jax2tf.load: {origin}: {name} takes or returns tuples or tokens.")
    arguments = [Argument(f"args[{i}]", t.shape, t.dtype) for i, t in enumerate(types)]  # type: ignore[union-attr]
    evaluator = Evaluator(program)

    def flat(params: Mapping[str, PyTree], leaves: Sequence[PyTree]) -> Sequence[PyTree]:
        return evaluator.main(name, leaves)

    in_tree = tree_util.tree_structure(((0,) * len(types), {}))
    out = 0 if len(function.types) == 1 else (0,) * len(function.types)
    return LoadedFunction(name, flat, arguments, in_tree, tree_util.tree_structure(out))
