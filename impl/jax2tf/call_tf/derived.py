"""What is derived from a TensorFlow function: its vjp, its jvp, itself over a batch.

All of them are TensorFlow functions again, so that derivatives of derivatives, batches of
derivatives and derivatives of batches come from the same three. TensorFlow differentiates: its
custom gradients hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf

from jax2tf.call_tf.functions import Function, Options
from jax2tf.errors import CallTfError


def jvp(base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]) -> Function:
    """(arguments, tangents of those in `wrt`) -> tangents of the results in `outputs`."""
    if isinstance(base, Batched):
        return _batched(
            jvp(base.base, wrt, outputs),
            mapped=(*base.mapped, *(base.mapped[i] for i in wrt)),
            summed=tuple(k for k, i in enumerate(outputs) if i in base.summed),
        )
    return base.cached(("jvp", wrt, outputs), lambda: Jvp(base, wrt, outputs))


def vjp(base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]) -> Function:
    """(arguments, cotangents of results in `outputs`) -> cotangents of the arguments in `wrt`."""
    if isinstance(base, Batched):
        return _batched(
            vjp(base.base, wrt, outputs),
            mapped=(*base.mapped, *(i not in base.summed for i in outputs)),
            summed=tuple(k for k, i in enumerate(wrt) if not base.mapped[i]),
        )
    return base.cached(("vjp", wrt, outputs), lambda: Vjp(base, wrt, outputs))


def transposed(function: Batched | Jvp, n_primals: int, linear: tuple[int, ...]) -> Function:
    """What transposes a jvp, or the batch of one, in the tangents that stand at `linear`.

    (primals, cotangents of its results) -> cotangents of those tangents; the others are zero.
    """
    if isinstance(function, Batched):
        n_outputs = len(innermost(function).outputs)
        base: Any = function.base
        return _batched(
            transposed(base, n_primals, linear),
            mapped=(
                *function.mapped[:n_primals],
                *(i not in function.summed for i in range(n_outputs)),
            ),
            summed=tuple(k for k, i in enumerate(linear) if not function.mapped[i]),
        )
    return vjp(function.base, tuple(function.wrt[i - n_primals] for i in linear), function.outputs)


def batched(base: Function, mapped: tuple[bool, ...]) -> Function:
    """The function over a leading axis of the arguments that are mapped, and of all results."""
    return _batched(base, mapped, summed=())


def innermost(function: Function) -> Any:
    """What is computed for each element where the function is a batch, or a batch of batches."""
    while isinstance(function, Batched):
        function = function.base
    return function


def _batched(base: Function, mapped: tuple[bool, ...], summed: tuple[int, ...]) -> Function:
    return base.cached(("batched", mapped, summed), lambda: Batched(base, mapped, summed))


class _Derived(Function):
    def __init__(self, base: Function, name: str):
        # A derivative computes the function again: its side effects are not asked for.
        options = Options(has_side_effects=False, compile=base.options.compile)
        super().__init__(name, options)
        self.base = base

    def fall_back(self) -> bool:
        if not self.base.fall_back():
            return False
        self._derived.clear()
        return True


class Vjp(_Derived):
    """The vjp of a function with respect to some arguments, for cotangents of some results."""

    def __init__(self, base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]):
        super().__init__(base, f"vjp({base.name})")
        self.wrt, self.outputs = wrt, outputs
        self.stand_ins = base.stand_ins

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        args, cotangents = _split(tensors, len(self.outputs))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            args, sources = _watch(tape, args, self.wrt, self.base)
            results = self.base.run(args)
        with self.base.named_in_errors():
            gradients = tape.gradient(
                [results[i] for i in self.outputs],
                sources,
                output_gradients=[_conjugate(c) for c in cotangents],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
        return [
            _conjugate(_dense(gradient, args[i].dtype))
            for gradient, i in zip(gradients, self.wrt, strict=True)
        ]


class Jvp(_Derived):
    """The jvp of a function, as the transpose of its vjp.

    The vjp maps cotangents to gradients linearly; differentiating it with respect to the cotangents
    gives the jvp (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). It
    reaches every op that has two derivatives. tf.autodiff.ForwardAccumulator does the same for each
    op, but not through functions of control flow that XLA could compile.

    Attributes:
      wrt: which arguments have tangents.
      outputs: which results have tangents.
    """

    def __init__(self, base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]):
        super().__init__(base, f"jvp({base.name})")
        self.wrt, self.outputs = wrt, outputs
        self.stand_ins = base.stand_ins

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        args, tangents = _split(tensors, len(self.wrt))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            args, sources = _watch(tape, args, self.wrt, self.base)
            results = self.base.run(args)
        results = [results[i] for i in self.outputs]
        with self.base.named_in_errors(), tf.GradientTape(watch_accessed_variables=False) as outer:
            # A vjp is the same map everywhere, unless a custom gradient clips: zero is not clipped.
            cotangents = [tf.zeros_like(r) for r in results]
            outer.watch(cotangents)
            gradients = tape.gradient(results, sources, output_gradients=cotangents)
            connected = [
                (_dense(gradient, tangent.dtype), tangent)
                for gradient, tangent in zip(gradients, tangents, strict=True)
                if gradient is not None
            ]
        if not connected:
            return cotangents
        with self.base.named_in_errors():
            results = outer.gradient(
                [gradient for gradient, _ in connected],
                cotangents,
                output_gradients=[tangent for _, tangent in connected],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
        return [tf.convert_to_tensor(r) for r in results]


# What tf.vectorized_map raises where it cannot batch an op. What the function itself raises comes
# again from the loop.
_NO_RULE = (ValueError, TypeError, NotImplementedError, LookupError, AssertionError)


class Batched(_Derived):
    """A function over a leading axis of the arguments that are mapped, and of all results.

    tf.vectorized_map makes one op of many. Where TensorFlow has no rule for an op of the function,
    or XLA does not compile what that gives, tf.map_fn loops over the batch. `way` tells which of
    the two, and so does the name.

    What is derived from it is the batch of what is derived from its base, never the other way
    round: tf.vectorized_map gives ops without the custom gradients of those that they stand for,
    and XLA does not compile the derivative of a loop.

    Attributes:
      mapped: which arguments have the axis.
      summed: which results are the sum over it.
    """

    def __init__(self, base: Function, mapped: tuple[bool, ...], summed: tuple[int, ...]):
        super().__init__(base, f"vmap({base.name})")
        self.mapped = mapped
        self.summed = summed
        self.stand_ins = {i: v for i, v in base.stand_ins.items() if not mapped[i]}
        self.way = "vectorized_map"

    def element_avals(self, avals: Sequence[Any]) -> tuple[int, list[jax.ShapeDtypeStruct]]:
        """The size of the batch, and what the base is called with for one element."""
        size = next(
            a.shape[0] for a, is_mapped in zip(avals, self.mapped, strict=True) if is_mapped
        )
        return size, [
            jax.ShapeDtypeStruct(a.shape[1:] if is_mapped else a.shape, a.dtype)
            for a, is_mapped in zip(avals, self.mapped, strict=True)
        ]

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        specs = tuple(tf.TensorSpec(t.shape, t.dtype) for t in tensors)
        key = ("graph", specs, jax.config.read("jax_enable_x64"))
        return list(self.cached(key, lambda: self._graph(specs))(*tensors))

    def fall_back(self) -> bool:
        if self.way == "map_fn":
            return super().fall_back()
        self._loop()
        self._derived.clear()
        return True

    def _loop(self) -> None:
        self.way = "map_fn"
        self.name = f"vmap_by_loop({self.base.name})"

    def _graph(self, specs: Sequence[tf.TensorSpec]) -> Any:
        if self.way == "vectorized_map":
            try:
                return self._traced(self._vectorized, specs)
            except _NO_RULE as error:
                if isinstance(error, CallTfError):
                    raise
                self._loop()
        return self._traced(self._looped, specs)

    def _traced(self, body: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Any:
        def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
            return [
                tf.reduce_sum(result, 0) if i in self.summed else result
                for i, result in enumerate(body(tensors))
            ]

        # A graph of its own: what a failed attempt leaves behind does not stay anywhere.
        function = tf.function(run, autograph=False)
        return function.get_concrete_function(*specs)

    def _vectorized(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        function, mapped = self._of_mapped(tensors)
        return tf.vectorized_map(function, mapped, fallback_to_while_loop=False)

    def _looped(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        function, mapped = self._of_mapped(tensors)
        # What one call returns says what the loop collects.
        with tf.Graph().as_default():
            placeholders = [tf.compat.v1.placeholder(t.dtype, t.shape[1:]) for t in mapped]
            others = [tf.compat.v1.placeholder(t.dtype, t.shape) for t in tensors]
            results = self.base.run(self._merged(placeholders, others))
        return tf.map_fn(
            function,
            mapped,
            fn_output_signature=[tf.TensorSpec(r.shape, r.dtype) for r in results],
        )

    def _of_mapped(
        self, tensors: Sequence[tf.Tensor]
    ) -> tuple[Callable[..., Any], list[tf.Tensor]]:
        def function(elements: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            return self.base.run(self._merged(elements, tensors))

        return function, [t for t, is_mapped in zip(tensors, self.mapped, strict=True) if is_mapped]

    def _merged(self, elements: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """The arguments of one call: elements of the mapped ones, the others as they are."""
        rest = iter(elements)
        return [
            next(rest) if is_mapped else tensor
            for tensor, is_mapped in zip(tensors, self.mapped, strict=True)
        ]


_DIFFERENTIABLE = frozenset(
    {tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128}
)


def _split(tensors: Sequence[tf.Tensor], n_last: int) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    n = len(tensors) - n_last
    return list(tensors[:n]), list(tensors[n:])


def _watch(
    tape: tf.GradientTape, args: Sequence[tf.Tensor], wrt: Sequence[int], function: Function
) -> tuple[list[tf.Tensor], list[Any]]:
    """The arguments, and what stands on the tape for those in `wrt`.

    They are tensors of their own, since one may come twice; or the variable that the argument
    stands in for.
    """
    args = list(args)
    for i in wrt:
        if args[i].dtype not in _DIFFERENTIABLE:
            raise CallTfError(
                f"jax2tf.call_tf({function.name}): TensorFlow does not differentiate "
                f"{args[i].dtype.name} (argument {i}); cast it outside of the TensorFlow function"
            )
        args[i] = tf.identity(args[i])
    sources = [function.stand_ins.get(i, args[i]) for i in wrt]
    for source in sources:
        tape.watch(source)
    return args, sources


def _dense(gradient: Any, dtype: tf.DType) -> tf.Tensor:
    """A gradient as JAX has it: one with respect to a variable may be sparse, or of 64 bits."""
    return tf.cast(tf.convert_to_tensor(gradient), dtype)


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
