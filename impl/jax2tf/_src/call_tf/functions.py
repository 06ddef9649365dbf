"""A TensorFlow function of flat tensors, and its trace for each signature."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import threading
import types
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np

from jax2tf._src import compat, dims
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import effects, wide_arguments
from jax2tf._src.call_tf.exchange import canonical
from jax2tf._src.tracing import arguments
from jax2tf._src.tracing.functions import KEPT_TRACES, Parameters
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import Lru
from jax2tf._src.util.typing import Aval, Dim, KeyPath, PyTree

T = TypeVar("T")

# Shape and dtype of an argument.
Described: TypeAlias = Aval | jax.ShapeDtypeStruct


class _Unspecified:
    def __repr__(self) -> str:
        return "unspecified"


# Not None, which is the tree of a function that returns nothing.
UNSPECIFIED = _Unspecified()


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of call_tf for a function.

    Attributes:
      has_side_effects: whether a call stays even if nobody uses its results.
      ordered: whether such calls stay in their order.
      call_tf_graph: whether it is called as TensorFlow graph, never compiled into JAX's module.
      compile: whether staged calls are compiled by XLA; False runs them on the host.
      output: the specs of the results, a pytree of jax.ShapeDtypeStruct, or UNSPECIFIED.
    """

    has_side_effects: bool = True
    ordered: bool = False
    call_tf_graph: bool = False
    compile: bool = True
    output: PyTree = UNSPECIFIED


class Function(abc.ABC):
    """A TensorFlow function of flat tensors that returns a flat list of tensors.

    Attributes:
      stand_ins: the variables whose values are arguments, by the argument's index. The function
        reads the variable itself; it has a derivative with respect to the argument.
      is_derived: whether it is a derivative or a batch of another function.
      is_derivative: whether it is a derivative, or the batch of one.
      lock: held by the thread that traces or compiles it, or a function derived from it.
    """

    stand_ins: Mapping[int, tf.Variable] = types.MappingProxyType({})
    is_derived = False
    is_derivative = False

    def __init_subclass__(cls) -> None:
        compat.jaxprs.cached_weakly(cls)

    def __init__(self, name: str, options: Options, base: Function | None = None):
        self.name = name
        self.options = options
        # A function and all its derived functions share one lock: TensorFlow builds the gradients
        # of nested functions on first use, which is not thread-safe.
        self.lock: contextlib.AbstractContextManager[bool] = (
            threading.RLock() if base is None else base.lock
        )
        self._derived: Lru[Any] = Lru(KEPT_TRACES, self.lock)

    @abc.abstractmethod
    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results, eagerly or in the graph under construction."""

    def run_in_threads(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Like `run`, safe in several threads at once."""
        return self.run(tensors)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value for `key` that is derived from this function; `make` is called once."""
        return self._derived.value(key, make)

    def signature(self, avals: Sequence[Described]) -> Signature:
        """The trace for arguments of these shapes and dtypes; the first caller makes it."""
        arguments = tuple((tuple(map(_dimension_key, aval.shape)), aval.dtype) for aval in avals)
        key = ("signature", arguments, jax.config.read("jax_enable_x64"))
        return self.cached(key, lambda: Signature(self, avals))

    def argument(self, i: int) -> str:
        """The name of the i-th argument in messages."""
        return f"argument {i}"

    def fall_back(self) -> bool:
        """Switches to another implementation and forgets all traces; False if there is none."""
        return False

    @contextlib.contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Adds a note with the name of the function to errors that TensorFlow raises."""
        try:
            yield
        except Exception as error:
            note = f"jax2tf.call_tf({self.name}): {_source(error)}"
            if not isinstance(error, CallTfError) and note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def __repr__(self) -> str:
        return self.name


def _source(error: Exception) -> str:
    # A LookupError is TensorFlow's for an op without a gradient; a KeyError is the user's own.
    if type(error) is not LookupError:
        return "raised by the TensorFlow function"
    return (
        "TensorFlow cannot differentiate an op of the function. What to do: "
        "jax.lax.stop_gradient around the argument, where no derivative is needed; "
        "tf.custom_gradient in the function, where one is known; or other ops of TensorFlow"
    )


class Root(Function):
    """The user's own function, with the tree of its arguments."""

    def __init__(
        self,
        callable_tf: Callable[..., PyTree],
        in_tree: jax.tree_util.PyTreeDef,
        name: str,
        options: Options,
    ):
        super().__init__(name, options)
        self._callable = callable_tf
        self._call = wide_arguments.Caller(callable_tf, in_tree)
        self._in_tree = in_tree
        self._last = threading.local()

    def argument(self, i: int) -> str:
        """The path of the i-th leaf among the arguments, as "argument x['w']"."""
        indices = jax.tree.unflatten(self._in_tree, range(self._in_tree.num_leaves))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(indices)]
        return f"argument {Parameters(self._callable).path(paths[i])}"

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        with self.named_in_errors():
            results = arguments.unwrap(self._call(tensors))
        flat, tree = jax.tree_util.tree_flatten_with_path(results)
        tensors = [canonical(r, self._where(path)) for path, r in flat]
        if self.options.output is not UNSPECIFIED:
            tensors = self._checked(tensors, tree)
        self._last.tree = tree
        return tensors

    def with_variables(self, n_arguments: int, variables: Sequence[tf.Variable]) -> Function:
        """The function of its `n_arguments` arguments, followed by the values of the variables."""
        key = ("with variables", n_arguments, tuple(Identity(v.handle) for v in variables))
        return self.cached(key, lambda: WithVariables(self, n_arguments, variables))

    def forget_tree(self) -> None:
        """Forgets the tree that the last run in this thread returned."""
        self._last.tree = None

    def out_tree(self, avals: Callable[[], Sequence[Aval]]) -> jax.tree_util.PyTreeDef:
        """The tree of the last run since `forget_tree`; without a run, of the trace for `avals()`.

        Each eager run may return another tree. JAX caches a traced call and then does not run it.
        """
        tree = self._last.tree
        return self.signature(avals()).out_tree if tree is None else tree

    @property
    def last_tree(self) -> jax.tree_util.PyTreeDef:
        """The tree that the last run in this thread returned."""
        return self._last.tree

    def _where(self, path: KeyPath) -> str:
        return f"jax2tf.call_tf({self.name}): result{jax.tree_util.keystr(path)}"

    def _checked(self, tensors: list[tf.Tensor], tree: jax.tree_util.PyTreeDef) -> list[tf.Tensor]:
        """The results, after a check against output_shape_dtype, whose shapes they get."""
        specs, expected_tree = jax.tree.flatten(self.options.output)
        if tree != expected_tree:
            raise CallTfError(
                f"jax2tf.call_tf({self.name}): output_shape_dtype has the structure "
                f"{expected_tree}, but the TensorFlow function returned {tree}"
            )
        for i, (tensor, spec) in enumerate(zip(tensors, specs, strict=True)):
            shape = tf.TensorShape([d if isinstance(d, int) else None for d in spec.shape])
            dtype = dtypes.to_tf(jax.dtypes.canonicalize_dtype(spec.dtype))
            if tensor.dtype != dtype or not shape.is_compatible_with(tensor.shape):
                raise CallTfError(
                    f"jax2tf.call_tf({self.name}): output_shape_dtype says {dtype.name}"
                    f"{list(spec.shape)} for result {i}, but the TensorFlow function returned "
                    f"{tensor.dtype.name}{_shape_text(tensor.shape)}"
                )
            if not tf.executing_eagerly():
                tensor.set_shape(shape)
        return tensors


class WithVariables(Function):
    """A user's function whose variables are arguments too, after its own.

    So a derivative of the call can be taken with respect to the variables.
    """

    def __init__(self, root: Root, n_arguments: int, variables: Sequence[tf.Variable]):
        super().__init__(root.name, root.options, root)
        self.root = root
        self._n_arguments = n_arguments
        self.stand_ins = dict(enumerate(variables, n_arguments))

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return self.root.run(tensors[: self._n_arguments])

    def signature(self, avals: Sequence[Described]) -> Signature:
        return self.root.signature(avals[: self._n_arguments])


class Signature:
    """A function traced for given shapes and dtypes.

    Attributes:
      function: the function.
      specs: TensorFlow's description of the arguments.
      concrete: its graph, which XLA can compile.
      out_tree: the tree of its result, if it is a user's function.
      is_stateful: whether its graph has ops with side effects or random numbers.
      has_trial_shapes: whether the shapes of its results come from a trial run.
    """

    def __init__(self, function: Function, avals: Sequence[Described]):
        self.function = function
        self.avals = tuple(avals)
        self.specs = [_spec(aval, i, function) for i, aval in enumerate(avals)]
        self.concrete = _trace(function, self.specs)
        self.out_tree = getattr(function, "last_tree", None)
        nodes = list(effects.nodes(self.concrete))
        self._written = effects.written(self.concrete, nodes)
        self.is_stateful = effects.is_stateful(nodes)
        self.has_trial_shapes = False
        self._compiled: Lru[bytes] = Lru(KEPT_TRACES, function.lock)

    @property
    def has_effects(self) -> bool:
        """Whether JAX has to keep a staged call whose results nobody uses."""
        return self.is_stateful and self.function.options.has_side_effects

    @property
    def writes(self) -> list[str]:
        """Names of the variables that it writes to, or of the ops that write."""
        return sorted({w if isinstance(w, str) else w.name for w in self._written})

    @property
    def variables(self) -> list[tf.Variable]:
        """The captured variables that it only reads, of shapes and dtypes that JAX has."""
        captured = set(map(Identity, self.concrete.captured_inputs))
        written = {Identity(w.handle) for w in self._written if not isinstance(w, str)}
        return [
            v
            for v in self.concrete.variables
            if Identity(v.handle) in captured - written
            # An op that writes in an inner function does not say to which variable.
            and (v.trainable or not self._written)
            and v.shape.is_fully_defined()
            and dtypes.is_of_jax(v.dtype)
        ]

    @property
    def outputs(self) -> list[tf.Tensor]:
        """The results as TensorFlow sees them: symbolic tensors."""
        return list(self.concrete.structured_outputs)

    @property
    def has_static_outputs(self) -> bool:
        """Whether TensorFlow knows the shape of every result."""
        return all(t.shape.is_fully_defined() for t in self.outputs)

    def captured(self) -> list[tf.Variable | np.ndarray]:
        """The variables and constants that the graph captures.

        Raises:
          CallTfError: compiled JAX has no value for one of them.
        """
        variables = {Identity(v.handle): v for v in self.concrete.variables}
        captured = [variables.get(Identity(x), x) for x in self.concrete.captured_inputs]
        for value in captured:
            capture = _capture_without_value(value)
            if capture is not None:
                raise no_value_error(self.function.name, capture)
        # `numpy()` of a scalar is a NumPy scalar, not an array.
        return [x if isinstance(x, tf.Variable) else np.asarray(x.numpy()) for x in captured]

    def compiled(self, platform: str, make: Callable[[], bytes]) -> bytes:
        """The StableHLO for a platform; the first caller makes it."""
        return self._compiled.value(platform, make)


def _trace(
    function: Function, specs: Sequence[tf.TensorSpec]
) -> tf.types.experimental.ConcreteFunction:
    """The graph of a function, which XLA can compile."""

    def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
        return function.run(tensors)

    def run_anew(*tensors: tf.Tensor) -> list[tf.Tensor]:
        with compat.functions.traced_anew_for_xla():
            return function.run(tensors)

    traced = tf.function(
        run_anew if function.is_derived else run, autograph=False, jit_compile=True
    )
    with contextlib.suppress(LookupError), compat.tapes.recorded_again():
        return traced.get_concrete_function(*specs)
    # In functions that XLA compiles, TensorFlow's gradients of some ops (Slice) are ops without a
    # gradient. The gradients of other functions have one, and most of them compile too.
    with compat.tapes.recorded_again():
        usual = tf.function(run, autograph=False).get_concrete_function(*specs)
    traced = tf.function(lambda *tensors: usual(*tensors), autograph=False, jit_compile=True)
    return traced.get_concrete_function(*specs)


def _dimension_key(dim: Dim) -> Hashable:
    # Symbolic dimensions of different scopes do not compare.
    return dim if isinstance(dim, int) else (str(dim), Identity(dim.scope))


def _spec(aval: Described, i: int, function: Function) -> tf.TensorSpec:
    try:
        dtype = dtypes.to_tf(aval.dtype)
    except TypeError as error:
        where = f"jax2tf.call_tf({function.name}): {function.argument(i)}"
        raise CallTfError(f"{where}: {error}") from error
    refuse_key(aval.dtype, i, function)
    static = dims.is_static(aval.shape)
    shape = aval.shape if static else [d if isinstance(d, int) else None for d in aval.shape]
    return tf.TensorSpec(shape, dtype)


def refuse_key(dtype: np.dtype, i: int, function: Function) -> None:
    """Refuses a typed PRNG key as the i-th argument of the function.

    Raises:
      CallTfError: the dtype is that of a key.
    """
    if dtypes.is_key(dtype):
        raise CallTfError(
            f"jax2tf.call_tf({function.name}): {function.argument(i)} is a typed PRNG key "
            f"({dtype}), which "
            "TensorFlow does not have; pass jax.random.key_data of it"
        )


def no_value_error(name: str, capture: str) -> CallTfError:
    """The error for a captured value that compiled JAX cannot have."""
    return CallTfError(
        f"jax2tf.call_tf({name}): it captures {capture}, and compiled JAX has no value for that. "
        "Call it outside of jax.jit, or run it on the host under jax.jit with call_tf(..., "
        "compile=False)"
    )


def _capture_without_value(value: tf.Tensor | tf.Variable) -> str | None:
    """The words for a captured value that compiled JAX cannot have; None for any other."""
    if isinstance(value, tf.Variable):
        return None if dtypes.is_of_jax(value.dtype) else f"the variable {value.name} of strings"
    if value.dtype in (tf.resource, tf.variant):
        return f"a {value.dtype.name} that is no variable (a table, a dataset)"
    return None if dtypes.is_of_jax(value.dtype) else f"a tensor of dtype {value.dtype.name}"


def _shape_text(shape: tf.TensorShape) -> str:
    return str(shape.as_list()) if shape.rank is not None else "[...]"
