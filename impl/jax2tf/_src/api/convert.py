"""`convert`: makes a TensorFlow function of a JAX function."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
from jax import export

from jax2tf._src import compat, dims
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.api.partitioning import refuse_eager
from jax2tf._src.gradients import custom_gradient, in_graph
from jax2tf._src.lowering import eager, pipeline
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.emit.mesh.shardings import is_partitioned
from jax2tf._src.lowering.interpreter import Lowering
from jax2tf._src.lowering.passes import value_checks as checks
from jax2tf._src.lowering.supported import Observer
from jax2tf._src.native import xla_call_module
from jax2tf._src.targets import by_name
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.target import XLA, Target
from jax2tf._src.tracing.arguments import Argument
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.large_constants import LargeConstants, Policy
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.tracing.tracer import LeafOrArgument, Tracer
from jax2tf._src.tracing.traits import CALLBACKS, CALLBACKS_WITH_VALUES, EIGENVALUES
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.tf_decorators import without_autograph
from jax2tf._src.util.typing import PyTree


def convert(
    fun_jax: Callable[..., PyTree],
    *,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] | jax.export.SymbolicScope = (),
    polymorphic_checks: bool = True,
    with_gradient: bool = True,
    saved_gradient_order: int = 1,
    enable_xla: bool = True,
    target: str | Target | None = None,
    assume_finite: bool = False,
    large_constants: Policy = "embed",
    debug_callbacks: bool = True,
    value_checks: checks.Choice = "raise",
    eager_graphs: bool = True,
    native_serialization: bool | None = None,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence[export.DisabledSafetyCheck] = (),
) -> Callable[..., PyTree]:
    """Makes a JAX function callable from TensorFlow: eagerly, in graphs, compiled.

    The result takes the arguments of `fun_jax`, positional and keyword, with tensors at the leaves
    of their pytrees, and returns the tree of `fun_jax`'s results, of tf.Tensors. Dtypes follow
    JAX's rules under the current jax_enable_x64; arguments are cast if the rules require it. XLA
    compiles a function that is jitted (`convert(jax.jit(f))`), unless enable_xla=False, or unless
    it has an eigh or an svd, for which TensorFlow's kernels are faster. An argument that is static
    in jax.jit stays a Python value, and each such value has a trace of its own.

    >>> import jax.numpy as jnp
    >>> f = convert(lambda x, scale: {"y": jnp.sin(x) * scale})
    >>> f(tf.zeros([2, 3]), scale=2.0)["y"].shape
    TensorShape([2, 3])

    Args:
      fun_jax: any function or callable object that jax.jit takes; the result of jax.jit, with its
        static arguments; or the result of a library's jit (equinox.filter_jit, flax.nnx.jit), to
        which every leaf that is not an array is passed unchanged.
      polymorphic_shapes: a shape spec for all positional arguments; or a sequence with a pytree
        prefix of specs for each; or a dict of such prefixes by parameter name, also for keyword
        arguments. An argument without a spec has a known shape. A spec is None (the shape is
        known), or text such as "b, ..." or "(b, 2*n + 1, _)", in which names stand for dimensions
        that are at least 1, `_` for a known dimension, and `...` for the rest; or a result of
        jax.export.symbolic_shape. JAX treats `x.shape[0] == 1` as false if the dimension has a
        name: code of `fun_jax` that only runs for that size is not in the graph.
      polymorphic_constraints: assumptions about the dimensions, such as "b >= 8", "mod(b, 4) == 0",
        "a <= 2*b", or a jax.export.SymbolicScope with such constraints. The function checks them,
        like all assumptions, when it runs.
      polymorphic_checks: whether graphs check the assumptions about dimensions that are unknown in
        the graph. Without checks, the result is undefined if an assumption fails; omit them for
        engines that have no Assert.
      with_gradient: whether TensorFlow can differentiate the result, by JAX's vjp of `fun_jax`.
        With False, differentiating raises a LookupError.
      saved_gradient_order: the highest order of derivatives that tf.saved_model.save can save,
        given tf.saved_model.SaveOptions(experimental_custom_gradients=True). Derivatives above the
        first are traced and lowered with the function, whether or not it is saved. In the restored
        function, a derivative above that order raises tf.errors.InvalidArgumentError when it is
        computed, and is NaN in code that XLA compiles. tape.jacobian only vectorises the highest
        order.
      enable_xla: whether TensorFlow's XLA ops may be used where no standard op has the semantics.
      target: what will read the graph: "xla" (the default), "tensorflow" (only standard ops, as
        with enable_xla=False), "litert", "onnx", "openvino", "tfjs", "coreml", or a jax2tf.Target.
        Engines get one op of their own for functions that JAX writes as many: softmax, gelu, mean
        and others. In TensorFlow, such a graph may differ from JAX where a number is NaN.
      assume_finite: whether guards against NaN and infinity are left out, for smaller graphs. The
        results are undefined if a NaN or an infinity occurs.
      large_constants: what becomes of captured arrays of more than 64 kB: "embed" stores them in
        every graph, "refuse" raises a ConversionError, and a function from the array to a
        tf.Variable makes graphs read that; to save the variable, keep it on the module that is
        saved.
      debug_callbacks: whether jax.debug.callback and jax.debug.print run. They return no values.
        With False they are left out, and do not keep XLA from compiling the function.
      value_checks: what becomes of Python callbacks whose values are used only if a check fails (in
        equinox.error_if, a branch that calls a function which raises, the case of a jnp.where that
        a callback returns). "raise" calls them, which XLA cannot compile and engines do not
        support; "drop" leaves the checks out; "nan" returns NaN where a check fails, the largest
        number of an integer dtype, and True for bool.
      eager_graphs: whether eager mode runs a function as one graph, which costs less than its
        single ops: with at least 50 equations from the first call on, with at least 4 equations
        after 8 calls, with the same bits. Functions with side effects, with calls into Python or
        TensorFlow, or with polymorphic shapes always run op by op.
      native_serialization: whether the result is one XlaCallModule op that holds the function's
        StableHLO, as JAX itself compiles it. Only XLA runs that op. None means True if one of the
        two following options is given.
      native_serialization_platforms: the platforms to lower for, of "cpu", "cuda", "rocm" and
        "tpu"; None for the platform on which JAX runs.
      native_serialization_disabled_checks: safety checks to leave out, as made by
        jax2tf.DisabledSafetyCheck.platform() and .custom_call(target).

    Returns:
      A function with the same name and documentation, to be called with tensors.

    Raises:
      TypeError: `fun_jax` is not callable, or a switch is neither True nor False.
      ValueError: `value_checks` is none of the three; native serialization with enable_xla=False or
        a target without XLA ops, or one of its options with native_serialization=False; an unknown
        target, or one with XLA ops and enable_xla=False.

    The result raises, when called: TypeError for an argument that is not an array, ValueError for
    an argument whose shape is unknown or contradicts polymorphic_shapes (if that is known only at
    run time, tf.errors.InvalidArgumentError), jax2tf.ConversionError for primitives without a
    lowering. Each names the argument, or the primitive and its line of `fun_jax`.
    """
    option_checks.callable_(fun_jax, "jax2tf.convert: fun_jax")
    option_checks.switches(
        "jax2tf.convert",
        polymorphic_checks=polymorphic_checks,
        with_gradient=with_gradient,
        enable_xla=enable_xla,
        assume_finite=assume_finite,
        debug_callbacks=debug_callbacks,
        eager_graphs=eager_graphs,
        native_serialization=False if native_serialization is None else native_serialization,
    )
    saved_gradient_order = option_checks.whole_number(
        saved_gradient_order,
        "jax2tf.convert: saved_gradient_order",
        1,
        "with_gradient=False saves no derivative",
    )
    option_checks.one_of(value_checks, "jax2tf.convert: value_checks", checks.CHOICES)
    lowered_for = by_name.chosen(target, enable_xla=enable_xla, assume_finite=assume_finite)
    native = _native_options(
        native_serialization,
        lowered_for,
        enable_xla,
        native_serialization_platforms,
        native_serialization_disabled_checks,
    )
    function = Function(fun_jax)
    tracer = Tracer(
        function,
        polymorphic_shapes,
        polymorphic_constraints,
        LargeConstants(large_constants),
        debug_callbacks,
        functools.partial(pipeline.simplified, choice=value_checks),
    )
    conversion = Conversion(
        function,
        tracer,
        lowered_for,
        polymorphic_checks,
        with_gradient,
        saved_gradient_order,
        eager_graphs,
        native,
    )

    @without_autograph
    def converted_fun(*args: PyTree, **kwargs: PyTree) -> PyTree:
        return conversion.call(args, kwargs)

    # Not functools.wraps, because tf.function opens a function among its arguments down to the
    # wrapped one, and the names of a library's objects need not be strings.
    converted_fun.__name__ = converted_fun.__qualname__ = function.name
    converted_fun.__doc__ = fun_jax.__doc__
    signature = function.parameters.signature_without_defaults()
    setattr(converted_fun, "__signature__", signature)  # noqa: B010
    return converted_fun


@dataclasses.dataclass(frozen=True, eq=False)
class Conversion:
    """One JAX function and one target; the stages of its conversion are methods.

    `trace` has JAX trace the function, `prepare` runs the passes over its jaxpr, `check` tests the
    shapes of arguments, and `lower`, `lower_native` and `compile` return the results as ops. `call`
    runs the stages on a user's arguments, and `make_graph` on placeholders.

    Attributes:
      function: the JAX function.
      tracer: makes and keeps its traces; several targets may share it.
      target: what reads the ops.
      polymorphic_checks: whether graphs check the assumptions about dimensions.
      with_gradient: whether TensorFlow can differentiate the results.
      saved_gradient_order: the highest order of derivatives that can be saved.
      eager_graphs: whether eager mode may run the function as one graph.
      native: the options of native serialization; None if the result consists of TensorFlow ops.
    """

    function: Function
    tracer: Tracer
    target: Target
    polymorphic_checks: bool = False
    with_gradient: bool = True
    saved_gradient_order: int = 1
    eager_graphs: bool = False
    native: xla_call_module.Options | None = None

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return self.function.name

    def call(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> PyTree:
        """The results of the function, as `convert` describes them."""
        trace, leaves = self.trace(args, kwargs, Argument)
        results = custom_gradient.differentiable(
            trace,
            self.run,
            [leaf.tensor() for leaf in leaves],
            self.with_gradient,
            self.name,
            self.saved_gradient_order,
            self.target.enable_xla,
            given=[leaf.value for leaf in leaves],
        )
        if not tf.executing_eagerly():
            compat.graphs.skip_order_of_effects(tf.compat.v1.get_default_graph())
        return trace.results(results)

    def trace(
        self,
        args: tuple[PyTree, ...],
        kwargs: dict[str, PyTree],
        leaf: Callable[..., LeafOrArgument],
    ) -> tuple[Trace, list[LeafOrArgument]]:
        """JAX's trace for these arguments, and `leaf(path, value, function)` for each leaf."""
        return self.tracer.trace(args, kwargs, leaf)

    def run(self, trace: Trace, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results of a trace of the function or its derivative, by the stage that it needs."""
        try:
            self._refuse_partitioned(trace)
            if self.native is not None:
                return self.lower_native(trace, tensors)
            return self._compile_or_lower(trace, tensors)
        except UnsupportedPrimitiveError as error:
            error.locate(f"the function {self.name}")
            raise

    def _refuse_partitioned(self, trace: Trace) -> None:
        """Refuses eager mode for a function that JAX partitions over devices."""
        if self.native is not None:
            spans_devices = xla_call_module.is_partitioned(trace, self.native)
        else:
            spans_devices = self.target.enable_xla and is_partitioned(trace)
        if spans_devices:
            refuse_eager(f"jax2tf.convert({self.name})")

    def _compile_or_lower(self, trace: Trace, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        if not self._is_compiled(trace):
            return self.lower(trace, tensors)
        compiled = trace.cached("compiled", lambda: self.compile(trace), self.target)
        # TensorFlow captures the arguments of a compiled function as if all code around it were
        # compiled; the gradient of a tf.cond then does not find them.
        return list(compiled(*in_graph.in_this_graph(tensors)))

    def _is_compiled(self, trace: Trace) -> bool:
        """Whether XLA compiles the function because the user jitted it."""
        if not (self.target.enable_xla and self.function.is_jitted):
            return False
        on_host = CALLBACKS if trace.debug_callbacks else CALLBACKS_WITH_VALUES
        return not on_host & trace.primitives and not _has_kernels(trace, self.target)

    def prepare(self, trace: Trace) -> Trace:
        """The trace after the passes over its jaxpr that the target asks for."""
        return pipeline.for_target(trace, self.target)

    def lower(
        self, trace: Trace, tensors: Sequence[tf.Tensor], observer: Observer | None = None
    ) -> list[tf.Tensor]:
        """The results of a trace, in ops that the target supports.

        Args:
          trace: the function, as `trace` returns it.
          tensors: one for each argument of the trace.
          observer: sees the equations and their ops.
        """
        trace = self.prepare(trace)

        def lower_checked(tensors: Sequence[tf.Tensor], values: dims.Values) -> list[tf.Tensor]:
            lowering = Lowering(trace, self.target, values, observer)
            return lowering.run_trace(tensors, self.eager_graphs)

        return self.check(trace, tensors, lower_checked)

    def lower_native(self, trace: Trace, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results of a trace, by one XlaCallModule op that holds JAX's StableHLO."""
        assert self.native is not None
        options = self.native

        def call_module(tensors: Sequence[tf.Tensor], values: dims.Values) -> list[tf.Tensor]:
            lowering = Lowering(trace, TARGETS[XLA], values)
            return xla_call_module.call(trace, options, lowering, tensors)

        return self.check(trace, tensors, call_module)

    def compile(self, trace: Trace) -> Callable[..., list[tf.Tensor]]:
        """A function of the trace's arguments that XLA compiles."""
        in_dtypes, out_dtypes = (
            [dtypes.to_tf(aval.dtype) for aval in avals]
            for avals in (trace.jaxpr.in_avals, trace.jaxpr.out_avals)
        )

        def body(*tensors: tf.Tensor) -> list[tf.Tensor]:
            operands = compiled_calls.in_dtypes(tensors, in_dtypes)
            return compiled_calls.unpacked(self.lower(trace, operands))

        function = tf.function(body, autograph=False, jit_compile=True)

        def call(*tensors: tf.Tensor) -> list[tf.Tensor]:
            crossing = compiled_calls.unpacked(tensors)
            results = eager.run_compiled(trace, body, crossing) if tf.executing_eagerly() else None
            results = function(*crossing) if results is None else results
            return compiled_calls.in_dtypes(results, out_dtypes)

        return call

    def make_graph(self, trace: Trace, observer: Observer) -> None:
        """Lowers the trace to a graph that is discarded; `observer` sees the lowering."""

        def body(*tensors: tf.Tensor) -> list[tf.Tensor]:
            return [tf.identity(result) for result in self.lower(trace, tensors, observer)]

        specs = [dtypes.tensor_spec(aval) for aval in trace.jaxpr.in_avals]
        tf.function(body, autograph=False).get_concrete_function(*specs)

    def check(
        self,
        trace: Trace,
        tensors: Sequence[tf.Tensor],
        lower: Callable[[Sequence[tf.Tensor], dims.Values], list[tf.Tensor]],
    ) -> list[tf.Tensor]:
        """The results of `lower`, once the shapes of the arguments have been checked.

        Args:
          trace: the trace to lower.
          tensors: one for each argument of the trace.
          lower: gets the tensors and the sizes of dimension variables.
        """
        if not trace.is_polymorphic:
            return lower(tensors, {})
        where = f"jax2tf.convert({self.name})"
        shapes = [dtypes.physical_shape(aval) for aval in trace.jaxpr.in_avals]
        solution = dims.solve(shapes, tensors, trace.path, where)
        # A vjp has the arguments of its function, which the function's call has checked.
        if not trace.paths:
            return lower(tensors, solution.values)
        checks = dims.check(solution, trace.assumptions, where, at_run_time=self.polymorphic_checks)
        if not checks:
            return lower(tensors, solution.values)
        # Ops that read an argument of unchecked shape, or a size, wait for the checks: for a wrong
        # size they would fail first. The results wait too, as they may depend on nothing but the
        # assumptions.
        with tf.control_dependencies(checks):
            tensors = [
                t if dims.is_static(shape) else tf.identity(t)
                for t, shape in zip(tensors, shapes, strict=True)
            ]
            values = {
                name: size if isinstance(size, int) else tf.identity(size)
                for name, size in solution.values.items()
            }
        results = lower(tensors, values)
        # The arguments beside them keep constant results from being folded: if a compiled function
        # calls this one, only the ops that its results depend on run.
        with tf.control_dependencies(checks):
            waiting: list[tf.Tensor] = tf.raw_ops.IdentityN(input=[*results, *tensors])
        return waiting[: len(results)]


def _has_kernels(trace: Trace, target: Target) -> bool:
    """Whether TensorFlow's kernels run a function, although the user jitted it."""
    by_kernels = target.wants(Optimization.EIGENVALUES_BY_KERNELS)
    # A TPU has no kernels: everything on it is compiled.
    has_eigenvalues = not EIGENVALUES.isdisjoint(trace.primitives)
    return by_kernels and has_eigenvalues and not tf.config.list_logical_devices("TPU")


def _native_options(
    wanted: bool | None,
    target: Target,
    enable_xla: bool,
    platforms: Sequence[str] | None,
    disabled_checks: Sequence[export.DisabledSafetyCheck],
) -> xla_call_module.Options | None:
    # Each is read once, because an iterator is empty the second time.
    if platforms is not None:
        platforms = xla_call_module.platforms_of(platforms)
    disabled_checks = xla_call_module.disabled_checks_of(disabled_checks)
    has_options = platforms is not None or bool(disabled_checks)
    if has_options and wanted is False:
        raise ValueError(
            "jax2tf.convert: native_serialization_platforms and "
            "native_serialization_disabled_checks are options of native serialization, and "
            "native_serialization=False forbids it; leave one of them out"
        )
    if not (wanted or has_options):
        return None
    if not target.enable_xla:
        asked_by = f"the target {target.name!r}" if enable_xla else "enable_xla=False"
        raise ValueError(
            "jax2tf.convert: native serialization (native_serialization=True, or an option of it) "
            f"needs XLA, and {asked_by} forbids it; leave one of them out"
        )
    return xla_call_module.Options(platforms, disabled_checks)
