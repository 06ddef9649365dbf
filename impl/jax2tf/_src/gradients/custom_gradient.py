"""tf.custom_gradient around a lowered function: the gradient is JAX's vjp.

JAX's own rules hold (relu at 0 has gradient 0) because JAX does the differentiating. There are two
ways to the same gradient:

- A tape watches: the forward pass also returns what the backward pass needs, as JAX's vjp splits
  them, and nothing is computed twice.
- Nobody watches yet (a graph that may be differentiated later, a SavedModel): only the function is
  lowered. Its vjp is traced and lowered if TensorFlow asks for it, and computes forward again.

Derivatives of a gradient take the second way: it is a function of the arguments alone. In a graph
such a gradient is a call of a TensorFlow function, because TensorFlow differentiates a call with
respect to what it is called with, also where another graph made it: a tape around a graph, and a
gradient that a SavedModel holds, have derivatives for that reason. The last derivative that is
saved is no call: tape.jacobian of a restored function finds no results of a call inside of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import tensorflow as tf

from jax2tf._src import compat, ops
from jax2tf._src.api.errors import NotDifferentiableError
from jax2tf._src.call_tf.variables import value_of
from jax2tf._src.gradients import in_graph
from jax2tf._src.gradients.differentiability import REFUSALS, Differentiability, differentiability
from jax2tf._src.gradients.missing import NOTHING_REFUSED, Backward, Gradients, Refusal, refused
from jax2tf._src.gradients.refused import refuse, refuse_when_computed
from jax2tf._src.gradients.vjp import Vjp
from jax2tf._src.lowering.plan import identifier
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.tf_decorators import custom_gradient
from jax2tf._src.util.typing import PyTree

LowerTrace = Callable[[Trace, Sequence[tf.Tensor]], list[tf.Tensor]]
# Results, and the gradients for the cotangents of those results that are inexact.
Differentiated = tuple[list[tf.Tensor], Callable[[Sequence[tf.Tensor]], Gradients]]


def differentiable(
    trace: Trace,
    lower: LowerTrace,
    args: Sequence[tf.Tensor],
    with_gradient: bool,
    name: str,
    saved_order: int = 1,
    enable_xla: bool = True,
    given: Sequence[object] | None = None,
    own: int | None = None,
    watched: bool | None = None,
) -> list[tf.Tensor]:
    """The results of `trace` on `args`, with JAX's vjp as their gradient.

    Args:
      trace: what to run.
      lower: lowers a trace on tensors.
      args: one tensor for each argument of the trace.
      with_gradient: False makes TensorFlow raise a LookupError when it is asked to differentiate.
      name: the function's name, for the error.
      saved_order: up to which order derivatives can be saved. TensorFlow saves the gradients of
        what is in a graph, not those of the gradients: they have to be there before.
      enable_xla: whether graphs may hold ops that are TensorFlow's alone, as PreventGradient is.
      given: what the user gave for each argument: a variable where `args` has its value.
      own: how many of the arguments are no cotangents, where the trace is that of a gradient.
      watched: whether a tape watches. By default that is asked of TensorFlow.
    """
    given = args if given is None else given
    if watched is None:
        watched = compat.tapes.tape_may_record(list(args))
    if not trace.jaxpr.out_avals or (tf.executing_eagerly() and not watched):
        return lower(trace, args)
    if _has_to_be_called(args, with_gradient):
        call = partial(
            differentiable,
            trace,
            lower,
            with_gradient=with_gradient,
            name=name,
            saved_order=saved_order,
            enable_xla=enable_xla,
            given=given,
            own=own,
            watched=watched,
        )
        return list(tf.function(lambda *args: call(args), autograph=False)(*args))
    if not with_gradient:
        return [refuse(result, name, enable_xla) for result in lower(trace, args)]
    variables, trace = trace.with_variables()
    args = [*args, *map(value_of, variables)]
    function = _Function(trace, lower, name, saved_order, (*given, *variables), own)
    if not function.vjp.is_differentiable:
        way = function.without_gradient
    else:
        way = function.with_residuals if watched else function.with_recomputation
    results = function.recorded(way, args, variables)
    if saved_order > 1 and function.vjp.is_differentiable and not tf.executing_eagerly():
        function.gradient_function().add_to_graph(tf.compat.v1.get_default_graph())
    return results


def _has_to_be_called(args: Sequence[tf.Tensor], with_gradient: bool) -> bool:
    """Whether TensorFlow differentiates the program in a function of its own, and not inline.

    A call has the gradient of its function, wherever it stands. What a graph holds inline has not:

    - A ForwardAccumulator has no tangents for what a tf.custom_gradient gives.
    - A SavedModel binds a gradient to the tensors of the graph that it restores. The gradient of a
      branch, and of the step of a loop, is taken of a copy of that graph.

    What XLA compiles has no gradient there after it is restored, of TensorFlow's own ops neither.
    And a loop would keep what the call hands to its gradient, in lists that XLA does not return.
    """
    if tf.executing_eagerly():
        return False
    if compat.tapes.accumulator_watches(args):
        return True
    is_compiled = compat.functions.in_compiled_function()
    return with_gradient and not is_compiled and compat.graphs.is_in_control_flow()


def _beside_variables(
    gradient: Callable[..., Gradients], unwritten: _Unwritten
) -> Callable[..., PyTree]:
    """The gradient of a function that reads variables of TensorFlow's, through call_tf.

    They are arguments too. TensorFlow asks for them once more, because they are read inside.
    """

    def with_variables(*cotangents: tf.Tensor, variables: Sequence[tf.Variable] = ()) -> PyTree:
        with tf.control_dependencies(unwritten.checks()):
            gradients = [
                tf.identity(g) if isinstance(g, tf.Tensor) else g for g in gradient(*cotangents)
            ]
        return (gradients, [None] * len(variables)) if variables else gradients

    return with_variables


@dataclasses.dataclass(frozen=True)
class _Unwritten:
    """Variables that have to keep the values of the forward pass: the backward pass, which computes
    a called TensorFlow function again, reads them anew.
    """

    name: str
    variables: Sequence[tf.Variable]
    values: Sequence[tf.Tensor]

    def checks(self) -> list[tf.Operation]:
        return [
            tf.debugging.Assert(
                _is_same(value_of(variable), value),
                [
                    f"jax2tf.convert({self.name}): the variable {variable.name} was written "
                    "between the call and its gradient, which computes the TensorFlow function "
                    "that reads it again. Take the gradient before, or pass the variable as an "
                    "argument"
                ],
            )
            for variable, value in zip(self.variables, self.values, strict=True)
        ]


def _without_derivative(residual: tf.Tensor) -> tf.Tensor:
    """A residual as a result that TensorFlow does not differentiate.

    Once a graph has asked for the gradient of a tf.function, residuals are results of it too, and a
    tape around it asks for their gradients: through ops that may have none.
    """
    if tf.executing_eagerly() or residual.dtype not in dtypes.DIFFERENTIABLE:
        return residual
    return ops.raw.StopGradient(input=residual)


def _is_same(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    same = tf.equal(one, other)
    if one.dtype in dtypes.DIFFERENTIABLE:
        same |= tf.not_equal(one, one) & tf.not_equal(other, other)  # NaN
    return tf.reduce_all(same)


@dataclasses.dataclass(frozen=True)
class _Function:
    """What is differentiated; the arguments of `differentiable` say the rest.

    `given` has variables that calls of TensorFlow read behind what was given for the arguments.
    `own`: how many arguments are no cotangents, where the function is a gradient.
    `compiled`: whether XLA compiles the graph that calls it.
    """

    trace: Trace
    lower: LowerTrace
    name: str
    saved_order: int
    given: Sequence[object] = ()
    own: int | None = None
    compiled: bool = dataclasses.field(default_factory=compat.functions.in_compiled_function)

    @property
    def vjp(self) -> Vjp:
        return self.trace.cached("vjp", lambda: Vjp(self.trace))

    @property
    def differentiability(self) -> Differentiability:
        def make() -> Differentiability:
            with _refusal(self.name), _noting(self.name, self.trace):
                return differentiability(self.vjp, self.trace)

        return self.trace.cached("differentiability", make)

    def recorded(
        self,
        way: Callable[[Sequence[tf.Tensor]], Differentiated],
        args: Sequence[tf.Tensor],
        variables: Sequence[tf.Variable] = (),
    ) -> list[tf.Tensor]:
        """The results that one of the ways below gives, as tapes and graphs differentiate them.

        `variables` are those of TensorFlow's whose values are the last arguments.
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
            given, gradient = self._unrecorded(way, tensors)
            results.extend(given)
            differentiated = [given[i] for i in outputs]
            if not self.trace.calls_tensorflow:
                return differentiated, gradient
            values = tensors[len(tensors) - len(variables) :]
            unwritten = _Unwritten(self.name, variables, values)
            return differentiated, _beside_variables(gradient, unwritten)

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
        """What a way gives; its gradient takes cotangents one by one.

        A tape would otherwise hold on to every op inside, and have TensorFlow differentiate the
        loops of what XLA compiles, which it cannot.
        """
        with compat.tapes.nothing_recorded():
            results, of_cotangents = way(args)

        def gradient(*cotangents: tf.Tensor) -> Gradients:
            # Where a gather reads a result they are IndexedSlices.
            return of_cotangents(list(map(tf.convert_to_tensor, cotangents)))

        return list(results), gradient

    def without_gradient(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and gradients that are all None."""
        return self.lower(self.trace, args), lambda cotangents: [None] * len(args)

    def with_recomputation(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and a backward pass that computes forward again."""
        return self.lower(self.trace, args), partial(self._recomputed, args)

    def with_residuals(self, args: Sequence[tf.Tensor]) -> Differentiated:
        """The results, and a backward pass that takes up where the forward pass ended.

        What has no derivative fails where the derivative is asked for: a tape may watch for the
        sake of something else.
        """
        vjp, split = self._split(self.vjp)
        if split is None and tf.executing_eagerly():
            # In a graph, whoever differentiates the graph may ask for the others later.
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
        """A vjp, and it as two traces, or None where JAX cannot differentiate the function."""

        def make() -> tuple[Trace, Trace] | None:
            try:
                with _noting(self.name, self.trace):
                    return vjp.trace_split()
            except REFUSALS:
                return None

        return vjp, self.trace.cached(("split vjp", *vjp.inputs), make)

    def _of_arguments(self, vjp: Vjp, results: Sequence[tf.Tensor]) -> Gradients:
        """The results of the backward pass as TensorFlow wants them, None for integers.

        TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
        """
        gradients: Gradients = [None] * len(self.trace.jaxpr.in_avals)
        for i, result in zip(vjp.inputs, results, strict=True):
            gradients[i] = _conjugate(result)
        return gradients

    def gradient_function(self) -> PyTree:
        """The gradients as a TensorFlow function of arguments and cotangents."""
        # Where XLA compiles, callbacks are refused. What is saved is the function in the graph.
        compiled = (
            self.compiled
            if compat.graphs.is_saving_gradient()
            else compat.functions.in_compiled_function()
        )
        key = ("gradient function", self.saved_order, compiled)
        return self.trace.cached(key, self._make_gradient_function)

    def _make_gradient_function(self) -> PyTree:
        jaxpr = self.trace.jaxpr
        avals = [*jaxpr.in_avals, *(jaxpr.out_avals[i] for i in self.vjp.outputs)]

        @partial(tf.function, autograph=False)
        def gradient(*operands: tf.Tensor) -> list[tf.Tensor]:
            return self._gradients(operands, self.saved_order - 1)

        # Residuals would be of no use: what is differentiated is the call.
        with compat.tapes.nothing_recorded():
            return gradient.get_concrete_function(*map(dtypes.tensor_spec, avals))

    def _recomputed(self, args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]) -> Gradients:
        if not self.vjp.is_differentiable:
            return [None] * len(args)
        refusal = self._refused_for(args, cotangents)
        gradients = self._of_arguments(self.vjp, self._results_recomputed(args, cotangents))
        return refusal.instead_of(gradients)

    def _refused_for(self, args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]) -> Refusal:
        """What becomes of the gradients that JAX does not have.

        Raises:
          NotDifferentiableError: one of them was asked for.
        """
        found = self.differentiability
        if found.error is None:
            return NOTHING_REFUSED
        backward = Backward(
            name=self.name,
            trace=self.trace,
            args=args,
            given=self.given or args,
            own=len(args) if self.own is None else self.own,
            of_result=dict(zip(self.vjp.outputs, cotangents, strict=True)),
        )
        message = _message(self.name, found.error)
        if len(found.refused) < len(self.vjp.inputs):
            paths = ", ".join(self.trace.path(i) for i in sorted(found.refused))
            message += f". Others have gradients: for those, pass tf.stop_gradient of {paths}"
        return refused(found, backward, message)

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
            # A tape that watches a variable which the function reads would have TensorFlow
            # differentiate the gradient, its gradient, and so on without end.
            with compat.tapes.nothing_recorded():
                results: Sequence[tf.Tensor] = called(*operands)
            return results
        # TensorFlow would ask for the derivative of a call that a persistent tape records at once.
        whole = dataclasses.replace(self._whole(saved_order=1), given=operands)

        def way(operands: Sequence[tf.Tensor]) -> Differentiated:
            return called(*operands), partial(whole._recomputed, operands)

        # A gradient reads its operands where another graph takes it from: they have to be here.
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
            whole.trace, self.lower, operands, True, whole.name, saved_order, own=whole.own
        )

    def _whole(self, saved_order: int) -> _Function:
        """The gradients as a function of arguments and cotangents that can be differentiated."""
        trace = self.differentiability.whole
        own = len(self.trace.jaxpr.in_avals) if self.own is None else self.own
        name = f"the gradient of {self.name}"
        return _Function(trace, self.lower, name, saved_order, own=own)


@contextlib.contextmanager
def _refusal(name: str) -> Iterator[None]:
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
def _noting(name: str, trace: Trace) -> Iterator[None]:
    """Adds to what a derivative rule of the user's raises where it comes from."""
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
