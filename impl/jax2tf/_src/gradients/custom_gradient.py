"""Gives a lowered function JAX's vjp as its gradient, by tf.custom_gradient.

JAX differentiates the function, so its own rules hold (relu at 0 has gradient 0). The gradient is
computed in one of two ways:

- If a tape watches, the forward pass also returns the residuals of JAX's vjp, and the backward pass
  computes nothing twice.
- If no tape watches (a graph that may be differentiated later, a SavedModel), only the function is
  lowered. Its vjp is traced and lowered when TensorFlow asks for it, and repeats the forward pass.

Derivatives of a gradient use the second way, in which the gradient is a function of only arguments
and cotangents. In a graph such a gradient is a call of a TensorFlow function. TensorFlow
differentiates a call with respect to its operands, also if another graph made them. So tapes around
a graph and gradients in a SavedModel have derivatives. The last derivative in a SavedModel is
inline instead, because tape.jacobian of a restored function does not find results inside a call.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jax2tf._src import compat, ops
from jax2tf._src.api.errors import NotDifferentiableError
from jax2tf._src.call_tf.variables import value_of
from jax2tf._src.gradients import in_graph
from jax2tf._src.gradients.differentiability import REFUSALS, Differentiability, differentiability
from jax2tf._src.gradients.missing import NOTHING_REFUSED, Backward, Gradients, Refusal, refusal_of
from jax2tf._src.gradients.refused import refuse, refuse_when_computed
from jax2tf._src.gradients.variables import Unwritten, beside_variables
from jax2tf._src.gradients.vjp import Vjp
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.tf_decorators import custom_gradient
from jax2tf._src.util.typing import PyTree

LowerTrace = Callable[[Trace, Sequence[Tensor]], list[Tensor]]
# The results, and a function from the cotangents of inexact results to gradients.
Differentiated = tuple[list[Tensor], Callable[[Sequence[Tensor]], Gradients]]


def differentiable(
    trace: Trace,
    lower: LowerTrace,
    args: Sequence[tf.Tensor],
    with_gradient: bool,
    name: str,
    saved_order: int = 1,
    enable_xla: bool = True,
    given: Sequence[object] | None = None,
    n_primals: int | None = None,
    watched: bool | None = None,
) -> list[tf.Tensor]:
    """The results of `trace` on `args`, with JAX's vjp as their gradient.

    Args:
      trace: the function.
      lower: lowers a trace on tensors.
      args: one tensor for each argument of the trace.
      with_gradient: False makes TensorFlow raise a LookupError when it is asked to differentiate.
      name: the function's name, for the error.
      saved_order: the highest order of derivatives that a SavedModel holds. TensorFlow saves the
        gradients of ops in a graph, so higher derivatives must be in the graph before.
      enable_xla: whether graphs may hold ops that only TensorFlow has, such as PreventGradient.
      given: the user's arguments: a variable where `args` has its value.
      n_primals: the number of arguments before the cotangents, if the trace is a gradient.
      watched: whether a tape watches; by default TensorFlow is asked.
    """
    given = args if given is None else given
    if watched is None:
        watched = compat.tapes.tape_may_record(list(args))
    if not trace.jaxpr.out_avals or (tf.executing_eagerly() and not watched):
        return lower(trace, args)
    if _has_to_be_called(trace, args, with_gradient):
        call = partial(
            differentiable,
            trace,
            lower,
            with_gradient=with_gradient,
            name=name,
            saved_order=saved_order,
            enable_xla=enable_xla,
            given=given,
            n_primals=n_primals,
            watched=watched,
        )
        return list(tf.function(lambda *args: call(args), autograph=False)(*args))
    if not with_gradient:
        return [refuse(result, name, enable_xla) for result in lower(trace, args)]
    variables, trace = trace.with_variables()
    args = [*args, *map(value_of, variables)]
    function = _Function(trace, lower, name, saved_order, (*given, *variables), n_primals)
    if not function.vjp.is_differentiable:
        way = function.without_gradient
    else:
        way = function.with_residuals if watched else function.with_recomputation
    results = function.recorded(way, args, variables)
    if saved_order > 1 and function.vjp.is_differentiable and not tf.executing_eagerly():
        function.gradient_function().add_to_graph(tf.compat.v1.get_default_graph())
    return results


def _has_to_be_called(trace: Trace, args: Sequence[tf.Tensor], with_gradient: bool) -> bool:
    """Whether the program must be a call of a TensorFlow function instead of inline ops.

    A call has the gradient of its function in every graph. Inline ops lack it in two cases:

    - A ForwardAccumulator has no tangents for the results of a tf.custom_gradient.
    - A SavedModel binds a gradient to the tensors of the restored graph. TensorFlow differentiates
      branches, and bodies of loops, in a copy of that graph.

    Compiled graphs stay inline. After restoring they have no gradients in control flow at all, not
    even of TensorFlow's own ops, and a loop would save the residuals of a call in tensor lists,
    which XLA does not return. Functions that read variables stay inline, too: TensorFlow does not
    find the variables of a called function when it differentiates control flow.
    """
    if tf.executing_eagerly():
        return False
    if compat.tapes.accumulator_watches(args):
        return True
    if not with_gradient or compat.functions.in_compiled_function():
        return False
    variables, _ = trace.with_variables()
    return not variables and compat.graphs.is_in_control_flow()


def _without_derivative(residual: tf.Tensor) -> tf.Tensor:
    """A residual that TensorFlow does not differentiate.

    When a graph asks for the gradient of a tf.function, its residuals become results, too. A tape
    around it would differentiate them through ops that may have no gradient.
    """
    if tf.executing_eagerly() or residual.dtype not in dtypes.DIFFERENTIABLE:
        return residual
    return ops.raw.StopGradient(input=residual)


@dataclasses.dataclass(frozen=True)
class _Function:
    """A function to differentiate; `differentiable` describes the other attributes.

    Attributes:
      given: the user's arguments, and then the variables that calls of TensorFlow functions read.
      n_primals: the number of arguments that are not cotangents, if the function is a gradient.
      compiled: whether XLA compiles the graph that calls it.
    """

    trace: Trace
    lower: LowerTrace
    name: str
    saved_order: int
    given: Sequence[object] = ()
    n_primals: int | None = None
    compiled: bool = dataclasses.field(default_factory=compat.functions.in_compiled_function)

    @property
    def vjp(self) -> Vjp:
        return self.trace.cached("vjp", lambda: Vjp(self.trace))

    @property
    def differentiability(self) -> Differentiability:
        def make() -> Differentiability:
            with _refusing(self.name), _with_note(self.name, self.trace):
                return differentiability(self.vjp, self.trace)

        return self.trace.cached("differentiability", make)

    def recorded(
        self,
        way: Callable[[Sequence[tf.Tensor]], Differentiated],
        args: Sequence[tf.Tensor],
        variables: Sequence[tf.Variable] = (),
    ) -> list[tf.Tensor]:
        """The results of one of the ways below, recorded for tapes and graphs.

        The last arguments are the values of `variables`.
        """
        outputs = self.vjp.outputs
        if not outputs:
            with compat.tapes.nothing_recorded():
                return way(args)[0]
        args = in_graph.in_this_graph(args)
        if not self.trace.calls_tensorflow and not tf.executing_eagerly():
            return self._recorded_in_graph(way, args)
        results: list[tf.Tensor] = []

        @custom_gradient
        def with_vjp(*tensors: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., PyTree]]:
            all_results, gradient = self._unrecorded(way, tensors)
            results.extend(all_results)
            differentiated = [all_results[i] for i in outputs]
            if not self.trace.calls_tensorflow:
                return differentiated, gradient
            values = tensors[len(tensors) - len(variables) :]
            unwritten = Unwritten(self.name, variables, values)
            return differentiated, beside_variables(gradient, unwritten)

        for i, result in zip(outputs, with_vjp(*args), strict=True):
            results[i] = result
        if not tf.executing_eagerly():
            in_graph.map_rows(
                results[outputs[0]].op,
                len(outputs),
                len(args),
                self._recomputed,
                self.name,
                self.saved_order > 1,
            )
        return results

    def _recorded_in_graph(
        self, way: Callable[[Sequence[tf.Tensor]], Differentiated], args: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        results, gradient = self._unrecorded(way, args)
        differentiated = [results[i] for i in self.vjp.outputs]
        recorded = in_graph.with_gradient(
            differentiated,
            args,
            gradient,
            self._recomputed,
            identifier(self.name),
            self.saved_order > 1,
        )
        for i, result in zip(self.vjp.outputs, recorded, strict=True):
            results[i] = result
        return results

    def _unrecorded(
        self, way: Callable[[Sequence[tf.Tensor]], Differentiated], args: Sequence[tf.Tensor]
    ) -> tuple[list[tf.Tensor], Callable[..., Gradients]]:
        """The results of a way without a record of its ops; its gradient takes single cotangents.

        A tape would otherwise keep every op inside, and TensorFlow would fail to differentiate
        loops in graphs that XLA compiles.
        """
        with compat.tapes.nothing_recorded():
            results, of_cotangents = way(args)

        def gradient(*cotangents: tf.Tensor) -> Gradients:
            # The cotangent of a result that a gather reads is tf.IndexedSlices.
            return of_cotangents(list(map(tf.convert_to_tensor, cotangents)))

        return list(results), gradient

    def without_gradient(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and gradients that are all None."""
        return self.lower(self.trace, args), lambda cotangents: [None] * len(args)

    def with_recomputation(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and a backward pass that repeats the forward pass."""
        return self.lower(self.trace, args), partial(self._recomputed, args)

    def with_residuals(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and a backward pass that uses the residuals of the forward pass.

        A function without derivatives fails only when its derivative is asked for, because the tape
        may watch for another function.
        """
        vjp, split = self._split(self.vjp)
        if split is None and tf.executing_eagerly():
            # In a graph, gradients of the other arguments may be asked for later.
            inputs = [i for i in vjp.inputs if compat.tapes.tape_may_watch(args[i])]
            if 0 < len(inputs) < len(vjp.inputs):
                vjp, split = self._split(Vjp(self.trace, inputs))
        if split is None:
            return self.with_recomputation(args)
        forward, backward = split
        n_outputs = len(self.trace.jaxpr.out_avals)
        results = self.lower(forward, args)
        residuals = list(map(_without_derivative, results[n_outputs:]))

        def gradient(cotangents: Sequence[tf.Tensor]) -> Gradients:
            if compat.tapes.tape_may_record([*args, *cotangents]):
                return self._recomputed(args, cotangents)
            sized = [args[i] for i in vjp.sized]
            operands = [*sized, *residuals, *map(_conjugate, cotangents)]
            return self._of_arguments(vjp, self.lower(backward, operands))

        return results[:n_outputs], gradient

    def _split(self, vjp: Vjp) -> tuple[Vjp, tuple[Trace, Trace] | None]:
        """A vjp with its two traces, or with None if JAX cannot differentiate the function."""

        def make() -> tuple[Trace, Trace] | None:
            try:
                with _with_note(self.name, self.trace):
                    return vjp.trace_split()
            except REFUSALS:
                return None

        return vjp, self.trace.cached("split vjp", make, *vjp.inputs)

    def _of_arguments(self, vjp: Vjp, results: Sequence[tf.Tensor]) -> Gradients:
        """A gradient for each argument from the results of the backward pass; None for integers.

        TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
        """
        gradients: Gradients = [None] * len(self.trace.jaxpr.in_avals)
        for i, result in zip(vjp.inputs, results, strict=True):
            gradients[i] = _conjugate(result)
        return gradients

    def gradient_function(self) -> PyTree:
        """The gradients as a TensorFlow function of arguments and cotangents."""
        # Compiled graphs refuse callbacks. A SavedModel holds the function that is in the graph.
        compiled = (
            self.compiled
            if compat.graphs.is_saving_gradient()
            else compat.functions.in_compiled_function()
        )
        make = self._make_gradient_function
        return self.trace.cached("gradient function", make, self.saved_order, compiled)

    def _make_gradient_function(self) -> PyTree:
        jaxpr = self.trace.jaxpr
        avals = [*jaxpr.in_avals, *(jaxpr.out_avals[i] for i in self.vjp.outputs)]

        @partial(tf.function, autograph=False)
        def gradient(*operands: tf.Tensor) -> list[tf.Tensor]:
            return self._gradients(operands, self.saved_order - 1)

        # Residuals would be useless, because TensorFlow differentiates the call.
        with compat.tapes.nothing_recorded():
            return gradient.get_concrete_function(*map(dtypes.tensor_spec, avals))

    def _recomputed(self, args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]) -> Gradients:
        if not self.vjp.is_differentiable:
            return [None] * len(args)
        refusal = self._refusal_for(args, cotangents)
        gradients = self._of_arguments(self.vjp, self._results_recomputed(args, cotangents))
        return refusal.instead_of(gradients)

    def _refusal_for(self, args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]) -> Refusal:
        """The replacement for gradients that JAX does not have.

        Raises:
          NotDifferentiableError: one of them was asked for.
        """
        of_jax = self.differentiability
        if of_jax.error is None:
            return NOTHING_REFUSED
        backward = Backward(
            name=self.name,
            trace=self.trace,
            args=args,
            given=self.given or args,
            n_primals=len(args) if self.n_primals is None else self.n_primals,
            of_result=dict(zip(self.vjp.outputs, cotangents, strict=True)),
        )
        message = _message(self.name, of_jax.error)
        if len(of_jax.refused) < len(self.vjp.inputs):
            paths = ", ".join(self.trace.path(i) for i in sorted(of_jax.refused))
            message += f". Others have gradients: for those, pass tf.stop_gradient of {paths}"
        return refusal_of(of_jax, backward, message)

    def _results_recomputed(
        self, args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]
    ) -> Sequence[tf.Tensor]:
        operands = [*args, *map(_conjugate, cotangents)]
        if tf.executing_eagerly():
            return self._gradients(operands, saved_order=1)
        if compat.graphs.is_saving_gradient() and self.saved_order == 1:
            return self._last_saved(operands)
        called = self.gradient_function()
        if not compat.tapes.tape_watches(operands):
            # If a tape watches a variable that the function reads, TensorFlow would differentiate
            # the gradient, the gradient of that, and so on without end.
            with compat.tapes.nothing_recorded():
                return called(*operands)
        # If a persistent tape recorded the call, TensorFlow would build its derivative at once.
        whole = dataclasses.replace(self._whole(saved_order=1), given=operands)

        def way(operands: Sequence[tf.Tensor]) -> Differentiated:
            return called(*operands), partial(whole._recomputed, operands)

        # Another graph may read the gradient's operands from this graph, so they must be in it.
        return whole.recorded(way, list(map(tf.identity, operands)))

    def _last_saved(self, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The gradients, for a SavedModel that holds no derivatives of them."""
        with compat.tapes.nothing_recorded():
            gradients = self.lower(self._whole(saved_order=1).trace.inlined(), operands)
        message = (
            f"jax2tf.convert: the SavedModel holds no derivative of the gradient of {self.name}. "
            "Convert with a higher saved_gradient_order, which is 1 by default, and save again"
        )
        return refuse_when_computed(gradients, operands, message)

    def _gradients(self, operands: Sequence[tf.Tensor], saved_order: int) -> list[tf.Tensor]:
        whole = self._whole(saved_order)
        return differentiable(
            whole.trace,
            self.lower,
            operands,
            True,
            whole.name,
            saved_order,
            n_primals=whole.n_primals,
        )

    def _whole(self, saved_order: int) -> _Function:
        """The gradients as a function of arguments and cotangents that can be differentiated."""
        trace = self.differentiability.whole
        n_primals = len(self.trace.jaxpr.in_avals) if self.n_primals is None else self.n_primals
        name = f"the gradient of {self.name}"
        return _Function(trace, self.lower, name, saved_order, n_primals=n_primals)


@contextlib.contextmanager
def _refusing(name: str) -> Iterator[None]:
    try:
        yield
    except REFUSALS as error:
        raise NotDifferentiableError(_message(name, error)) from error


def _message(name: str, error: Exception) -> str:
    return (
        f"jax2tf.convert({name}): JAX cannot differentiate it: {str(error).rstrip('.')}. To "
        "run or save it without a gradient, convert it with with_gradient=False, or save it "
        "with tf.saved_model.SaveOptions(experimental_custom_gradients=False)"
    )


@contextlib.contextmanager
def _with_note(name: str, trace: Trace) -> Iterator[None]:
    """Adds a note on the gradient to errors of the user's derivative rules."""
    try:
        yield
    except Exception as error:
        note = f"jax2tf.convert({name}): JAX raised this while it derived the gradient"
        if trace.is_polymorphic:
            note += (
                ", where dimensions have names and are no Python ints: make arrays of them with "
                "jax.numpy. The cotangent of an integer argument is None in a rule of "
                "jax.custom_vjp; np.zeros(x.shape, jax.dtypes.float0) needs numbers"
            )
        error.add_note(note)
        raise


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
