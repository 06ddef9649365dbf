"""What is derived from a TensorFlow function: its vjp, its jvp, itself over a batch.

All of them are TensorFlow functions again, so that derivatives of derivatives, batches of
derivatives and derivatives of batches come from the same three. TensorFlow differentiates: its
custom gradients hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import jax
import tensorflow as tf

from jax2tf.call_tf.functions import Function, Options
from jax2tf.errors import CallTfError


def jvp(base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]) -> Function:
    """(arguments, tangents of those in `wrt`) -> tangents of the results in `outputs`."""
    return base.cached(("jvp", wrt, outputs), lambda: Jvp(base, wrt, outputs))


def vjp(base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]) -> Function:
    """(arguments, cotangents of results in `outputs`) -> cotangents of the arguments in `wrt`."""
    return base.cached(("vjp", wrt, outputs), lambda: Vjp(base, wrt, outputs))


def batched(base: Function, mapped: tuple[bool, ...]) -> Function:
    """The function over a leading axis of the arguments that are mapped, and of all results."""
    return base.cached(("batched", mapped), lambda: Batched(base, mapped))


def _looped(base: Function, mapped: tuple[bool, ...]) -> Function:
    """As `batched`, by a loop."""
    return base.cached(("looped", mapped), lambda: Batched(base, mapped, "map_fn"))


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

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        if _is_loop(self.base):
            return self._run_loop(self.base, tensors)
        args, cotangents = _split(tensors, len(self.outputs))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            args = _watch(tape, args, self.wrt, self.base.name)
            results = self.base.run(args)
        with self.base.named_in_errors():
            gradients = tape.gradient(
                [results[i] for i in self.outputs],
                [args[i] for i in self.wrt],
                output_gradients=[_conjugate(c) for c in cotangents],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
        return [_conjugate(tf.convert_to_tensor(g)) for g in gradients]

    def _run_loop(self, base: Batched, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        mapped = (*base.mapped, *([True] * len(self.outputs)))
        each = _looped(vjp(base.base, self.wrt, self.outputs), mapped).run(tensors)
        return [
            gradient if base.mapped[i] else tf.reduce_sum(gradient, 0)
            for i, gradient in zip(self.wrt, each, strict=True)
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

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        if _is_loop(self.base):
            mapped = (*self.base.mapped, *(self.base.mapped[i] for i in self.wrt))
            return _looped(jvp(self.base.base, self.wrt, self.outputs), mapped).run(tensors)
        args, tangents = _split(tensors, len(self.wrt))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            args = _watch(tape, args, self.wrt, self.base.name)
            results = self.base.run(args)
        results = [results[i] for i in self.outputs]
        with self.base.named_in_errors(), tf.GradientTape(watch_accessed_variables=False) as outer:
            # A vjp is the same map everywhere, unless a custom gradient clips: zero is not clipped.
            cotangents = [tf.zeros_like(r) for r in results]
            outer.watch(cotangents)
            gradients = tape.gradient(
                results, [args[i] for i in self.wrt], output_gradients=cotangents
            )
            connected = [
                (tf.convert_to_tensor(gradient), tangent)
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


class Batched(_Derived):
    """A function over a leading axis of the arguments that are mapped, and of all results.

    tf.vectorized_map makes one op of many. Where TensorFlow has no rule for an op of the function,
    or XLA does not compile what that gives, tf.map_fn loops over the batch. `way` tells which of
    the two, and so does the name.
    """

    def __init__(self, base: Function, mapped: tuple[bool, ...], way: str = "vectorized_map"):
        super().__init__(base, f"vmap({base.name})")
        self.mapped = mapped
        self.way = way
        if way == "map_fn":
            self._loop()

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
            except (ValueError, NotImplementedError, LookupError, AssertionError) as error:
                if isinstance(error, CallTfError):
                    raise
                self._loop()
        return self._traced(self._looped, specs)

    def _traced(self, body: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Any:
        # A graph of its own: what a failed attempt leaves behind does not stay anywhere.
        function = tf.function(lambda *tensors: body(tensors), autograph=False)
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


def _is_loop(function: Function) -> TypeGuard[Batched]:
    """Whether it loops over a batch. XLA does not compile the derivative of such a loop, but it
    compiles the loop of the derivative.
    """
    return isinstance(function, Batched) and function.way == "map_fn"


_DIFFERENTIABLE = frozenset(
    {tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128}
)


def _split(tensors: Sequence[tf.Tensor], n_last: int) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    n = len(tensors) - n_last
    return list(tensors[:n]), list(tensors[n:])


def _watch(
    tape: tf.GradientTape, args: Sequence[tf.Tensor], wrt: Sequence[int], name: str
) -> list[tf.Tensor]:
    """The arguments, those in `wrt` watched: as tensors of their own, since one may come twice."""
    args = list(args)
    for i in wrt:
        if args[i].dtype not in _DIFFERENTIABLE:
            raise CallTfError(
                f"jax2tf.call_tf({name}): TensorFlow does not differentiate {args[i].dtype.name} "
                f"(argument {i}); cast it outside of the TensorFlow function"
            )
        args[i] = tf.identity(args[i])
        tape.watch(args[i])
    return args


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
