"""Gives rules their view of the lowering: avals, shapes, the target, and inner jaxprs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar, cast

from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src import dims, ops
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import refusals
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.trace import Kept, Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Computation, Tensor
from jax2tf._src.util.typing import Aval, Dim, Param, Shape, Size

T = TypeVar("T")


class LoweringInterface(Protocol):
    """The part of `interpreter.Lowering` that rules use, through their Context."""

    trace: Trace
    target: Target

    @property
    def is_by_kernels(self) -> bool: ...

    def run(self, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor]) -> list[Tensor]: ...

    def run_open(
        self, jaxpr: jex_core.Jaxpr, consts: Sequence[Tensor], args: Sequence[Tensor]
    ) -> list[Tensor]: ...

    def with_sizes(self, sizes: dims.Values, *, by_kernels: bool = False) -> LoweringInterface: ...

    def call(
        self, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor], name: str
    ) -> list[Tensor]: ...

    def call_function(
        self,
        key: Hashable,
        body: Callable[..., Sequence[Tensor]],
        args: Sequence[Tensor],
        name: str,
        *,
        any_shape: bool = False,
        jit_compile: bool | None = None,
    ) -> list[Tensor]: ...

    def constant(self, value: ArrayLike) -> Tensor: ...

    def dim(self, dim: Dim) -> Size: ...

    def shape(self, shape: Shape) -> tuple[int, ...] | Tensor: ...

    def vector(self, dims: Shape) -> Tensor: ...

    def number(self, value: int) -> Tensor: ...

    def static_shape(self, shape: Shape) -> list[int | None]: ...

    def zeros(self, aval: Aval) -> Tensor: ...


class Context:
    """Gives a rule what it needs besides operands and params: avals, shapes, inner jaxprs."""

    __slots__ = ("_lowering", "eqn")

    def __init__(self, lowering: LoweringInterface, eqn: jex_core.JaxprEqn):
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
    def out(self) -> DType:
        """The TensorFlow dtype of the first result."""
        return dtypes.to_tf(self.avals_out[0].dtype)

    @property
    def is_by_kernels(self) -> bool:
        """Whether TensorFlow's kernels run each op unchanged, and XLA compiles none of them."""
        return self._lowering.is_by_kernels

    @property
    def target(self) -> Target:
        """What reads the graph; `takes`, `wants` and `has` ask it the most frequent questions."""
        return self._lowering.target

    def takes(self, op: str, dtype: str | None = None) -> bool:
        """Whether the engine that reads the graph runs an op of a dtype (None: of any dtype)."""
        return self.target.takes(op, dtype)

    def wants(self, form: str, dtype: str | None = None) -> bool:
        """Whether the target wants a form: an Optimization, an idiom, or an op of a dtype."""
        return self.target.wants(form, dtype)

    def has(self, quirk: Quirk) -> bool:
        """Whether the target has a quirk, which the graph must avoid."""
        return self.target.has(quirk)

    def is_nan(self, x: Tensor) -> Tensor:
        """Where `x` is NaN. Without IsNan in the target: where `x` differs from itself."""
        return ops.is_nan(x) if self.takes("IsNan", x.dtype.name) else ops.not_equal(x, x)

    def to_abs(self, x: Tensor) -> Tensor:
        """The operand of Abs for the magnitude of `x`.

        OpenVINO's Abs writes its result into its operand if that is a vector. A target with this
        quirk gets `-x`, a tensor that nobody else reads.
        """
        # The engine may have no Neg of dtypes of one byte; it does not store these.
        is_overwritten = x.shape.rank == 1 and x.dtype.size > 1
        return -x if is_overwritten and self.has(Quirk.OVERWRITES_VECTORS) else x

    @property
    def trace(self) -> Trace:
        """The trace that contains this equation."""
        return self._lowering.trace

    def dim(self, dim: Dim) -> Size:
        """Returns a dimension as an int, or as a scalar int32 tensor if it is unknown."""
        return self._lowering.dim(dim)

    def shape(self, shape: Shape) -> tuple[int, ...] | Tensor:
        """Returns a shape as a tuple of ints, or as an int32 vector if a size is unknown."""
        return self._lowering.shape(shape)

    def vector(self, dims: Shape) -> Tensor:
        """Returns sizes, axes, or pairs of them as the int32 operand of an op of tf.raw_ops.

        Eager TensorFlow then need not convert a list on each call, and a graph holds each vector
        only once.
        """
        return self._lowering.vector(dims)

    def reshaped(self, x: Tensor, shape: Shape) -> Tensor:
        """Reshapes `x` to a shape with the same number of elements.

        TensorFlow infers a size if it is the only unknown one. The graph then need not compute it,
        and an engine that plans its memory before the run sees a constant shape.
        """
        known = [size for size in shape if isinstance(size, int)]
        can_infer = len(known) == len(shape) - 1 and 0 not in known
        if can_infer and self.wants(Optimization.INFERRED_SIZES):
            shape = [size if isinstance(size, int) else -1 for size in shape]
        if self.has(Quirk.DROPS_TRANSPOSES_AROUND_RESHAPE) and op_type_of(x) == "Transpose":
            dropped = _dimensions_dropped(x.shape.as_list(), shape)
            if dropped:
                return ops.squeeze(x, dropped)
        return ops.raw.Reshape(tensor=x, shape=self.vector(shape))

    def number(self, value: int) -> Tensor:
        """Returns an axis or a size as the int32 operand of an op of tf.raw_ops, as `vector`."""
        return self._lowering.number(value)

    def static_shape(self, shape: Shape) -> list[int | None]:
        """Returns a shape for tf.TensorShape, with None for each unknown size."""
        return self._lowering.static_shape(shape)

    def zeros(self, aval: Aval) -> Tensor:
        """Returns zeros of an aval's shape and dtype; for PRNG keys, zeros of their data."""
        return self._lowering.zeros(aval)

    def inline(
        self, jaxpr: jex_core.ClosedJaxpr, *args: Tensor, sizes: dims.Values | None = None
    ) -> list[Tensor]:
        """Lowers a closed jaxpr in place; `sizes` are the values of its dimension variables."""
        lowering = self._lowering if sizes is None else self._lowering.with_sizes(sizes)
        return lowering.run(jaxpr, args)

    def inline_open(
        self, jaxpr: jex_core.Jaxpr, consts: Sequence[Tensor], *args: Tensor
    ) -> list[Tensor]:
        """Lowers a jaxpr in place. Its constants are tensors."""
        return self._lowering.run_open(jaxpr, consts, args)

    def call(self, jaxpr: jex_core.ClosedJaxpr, *args: Tensor, name: str = "") -> list[Tensor]:
        """Lowers a closed jaxpr; its callers share a function if that makes the graph smaller."""
        return self._lowering.call(jaxpr, args, name)

    def constant(self, value: ArrayLike) -> Tensor:
        """Returns a constant as a tensor; a graph holds each constant only once."""
        return self._lowering.constant(value)

    def function(
        self,
        key: Hashable,
        body: Callable[..., Sequence[Tensor]],
        *args: Tensor,
        name: str = "",
        any_shape: bool = False,
        jit_compile: bool | None = None,
    ) -> list[Tensor]:
        """Calls `body(ctx, *args)` as one TensorFlow function, also in eager mode.

        Rules use it for many ops (a threefry block) and for loops, which eager TensorFlow runs in
        Python. `key` names the body; shapes and dtypes of `args` are added to it. With `any_shape`
        one function serves arguments of all shapes. With `jit_compile` XLA compiles the function,
        even if its caller is not compiled.
        """

        def with_context(lowering: LoweringInterface, *inner: Tensor) -> Sequence[Tensor]:
            return body(Context(lowering, self.eqn), *inner)

        # TensorFlow sees (b, 3) and (2*b, 3) both as (None, 3), so the key has JAX's shapes.
        shapes = () if any_shape else tuple(str(getattr(a, "shape", ())) for a in self.avals_in)
        return self._lowering.call_function(
            (key, shapes),
            with_context,
            args,
            name or self.eqn.primitive.name,
            any_shape=any_shape,
            jit_compile=jit_compile,
        )

    def cached(self, kind: Kept, make: Callable[[], T], *key: Hashable) -> T:
        """Returns the value of `make()`, made once for each kind, key, trace and target."""
        return self._lowering.trace.cached(kind, make, self.target, *key)

    def traced(self, kind: Kept, make: Callable[[], jex_core.ClosedJaxpr]) -> jex_core.ClosedJaxpr:
        """Returns the jaxpr that a rule makes of its equation; made once for each equation."""
        return self.cached(kind, make, Identity(self.eqn))

    def closed(self, jaxpr: jex_core.Jaxpr, consts: Sequence[ArrayLike]) -> jex_core.ClosedJaxpr:
        """Closes a jaxpr of the params. The result is always the same object, as caches need."""
        make = functools.partial(jex_core.ClosedJaxpr, jaxpr, consts)
        return self.cached("closed", make, Identity(jaxpr), Identity(self.eqn))

    def computation(self, jaxpr: jex_core.ClosedJaxpr, storage: DType | None = None) -> Computation:
        """Makes a jaxpr of scalars the function that XLA's reducing ops take as computation.

        With `storage`, arguments and results have that dtype and are cast around the jaxpr, because
        the XLA ops do not take float8 or int4.
        """

        def body(*args: Tensor) -> list[Tensor]:
            operands = [ops.cast(a, d) for a, d in zip(args, inner, strict=True)]
            results = self._lowering.with_sizes({}).run(jaxpr, operands)
            # The predicate of SelectAndScatter stays bool.
            return [ops.cast(r, storage) if storage and r.dtype in inner else r for r in results]

        def make() -> Computation:
            return ops.computation(body, [storage or dtype for dtype in inner])

        inner = [dtypes.to_tf(aval.dtype) for aval in jaxpr.in_avals]
        return self.cached("computation", make, Identity(jaxpr.jaxpr), storage)

    def unsupported(
        self, reason: str, remedy: str = "rewrite that part of the function", **params: Param
    ) -> UnsupportedPrimitiveError:
        """Returns the exception for a use of the primitive that cannot be lowered."""
        return refusals.unsupported(self.eqn, reason, remedy, **params)


def op_type_of(x: Tensor) -> str:
    """Returns the type of the op that makes `x`; an eager tensor counts as a constant."""
    op = getattr(x, "op", None)
    return "Const" if op is None else str(op.type)


def _dimensions_dropped(before: Sequence[int | None], after: Shape) -> list[int]:
    """Returns the dimensions of size one that `after` drops; [] if other dimensions differ too."""
    dropped, left = [], list(after)
    for place, size in enumerate(before):
        if left and size is not None and left[0] == size:
            del left[0]
        elif size == 1:
            dropped.append(place)
        else:
            return []
    return [] if left else dropped
