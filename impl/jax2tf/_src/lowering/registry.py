"""The registry of lowering rules: one rule for a primitive, or one for each op that it may be.

    @register("sin")
    def _sin(ctx, x):
        return tf.sin(x)

Operands are positional tensors; the primitive's params are keyword-only, so that the signature says
what the rule reads. A rule is found in this order:

1. the rule registered for the primitive and an op (`op="XlaSort"`), where the target takes that op;
2. otherwise, the one registered for the primitive without an op;
3. otherwise, for a primitive of another library, its own implementation (_src/lowering/foreign.py);
4. otherwise the primitive is refused at conversion, naming it and the user's source line.

A name stands for JAX's primitive of that name, and for no other primitive that is called so.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import tensorflow as tf
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import dims, ops
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import refusals
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Placement, Target
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import Aval, Dim, Param, Shape, Size

if TYPE_CHECKING:
    from jax2tf._src.lowering.interpreter import Lowering
    from jax2tf._src.tracing.trace import Trace

T = TypeVar("T")

# What a rule gives: one tensor, or as many as its primitive has results.
Lowered: TypeAlias = tf.Tensor | Sequence[tf.Tensor]

# Params that never change the values of a result on one device: a rule may name them, and need not.
IGNORED_PARAMS = frozenset(
    {
        "accuracy",  # a hint to XLA: which polynomial; results stay within the op's own error
        "sharding",
        "out_sharding",
        "weak_type",  # a type-level flag of JAX's; the dtype carries all that TensorFlow has
        "name",
        "memory_space",  # of an accelerator; TensorFlow places tensors itself
        "branches_platforms",  # which platform each branch is for: platform_index has chosen
    }
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A lowering rule and what its signature says.

    Attributes:
      function: called as `function(ctx, *operands, **params)`.
      params: the params it names.
      takes_all: whether it has a `**params` of its own.
      takes_keys: whether it knows that typed PRNG keys come as their data, with dimensions of its
        own behind the logical ones. Of other rules the interpreter asks only what they do to data.
    """

    function: Callable[..., Lowered]
    params: frozenset[str]
    takes_all: bool
    takes_keys: bool = False

    @property
    def where(self) -> str:
        """`module.function`, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


class Context:
    """What a rule needs beside operands and params: avals, shapes as tensors, inner jaxprs."""

    __slots__ = ("_lowering", "eqn")

    def __init__(self, lowering: Lowering, eqn: jex_core.JaxprEqn):
        self._lowering = lowering
        self.eqn = eqn

    @property
    def avals_in(self) -> list[Aval]:
        """The avals of the operands."""
        return cast("list[Aval]", [v.aval for v in self.eqn.invars])

    @property
    def avals_out(self) -> list[Aval]:
        """The avals of the results."""
        return cast("list[Aval]", [v.aval for v in self.eqn.outvars])

    @property
    def out(self) -> tf.DType:
        """The TensorFlow dtype of the first result."""
        return dtypes.to_tf(self.avals_out[0].dtype)

    @property
    def is_by_kernels(self) -> bool:
        """Whether TensorFlow's kernels run each op as it is: XLA compiles none of them."""
        return self._lowering.is_by_kernels

    def takes(self, op: str, dtype: str | None = None) -> bool:
        """Whether the reader of the graph runs an op of a dtype, or of some dtype."""
        return self._lowering.target.takes(op, dtype)

    def takes_arrays(self, dtype: str) -> bool:
        """Whether the reader of the graph has arrays of a dtype."""
        return self._lowering.target.takes_arrays(dtype)

    def takes_rank(self, op: str, rank: int) -> bool:
        """Whether an op takes an array of so many dimensions in the reader of the graph."""
        return self._lowering.target.takes_rank(op, rank)

    def wants(self, form: str, dtype: str | None = None) -> bool:
        """Whether the graph is to have a form: an Optimization, an idiom, or an op of a dtype."""
        return self._lowering.target.wants(form, dtype)

    def has(self, quirk: Quirk) -> bool:
        """Whether the graph is to avoid what a quirk says."""
        return self._lowering.target.has(quirk)

    def is_nan(self, x: tf.Tensor) -> tf.Tensor:
        """Where `x` is NaN; for a target that has no IsNan: where it is not equal to itself."""
        return ops.is_nan(x) if self.takes("IsNan", x.dtype.name) else ops.not_equal(x, x)

    def to_abs(self, x: tf.Tensor) -> tf.Tensor:
        """What Abs is given for the magnitude of `x`: its negative, if it would overwrite `x`."""
        # Numbers of one byte, which the engine does not store, may have no Neg.
        is_overwritten = x.shape.rank == 1 and x.dtype.size > 1
        return -x if is_overwritten and self.has(Quirk.OVERWRITES_VECTORS) else x

    @property
    def assume_finite(self) -> bool:
        """Whether what guards NaN and infinity is left out."""
        return self._lowering.target.assume_finite

    @property
    def placement(self) -> Placement | None:
        """What shardings become, where they are not to be XlaSharding ops."""
        return self._lowering.target.placement

    def whole(self, x: tf.Tensor) -> tf.Tensor:
        """The tensor, whole on every device where the graph is spread over a mesh."""
        return x if self.placement is None else self.placement.whole(x)

    @property
    def debug_callbacks(self) -> bool:
        """Whether jax.debug.callback and jax.debug.print run."""
        return self._lowering.trace.debug_callbacks

    @property
    def trace(self) -> Trace:
        """The trace that this equation belongs to."""
        return self._lowering.trace

    def dim(self, dim: Dim) -> Size:
        """A dimension as an int, or as a scalar int32 tensor where only the run can tell."""
        return self._lowering.dim(dim)

    def dimension_variables(self) -> dict[str, Dim]:
        """The dimension variables in the shapes of operands and results, as symbolic dimensions."""
        avals = (*self.avals_in, *self.avals_out)
        return dims.variables_of(d for aval in avals for d in getattr(aval, "shape", ()))

    def shape(self, shape: Shape) -> tuple[int, ...] | tf.Tensor:
        """A shape as TensorFlow takes it: a tuple of ints, or an int32 vector."""
        return self._lowering.shape(shape)

    def vector(self, dims: Shape) -> tf.Tensor:
        """Sizes, axes, or pairs of such, as the int32 operand of an op.

        For ops of tf.raw_ops: eager TensorFlow converts no list on each call, and a graph holds
        each vector once.
        """
        return self._lowering.vector(dims)

    def reshaped(self, x: tf.Tensor, shape: Shape) -> tf.Tensor:
        """The tensor in another shape of as many elements.

        TensorFlow infers the one size that only the run can tell. So the graph need not compute it,
        and a reader of graphs that plans its memory before the run sees a constant.
        """
        known = [size for size in shape if isinstance(size, int)]
        can_infer = len(known) == len(shape) - 1 and 0 not in known
        if can_infer and self.wants(Optimization.INFERRED_SIZES):
            shape = [size if isinstance(size, int) else -1 for size in shape]
        if self.has(Quirk.DROPS_TRANSPOSES_AROUND_RESHAPE) and made_by(x) == "Transpose":
            dropped = _dimensions_dropped(x.shape.as_list(), shape)
            if dropped:
                return ops.squeeze(x, dropped)
        return ops.raw.Reshape(tensor=x, shape=self.vector(shape))

    def number(self, value: int) -> tf.Tensor:
        """An axis or a size as the int32 operand of an op, as `vector`."""
        return self._lowering.number(value)

    def static_shape(self, shape: Shape) -> list[int | None]:
        """What is known of a shape before the run, for tf.TensorShape and the like."""
        return self._lowering.static_shape(shape)

    def zeros(self, aval: Aval) -> tf.Tensor:
        """Zeros of the shape and dtype of an aval; of keys they are the data."""
        return self._lowering.zeros(aval)

    def inline(self, jaxpr: jex_core.ClosedJaxpr, *args: tf.Tensor) -> list[tf.Tensor]:
        """Lowers a closed jaxpr in place."""
        return self._lowering.run(jaxpr, args)

    def inline_vectors(
        self, jaxpr: jex_core.ClosedJaxpr, vectors: Sequence[tf.Tensor], size: str
    ) -> list[tf.Tensor]:
        """Lowers in place a jaxpr of vectors of one length, which it knows by the name `size`."""
        return self._lowering.with_sizes({size: ops.size(vectors[0])}).run(jaxpr, vectors)

    def inline_open(
        self, jaxpr: jex_core.Jaxpr, consts: Sequence[tf.Tensor], *args: tf.Tensor
    ) -> list[tf.Tensor]:
        """Lowers a jaxpr in place whose constants are tensors."""
        return self._lowering.run_open(jaxpr, consts, args)

    def call(
        self, jaxpr: jex_core.ClosedJaxpr, *args: tf.Tensor, name: str = ""
    ) -> list[tf.Tensor]:
        """Lowers a closed jaxpr, shared with its other callers where that makes graphs smaller."""
        return self._lowering.call(jaxpr, args, name)

    def constant(self, value: ArrayLike) -> tf.Tensor:
        """A tensor of a constant; one of a jaxpr's own constants is held once in a graph."""
        return self._lowering.constant(value)

    def function(
        self,
        key: Hashable,
        body: Callable[..., Sequence[tf.Tensor]],
        *args: tf.Tensor,
        name: str = "",
        any_shape: bool = False,
        jit_compile: bool | None = None,
    ) -> list[tf.Tensor]:
        """Calls `body(ctx, *args)` as one TensorFlow function, in eager mode too.

        For a rule of many ops (a threefry block) or of loops, which eager TensorFlow runs in
        Python. `key` names the body; shapes and dtypes of `args` are added to it. With `any_shape`
        one function serves arguments of all shapes. With `jit_compile` XLA
        compiles it, whatever runs around it.
        """

        def with_context(lowering: Lowering, *inner: tf.Tensor) -> Sequence[tf.Tensor]:
            return body(Context(lowering, self.eqn), *inner)

        # For TensorFlow (b, 3) and (2*b, 3) are both (None, 3).
        shapes = () if any_shape else tuple(str(getattr(a, "shape", ())) for a in self.avals_in)
        return self._lowering.call_function(
            (key, shapes),
            with_context,
            args,
            name or self.eqn.primitive.name,
            any_shape=any_shape,
            jit_compile=jit_compile,
        )

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under `key`, made once for the trace that this equation belongs to."""
        return self._lowering.trace.cached((self._lowering.target, key), make)

    def traced(
        self, what: Hashable, make: Callable[[], jex_core.ClosedJaxpr]
    ) -> jex_core.ClosedJaxpr:
        """A jaxpr that a rule makes of its equation, made once for each equation of a trace."""
        return self.cached((what, Identity(self.eqn)), make)

    def closed(self, jaxpr: jex_core.Jaxpr, consts: Sequence[ArrayLike]) -> jex_core.ClosedJaxpr:
        """A jaxpr among the params with its constants: one object, as caches go by its identity."""
        key = ("closed", Identity(jaxpr))
        return self.traced(key, lambda: jex_core.ClosedJaxpr(jaxpr, consts))

    def computation(
        self, jaxpr: jex_core.ClosedJaxpr, storage: tf.DType | None = None
    ) -> tf.types.experimental.ConcreteFunction:
        """A jaxpr of scalars as the function that XLA's reducing ops take for their computation.

        With `storage`, arguments and results are held in that dtype and cast around the jaxpr: the
        XLA ops take no float8 or int4.
        """

        def body(*args: tf.Tensor) -> list[tf.Tensor]:
            operands = [ops.cast(a, d) for a, d in zip(args, inner, strict=True)]
            results = self._lowering.with_sizes({}).run(jaxpr, operands)
            # A predicate (what SelectAndScatter selects by) stays one.
            return [ops.cast(r, storage) if storage and r.dtype in inner else r for r in results]

        def make() -> tf.types.experimental.ConcreteFunction:
            specs = [tf.TensorSpec([], storage or dtype) for dtype in inner]
            with tf.init_scope():
                function = tf.function(body, autograph=False).get_concrete_function(*specs)
            return function

        inner = [dtypes.to_tf(aval.dtype) for aval in jaxpr.in_avals]
        return self.cached(("computation", Identity(jaxpr.jaxpr), storage), make)

    def unsupported(
        self, reason: str, remedy: str = "rewrite that part of the function", **params: Param
    ) -> UnsupportedPrimitiveError:
        """The exception for a use of the primitive that cannot be lowered."""
        return refusals.unsupported(self.eqn, reason, remedy, **params)


def made_by(x: tf.Tensor) -> str:
    """The op that gives a tensor; one of eager mode is a constant to the graph that reads it."""
    op = getattr(x, "op", None)
    return "Const" if op is None else str(op.type)


def _dimensions_dropped(before: Sequence[int | None], after: Shape) -> list[int]:
    """The dimensions of size one without which a shape is another one; none where none are."""
    dropped, left = [], list(after)
    for place, size in enumerate(before):
        if left and size is not None and left[0] == size:
            del left[0]
        elif size == 1:
            dropped.append(place)
        else:
            return []
    return [] if left else dropped


# Of each primitive the rules by the op that they need; "" is that of a rule which needs none.
_RULES: dict[jex_core.Primitive, dict[str, Rule]] = {}


def register(
    *primitives: str | jex_core.Primitive,
    op: str = "",
    takes_keys: bool = False,
) -> Callable[[Callable[..., Lowered]], Callable[..., Lowered]]:
    """Registers the decorated function as the rule of `primitives`.

    Args:
      *primitives: names of JAX's primitives, or primitives themselves.
      op: the op of TensorFlow that the rule lowers to, where it is a rule for targets that take it
        alone.
      takes_keys: see `Rule`.

    Raises:
      ValueError: a primitive already has a rule for that op; both are named. Or no supported
        version of JAX has a primitive of that name.
    """

    def decorate(function: Callable[..., Lowered]) -> Callable[..., Lowered]:
        rule = _rule(function, takes_keys)
        for each in primitives:
            for primitive in named(each) if isinstance(each, str) else (each,):
                add(primitive, op, rule)
        return function

    return decorate


def register_table(table: dict[str, Callable[..., Lowered]], *, op: str = "") -> None:
    """Registers functions of the operands alone, one line each: `{"sin": tf.sin}`."""
    for primitive, function in table.items():
        register(primitive, op=op)(_without_context(function))


def in_ranks_for_choices(ctx: Context, *operands: tf.Tensor) -> Sequence[tf.Tensor]:
    """The operands of an elementwise primitive, so that no choice among arrays is by a scalar.

    A scalar beside arrays gets as many dimensions as they have, for a target that needs it: what a
    rule asks of a divisor or of a distance would be one condition for all elements.
    """
    rank = max((x.shape.rank for x in operands), default=0)
    if not (rank and ctx.has(Quirk.NO_SCALAR_CHOICE)):
        return operands
    return [x if x.shape.rank else ops.reshape(x, [1] * rank) for x in operands]


def add(primitive: jex_core.Primitive, op: str, rule: Rule) -> None:
    """Puts one rule into the registry."""
    rules = _RULES.setdefault(primitive, {})
    if op in rules:
        raise ValueError(
            f"primitive '{primitive}' has two rules{f' for the op {op}' if op else ''}: "
            f"{rules[op].where} and {rule.where}"
        )
    rules[op] = rule


def find(primitive: jex_core.Primitive, target: Target, dtype: str | None = None) -> Rule | None:
    """The rule for a primitive of a dtype in graphs for a target, or None."""
    rules = _RULES.get(primitive, {})
    for op in rules:
        if op and target.wants(op) and (dtype is None or target.takes(op, dtype)):
            return rules[op]
    return rules.get("")


def ops_of(primitive: jex_core.Primitive) -> list[str]:
    """The ops that a primitive has rules for."""
    return [op for op in _RULES.get(primitive, ()) if op]


def primitives(target: Target) -> frozenset[str]:
    """The names of all primitives that have a rule for a target."""
    return frozenset(primitive.name for primitive in _RULES if find(primitive, target))


def select_params(rule: Rule, eqn: jex_core.JaxprEqn) -> dict[str, Param]:
    """The params of an equation that its rule takes.

    Raises:
      TypeError: a param that the rule does not name, and that may change values, is listed. Silence
        about an unknown param is how wrong numbers are made.
    """
    params = eqn.params
    if rule.takes_all:
        return params
    unknown = [
        name
        for name, value in params.items()
        # None is JAX's way to say that an option was not given.
        if name not in rule.params and name not in IGNORED_PARAMS and value is not None
    ]
    if unknown:
        raise TypeError(
            f"the rule {rule.where} of primitive '{eqn.primitive.name}' does not know the params "
            f"{', '.join(f'{p}={params[p]!r}' for p in unknown)}"
        )
    return {name: value for name, value in params.items() if name in rule.params}


def _rule(function: Callable[..., Lowered], takes_keys: bool) -> Rule:
    parameters = inspect.signature(function).parameters.values()
    return Rule(
        function,
        frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
        takes_keys,
    )


def _without_context(function: Callable[..., Lowered]) -> Callable[..., Lowered]:
    def rule(ctx: Context, *operands: tf.Tensor) -> Lowered:
        return function(*in_ranks_for_choices(ctx, *operands))

    rule.__module__ = getattr(function, "__module__", rule.__module__)
    rule.__qualname__ = getattr(function, "__qualname__", rule.__qualname__)
    return rule
