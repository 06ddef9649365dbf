"""The vjp, the jvp and the batch of a TensorFlow function.

Each is a TensorFlow function again, so that these three also give derivatives of derivatives,
batches of derivatives and derivatives of batches. TensorFlow differentiates: its custom gradients
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from jax2tf._src import compat
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import failures
from jax2tf._src.call_tf.functions import Described, Function, Options
from jax2tf._src.lowering.emit.compute_dtypes import STACKED, carrier_of
from jax2tf._src.util.dtypes import DIFFERENTIABLE
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.tensors import Tensor


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


def transposed(function: Function, n_primals: int, linear: tuple[int, ...]) -> Function:
    """The transpose of a jvp, or of the batch of a jvp, in the tangents at the indices `linear`.

    (primals, cotangents of its results) -> cotangents of those tangents; the others are zero.
    """
    if isinstance(function, Batched):
        inner = innermost(function)
        assert isinstance(inner, Jvp)
        n_outputs = len(inner.outputs)
        return _batched(
            transposed(function.base, n_primals, linear),
            mapped=(
                *function.mapped[:n_primals],
                *(i not in function.summed for i in range(n_outputs)),
            ),
            summed=tuple(k for k, i in enumerate(linear) if not function.mapped[i]),
        )
    assert isinstance(function, Jvp)
    return vjp(function.base, tuple(function.wrt[i - n_primals] for i in linear), function.outputs)


def batched(base: Function, mapped: tuple[bool, ...]) -> Function:
    """The function over a leading axis of the arguments that are mapped, and of all results."""
    return _batched(base, mapped, summed=())


def innermost(function: Function) -> Function:
    """The function that a batch, or a batch of batches, computes for each element."""
    while isinstance(function, Batched):
        function = function.base
    return function


def _batched(base: Function, mapped: tuple[bool, ...], summed: tuple[int, ...]) -> Function:
    return base.cached(("batched", mapped, summed), lambda: Batched(base, mapped, summed))


class _Derived(Function):
    is_derived = True

    def __init__(self, base: Function, name: str):
        # A derivative computes the function again, and its side effects should not happen again.
        options = Options(
            has_side_effects=False,
            compile=base.options.compile,
            call_tf_graph=base.options.call_tf_graph,
        )
        super().__init__(name, options, base)
        self.base = base

    def run_in_threads(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Like `run`. The first run for tensors of these shapes excludes other threads."""
        key = ("has run", *((t.dtype, tuple(t.shape)) for t in tensors))
        if self._derived.get(key):
            return self.run(tensors)
        with self.lock:
            results = self.run(tensors)
            self._derived.add(key, True)
        return results

    def fall_back(self) -> bool:
        if not self.base.fall_back():
            return False
        self._derived.clear()
        return True


class Derivative(_Derived):
    """The jvp or the vjp of a function.

    Attributes:
      wrt: the arguments that it differentiates with respect to.
      outputs: the results that it differentiates.
    """

    is_derivative = True

    def __init__(self, base: Function, wrt: tuple[int, ...], outputs: tuple[int, ...]):
        super().__init__(base, f"{type(self).__name__.lower()}({base.name})")
        self.wrt, self.outputs = wrt, outputs
        self.stand_ins = base.stand_ins


class Vjp(Derivative):
    """The vjp of a function with respect to some arguments, for cotangents of some results."""

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


class Jvp(Derivative):
    """The jvp of a function, as the transpose of its vjp.

    The vjp maps cotangents to gradients linearly; differentiating it with respect to the cotangents
    gives the jvp (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). It
    reaches every op that has two derivatives. tf.autodiff.ForwardAccumulator does the same for each
    op, but not through functions of control flow that XLA could compile.
    """

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


_Element = Callable[[Sequence[Tensor]], list[Tensor]]
_Mapper = Callable[[_Element, Sequence[Tensor]], list[Tensor]]


class Batched(_Derived):
    """A function over a leading axis of the arguments that are mapped, and of all results.

    tf.vectorized_map replaces each op by one op over the batch. Where TensorFlow has no rule for an
    op of the function, or XLA does not compile the vectorized graph, tf.map_fn loops over the
    batch. `mapper` says which of the two it is, and so does the name.

    The derivative of a batch is the batch of the derivative, never the other way round: the ops of
    tf.vectorized_map lose custom gradients, and XLA does not compile the derivative of a loop.

    Attributes:
      mapped: which arguments have the axis.
      summed: which results are the sum over it.
    """

    def __init__(self, base: Function, mapped: tuple[bool, ...], summed: tuple[int, ...]):
        super().__init__(base, f"vmap({base.name})")
        self.mapped = mapped
        self.summed = summed
        self.is_derivative = base.is_derivative
        self.stand_ins = {i: v for i, v in base.stand_ins.items() if not mapped[i]}
        self.mapper = "vectorized_map"

    def element_avals(self, avals: Sequence[Described]) -> tuple[int, list[jax.ShapeDtypeStruct]]:
        """The size of the batch, and the avals with which the base is called for one element."""
        size = next(
            a.shape[0] for a, is_mapped in zip(avals, self.mapped, strict=True) if is_mapped
        )
        return size, [
            jax.ShapeDtypeStruct(a.shape[1:] if is_mapped else a.shape, a.dtype)
            for a, is_mapped in zip(avals, self.mapped, strict=True)
        ]

    def run(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        specs = tuple(tf.TensorSpec(t.shape, t.dtype) for t in tensors)
        # TensorFlow's gradients of branches and slices differ in functions that XLA compiles.
        compiled = compat.functions.in_compiled_function()
        key = ("graph", specs, jax.config.read("jax_enable_x64"), compiled)
        graph = self.cached(key, lambda: self._graph(specs))
        with failures.in_one_line(self.name):
            return list(graph(*tensors))

    def fall_back(self) -> bool:
        if self.mapper == "map_fn":
            return super().fall_back()
        self._loop()
        self._derived.clear()
        return True

    def _loop(self) -> None:
        self.mapper = "map_fn"
        self.name = f"vmap_by_loop({self.base.name})"

    def _graph(self, specs: Sequence[tf.TensorSpec]) -> tf.types.experimental.ConcreteFunction:
        if self.mapper == "vectorized_map":
            try:
                with failures.not_logged():
                    return self._traced(_vectorized, specs)
            except CallTfError:
                raise
            except Exception:
                # TensorFlow's rules for batches raise errors of many types. If the function itself
                # raised, it raises again in the loop.
                self._loop()
        with failures.in_one_line(self.name):
            return self._traced(_looped, specs)

    def _traced(
        self, mapper: _Mapper, specs: Sequence[tf.TensorSpec]
    ) -> tf.types.experimental.ConcreteFunction:
        def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
            return self._mapped(mapper, tensors)

        # The trace has a graph of its own, so that the ops of a failed trace go away with it.
        function = tf.function(run, autograph=False)
        return function.get_concrete_function(*specs)

    def _mapped(self, mapper: _Mapper, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results of all elements, which TensorFlow's `mapper` maps the function over."""
        dtypes: list[tf.DType] = []

        def function(elements: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            results = self.base.run(self._merged(elements, tensors))
            dtypes[:] = [r.dtype for r in results]
            return [tf.cast(r, carrier_of(STACKED, r.dtype)) for r in results]

        mapped = [t for t, is_mapped in zip(tensors, self.mapped, strict=True) if is_mapped]
        results = [tf.cast(*r) for r in zip(mapper(function, mapped), dtypes, strict=True)]
        return [tf.reduce_sum(r, 0) if i in self.summed else r for i, r in enumerate(results)]

    def _merged(
        self, elements: Sequence[tf.Tensor], tensors: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """The arguments for one element: its slices of the mapped arguments, and the others."""
        # tf.vectorized_map raises AssertionError where a branch captures a tensor from outside of
        # the mapped function, unless an op of that function stands between. In a loop Grappler must
        # not remove the op: see lowering/emit/branch_captures.py. In functions that XLA compiles,
        # tf.ensure_shape sets sizes, and nested loops then have values that StableHLO cannot hold.
        op_between = tf.identity if compat.functions.in_compiled_function() else _ensured
        rest = iter(elements)
        return [
            next(rest) if is_mapped else op_between(tensor)
            for tensor, is_mapped in zip(tensors, self.mapped, strict=True)
        ]


def _ensured(tensor: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tensor, tensor.shape)


def _vectorized(function: _Element, mapped: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    # tf.vectorized_map leaves the call in the graph and names the vectorized ops
    # "<call>/pfor/...". If the function has batches of its own, TensorFlow gives the same names to
    # their ops when it inlines the call, and confuses the two. A name scope in the function keeps
    # the names apart.
    def element(elements: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        with tf.name_scope("element"):
            return function(elements)

    call = tf.function(element, autograph=False)
    return list(tf.vectorized_map(call, list(mapped), fallback_to_while_loop=False))


def _looped(function: _Element, mapped: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    # tf.map_fn has to be told the specs of the results: a trace for one element gives them.
    specs = [tf.TensorSpec(t.shape[1:], t.dtype) for t in mapped]
    one = tf.function(function, autograph=False).get_concrete_function(specs)
    results = [tf.TensorSpec(r.shape, r.dtype) for r in one.structured_outputs]
    return list(tf.map_fn(function, list(mapped), fn_output_signature=results))


def _split(tensors: Sequence[tf.Tensor], n_last: int) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    n = len(tensors) - n_last
    return list(tensors[:n]), list(tensors[n:])


def _watch(
    tape: tf.GradientTape, args: Sequence[tf.Tensor], wrt: Sequence[int], function: Function
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """The arguments, and the sources that the tape watches for those in `wrt`.

    A source is the variable that the argument stands in for, or else a copy of the argument, since
    one tensor may be two arguments.
    """
    args = list(args)
    for i in wrt:
        if args[i].dtype not in DIFFERENTIABLE:
            raise CallTfError(
                f"jax2tf.call_tf({function.name}): TensorFlow does not differentiate "
                f"{args[i].dtype.name} ({function.argument(i)}); cast it outside of the TensorFlow "
                "function"
            )
        args[i] = tf.identity(args[i])
    sources = [function.stand_ins.get(i, args[i]) for i in wrt]
    for source in sources:
        tape.watch(source)
    return args, sources


def _dense(gradient: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The gradient as a tensor of `dtype`: that of a variable may be sparse or have 64 bits."""
    return tf.cast(tf.convert_to_tensor(gradient), dtype)


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
