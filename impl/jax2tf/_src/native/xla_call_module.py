"""Native serialization: the function's StableHLO inside one XlaCallModule op.

JAX exports a module, and this code adapts it to the running TensorFlow. The module is serialised
for the StableHLO version that TensorFlow reads. Composite ops (erf, top_k, gelu) become calls of
their decompositions. Assertions about shapes are dropped, because TensorFlow ops check the shapes
before the module runs. Custom calls to code that TensorFlow does not have are refused.

The module of a function that is sharded over a mesh has the shardings and the number of partitions,
in Shardy's dialect or in GSPMD's attributes. TensorFlow partitions the module on TPUs; elsewhere
XLA drops the shardings, and the module runs on one device. XLA cannot drop per-device programs
(shard_map, pmap): they are kept only in modules for TPUs, and are programs over whole arrays in all
others.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np
from jax import export
from jax.extend import core as jex_core
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jax2tf._src import compat
from jax2tf._src.api.errors import ConversionError, UnsupportedPrimitiveError
from jax2tf._src.call_tf import function_list
from jax2tf._src.call_tf.primitive import call_tf_p
from jax2tf._src.call_tf.variables import value_of
from jax2tf._src.lowering import refusals
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.emit.compute_dtypes import HOLDS_INT4
from jax2tf._src.lowering.emit.mesh import device_programs, shardings
from jax2tf._src.native import extremes
from jax2tf._src.tracing import inlining
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Array, Shape

# Custom calls that every XLA runs or compiles away.
_KNOWN_TO_XLA = frozenset(
    {
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK", "AllocateBuffer"),
        # TensorFlow refines these to ordinary ops once the open dimensions are known.
        *(f"stablehlo.dynamic_{op}" for op in ("reduce_window", "rng_bit_generator", "top_k")),
        function_list.TARGET,
    }
)

# Constants with more elements are arguments of the op, and not copied into its module.
_EMBEDDED_CONSTANT_SIZE = 64

_CPU = "cpu"
_TPU = "tpu"
_PLATFORMS = frozenset({_CPU, _TPU, "cuda", "rocm"})
# The prefix of Shardy's dialect, in which JAX writes shardings unless it uses GSPMD's attributes.
_SHARDY = "sdy."
# These attributes of functions hold shardings, names and donated buffers.
_OF_ARGUMENTS = ("arg_attrs", "res_attrs")
_SHAPE_ASSERTION = "shape_assertion"


@dataclass(frozen=True)
class Options:
    """The caller's options.

    Attributes:
      platforms: the platforms of the module ("cpu", "cuda", "rocm", "tpu"); None for JAX's own.
      disabled_checks: with jax.export.DisabledSafetyCheck.platform() the platform is not checked
        when the module runs, and with .custom_call(target) the target is accepted.
    """

    platforms: tuple[str, ...] | None = None
    disabled_checks: tuple[export.DisabledSafetyCheck, ...] = ()


def platforms_of(platforms: Sequence[str]) -> tuple[str, ...]:
    """The platforms that the caller asked for.

    Raises:
      TypeError: they are not a sequence.
      ValueError: JAX does not lower for one of them, or the sequence is empty.
    """
    where = "jax2tf.convert: native_serialization_platforms"
    names = ", ".join(sorted(_PLATFORMS))
    platforms = option_checks.sequence(platforms, where, f"names among {names}", "['cpu']")
    if not platforms or not all(isinstance(p, str) and p in _PLATFORMS for p in platforms):
        got = option_checks.shown(platforms)
        raise ValueError(f"{where} should be a sequence of names among {names}, got {got}")
    return platforms


def disabled_checks_of(
    checks: Sequence[export.DisabledSafetyCheck],
) -> tuple[export.DisabledSafetyCheck, ...]:
    """The checks that the caller disabled.

    Raises:
      TypeError: they are not a sequence, or one of them is not a check.
    """
    where = "jax2tf.convert: native_serialization_disabled_checks"
    of = "jax2tf.DisabledSafetyCheck.platform() and .custom_call(target)"
    example = "[jax2tf.DisabledSafetyCheck.platform()]"
    disabled = option_checks.sequence(() if checks is None else checks, where, of, example)
    for check in disabled:
        if not isinstance(check, export.DisabledSafetyCheck):
            raise TypeError(
                f"{where} should be a sequence of {of}, got {option_checks.shown(check)} in it"
            )
    return disabled


@dataclass(frozen=True)
class _Module:
    """A serialised module, with the attributes and constants of the op that calls it."""

    serialized: bytes
    version: int
    platforms: list[str]
    disabled_checks: list[str]
    constants: list[Array]
    functions: list[tf.types.experimental.ConcreteFunction]
    is_shardy: bool


class Surroundings(Protocol):
    """The interface of a lowering or of a rule's context that the op needs."""

    def static_shape(self, shape: Shape) -> list[int | None]:
        """The sizes of a shape that are known before the run; None for others."""

    def constant(self, value: Array) -> tf.Tensor:
        """A tensor of a constant."""


def call(
    trace: Trace, options: Options, surroundings: Surroundings, tensors: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """Runs `trace` on `tensors` by one XlaCallModule op; returns its results.

    Args:
      trace: the function.
      options: the platforms, and the disabled checks.
      surroundings: the lowering, which knows the sizes of dimension variables.
      tensors: one for each argument of the trace, with checked shapes.

    Raises:
      ConversionError: JAX cannot export the function, or TensorFlow could not run the module.
    """
    # XLA does not read TensorFlow's variables, so their values are arguments of the op.
    variables, trace = trace.with_variables()
    tensors = [*tensors, *map(value_of, variables)]
    module = trace.cached("native", lambda: _export(trace, options), options)
    out_avals = trace.jaxpr.out_avals
    shapes = [surroundings.static_shape(dtypes.physical_shape(aval)) for aval in out_avals]
    for function in module.functions:
        function.add_to_graph(None if tf.executing_eagerly() else tf.compat.v1.get_default_graph())
    results = compat.xla.xla_ops.xla_call_module(
        compiled_calls.unpacked([*(surroundings.constant(c) for c in module.constants), *tensors]),
        version=module.version,
        module=module.serialized,
        Sout=[tf.TensorShape(shape) for shape in shapes],
        Tout=[dtypes.to_tf(_unpacked(aval.dtype)) for aval in out_avals],
        platforms=module.platforms,
        disabled_checks=module.disabled_checks,
        function_list=module.functions,
        use_shardy_partitioner=module.is_shardy,
    )
    # Without results XlaCallModule gives an operation instead of an empty list.
    return (
        compiled_calls.in_dtypes(results, [dtypes.to_tf(a.dtype) for a in out_avals])
        if shapes
        else []
    )


def is_partitioned(trace: Trace, options: Options) -> bool:
    """Whether the module is partitioned over several devices, and so must be in a graph."""
    return trace.cached("native is partitioned", lambda: _is_partitioned(trace, options), options)


def _is_partitioned(trace: Trace, options: Options) -> bool:
    programs = shardings.programs_of_devices(trace)
    if programs:
        on_several = any(eqn.params["mesh"].size > 1 for eqn in programs)
        return options.platforms == (_TPU,) and on_several
    return shardings.is_partitioned(trace)


def _export(trace: Trace, options: Options) -> _Module:
    _refuse_calls_on_the_host(trace)
    jaxpr = inlining.with_captures_inlined(trace.jaxpr)
    for value in dataclasses.replace(trace, jaxpr=jaxpr).inner_constants():
        # Only constants of the outermost jaxpr become arguments of the op.
        refusals.refuse_tracer(value)
        if trace.large_constants.held(np.asarray(value)) is not None:
            raise ConversionError(
                "jax2tf.convert: native_serialization: a jitted function inside of a loop or "
                f"branch captures an array {value.dtype.name}{list(value.shape)}, which would be "
                "written into the module. What to do: pass it as an argument, convert with "
                "large_constants='embed', or with native_serialization=False"
            )
    large = [i for i, c in enumerate(jaxpr.consts) if np.size(c) > _EMBEDDED_CONSTANT_SIZE]
    constants = [jaxpr.consts[i] for i in large]
    # Unused arguments stay, because dimension variables may be solved from them.
    partitioned = is_partitioned(trace, options)
    is_whole = bool(shardings.programs_of_devices(trace)) and not partitioned
    fun = device_programs.without_programs(jaxpr) if is_whole else _evaluator(jaxpr)
    jitted = jax.jit(_with_constants_as_arguments(jaxpr, large, fun), keep_unused=True)
    specs = [
        jax.ShapeDtypeStruct(np.shape(x), _unpacked(x.dtype)) for x in (*constants, *jaxpr.in_avals)
    ]
    calls_functions = export.DisabledSafetyCheck.custom_call(function_list.TARGET)
    disabled_checks = (*options.disabled_checks, calls_functions)
    try:
        with compat.jaxprs.groups_of_numbers(), function_list.collecting() as functions:
            exported = export.export(
                jitted, platforms=options.platforms, disabled_checks=disabled_checks
            )(*specs)
    except _NOT_EXPORTED as error:
        without_guarantees = _CUSTOM_CALL.search(str(error))
        if without_guarantees:
            raise _refusal(trace, *without_guarantees.groups()) from error
        # The message has only the first line; the traceback shows the rest as the cause.
        raise ConversionError(
            "jax2tf.convert: native_serialization: JAX cannot export the function: "
            f"{_one_line(error)}. "
            "What to do: convert with native_serialization=False"
        ) from error
    serialized, is_shardy = _for_tensorflow(
        trace, exported.mlir_module_serialized, options, exported.platforms, partitioned
    )
    return _Module(
        serialized=serialized,
        version=min(exported.calling_convention_version, compat.xla.xla_call_module_version()),
        platforms=[platform.upper() for platform in exported.platforms],
        disabled_checks=[str(check) for check in options.disabled_checks],
        constants=constants,
        functions=functions,
        is_shardy=is_shardy,
    )


_NOT_EXPORTED = (
    NotImplementedError,
    ValueError,
    jax.errors.JaxRuntimeError,
    # Some lowering rules of JAX compare open dimensions only after the trace.
    jax.errors.InconclusiveDimensionOperation,
)

# Finds target and location of the op in JAX's error about custom calls without guarantees.
_CUSTOM_CALL = re.compile(r"custom_call @([\w.$]+)\(.*at (loc\(.*)")


def _refuse_calls_on_the_host(trace: Trace) -> None:
    for eqn in trace.equations():
        if eqn.primitive is not call_tf_p:
            continue
        function = eqn.params["function"]
        if not function.options.compile:
            raise refusals.unsupported(
                eqn,
                f"native_serialization: call_tf({function}, compile=False) runs on the host, and a "
                "module cannot call back into TensorFlow",
                "convert with native_serialization=False, which makes ordinary ops of the function",
            )


def _evaluator(jaxpr: jex_core.ClosedJaxpr) -> Callable[..., list[jax.Array]]:
    def run(consts: Sequence[Array], *args: jax.Array) -> list[jax.Array]:
        return jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(jaxpr.jaxpr, consts))(*args)

    return run


def _with_constants_as_arguments(
    jaxpr: jex_core.ClosedJaxpr, which: Sequence[int], run: Callable[..., Sequence[Array]]
) -> Callable[..., Sequence[Array]]:
    def fun(*args: jax.Array) -> list[Array]:
        consts: list[Array] = list(jaxpr.consts)
        for i, value in zip(which, args, strict=False):
            consts[i] = _as_dtype(value, consts[i].dtype)
        operands = map(_as_dtype, args[len(which) :], (aval.dtype for aval in jaxpr.in_avals))
        results = run(consts, *operands)
        return [
            _as_dtype(r, _unpacked(aval.dtype))
            for r, aval in zip(results, jaxpr.out_avals, strict=True)
        ]

    return fun


def _unpacked(dtype: np.dtype) -> np.dtype:
    """The dtype of the module's argument or result for an array of `dtype`."""
    return _PACKED.get(str(dtype), dtype)


# The same dtypes as those of `compiled_calls.unpacked`.
_PACKED = {dtype.name: np.dtype(carrier.as_numpy_dtype) for dtype, carrier in HOLDS_INT4.items()}


def _as_dtype(value: Array, dtype: np.dtype) -> Array:
    # A result that is a literal of the jaxpr is a Python number.
    same = hasattr(value, "dtype") and value.dtype == dtype
    return value if same else jax.lax.convert_element_type(value, dtype)


def _one_line(error: Exception) -> str:
    """The line of an error that MLIR marks, or else its first line."""
    marked = _MLIR_ERROR.search(str(error))
    return (marked[1] if marked else str(error).splitlines()[0]).rstrip(".;")


_MLIR_ERROR = re.compile(r": error: (.*)")


def _for_tensorflow(
    trace: Trace,
    serialized: bytes,
    options: Options,
    platforms: Sequence[str],
    partitioned: bool,
) -> tuple[bytes, bool]:
    """Adapts the module to the running TensorFlow, in the StableHLO version that it reads.

    Returns:
      The module, and whether it has Shardy's shardings.
    """
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, serialized)
        _refuse_custom_calls(trace, module, options)
        if partitioned:
            _set_partitions(module, shardings.device_count(trace))
        else:
            _drop_shardings(module)
        is_shardy = any(op.name.startswith(_SHARDY) for op in _operations(module))
        if _CPU in platforms:
            extremes.spell_out(module)
        _run_passes(module, *_PASSES)
        version = compat.xla.stablehlo_version()
        try:
            portable = stablehlo.serialize_portable_artifact(
                module, version, allow_other_dialects=is_shardy
            )
        except Exception as error:
            raise ConversionError(
                f"jax2tf.convert: native_serialization: this TensorFlow reads StableHLO {version}, "
                f"which cannot express the function: {error}. "
                "What to do: convert with native_serialization=False"
            ) from error
        return portable, is_shardy


_PASSES = (
    "func.func(stablehlo-legalize-composite-to-call)",
    "inline",
    "symbol-dce",
    # Locations have the call stack of the conversion, with paths of that machine.
    "strip-debuginfo",
)


def _run_passes(module: ir.Module, *passes: str) -> None:
    passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)


def _refuse_custom_calls(trace: Trace, module: ir.Module, options: Options) -> None:
    """Drops the assertions about shapes; refuses calls to code that TensorFlow does not have."""
    trusted = {check.is_custom_call() for check in options.disabled_checks}
    for op in _custom_calls(module):
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        if target == _SHAPE_ASSERTION:
            op.erase()
        elif target not in _KNOWN_TO_XLA and target not in trusted:
            raise _refusal(trace, target, str(op.location))


def _custom_calls(module: ir.Module) -> list[ir.Operation]:
    return [op for op in _operations(module) if op.name == "stablehlo.custom_call"]


def _operations(module: ir.Module) -> list[ir.Operation]:
    operations: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        operations.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return operations


def _set_partitions(module: ir.Module, count: int) -> None:
    # JAX writes the number of its own devices, and an AbstractMesh has none.
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
    module.operation.attributes["mhlo.num_partitions"] = attribute


def _drop_shardings(module: ir.Module) -> None:
    """Drops all shardings, which mean nothing on one device."""
    for op in _operations(module):
        for name in [n for n in op.attributes if n.startswith(_SHARDY) or n in _OF_ARGUMENTS]:
            del op.attributes[name]
        if op.name == "sdy.sharding_constraint":
            op.results[0].replace_all_uses_with(op.operands[0])
        if op.name.startswith(_SHARDY):
            op.erase()


def _refusal(trace: Trace, target: str, location: str) -> UnsupportedPrimitiveError:
    # The last part of an op's name is its JAX primitive, as in "jit(f)/layer/cholesky".
    name = re.search(r'loc\("(?:[^"]*/)?([^"/]*)"', location)
    primitive = name[1] if name else target
    eqn = trace.find(primitive)
    if eqn is not None and refusals.knows(eqn.primitive):
        return refusals.refusal(eqn)
    return UnsupportedPrimitiveError(
        primitive,
        f"JAX compiles it to a custom call of {target!r}, code that TensorFlow does not have",
        "convert with native_serialization=False, which lowers it to TensorFlow ops; or, if the "
        "process that runs the module has the code, pass native_serialization_disabled_checks="
        f"[jax.export.DisabledSafetyCheck.custom_call({target!r})]",
        compat.jaxprs.user_source(eqn) if eqn else "",
    )


stablehlo.register_stablehlo_passes()
