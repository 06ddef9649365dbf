"""The other lowering: the function's StableHLO inside one XlaCallModule op.

JAX exports the module; here it is made into one that the running TensorFlow can execute. It is
serialised for the StableHLO version which that TensorFlow reads, composite ops (erf, top_k, gelu)
become calls of what they are composed of, and the assertions about shapes are left out, because
TensorFlow ops check the same before the module runs. A custom call is code of the process that runs
the module: one that TensorFlow does not have is refused at conversion.

A module of a function that is sharded over the devices of a mesh carries the shardings and the
number of partitions, in Shardy's dialect or in GSPMD's attributes, as JAX writes them. TensorFlow
partitions by them on TPUs; elsewhere XLA takes them out, and the module runs on one device. XLA
cannot take out a program of each device (shard_map, pmap): that stays one only where the module is
for TPUs alone, and is one program over whole arrays in any other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np
import tensorflow as tf
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
from jax2tf._src.util.typing import Array, Shape

# Custom calls that every XLA runs or compiles away.
_KNOWN_TO_XLA = frozenset(
    {
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK", "AllocateBuffer"),
        # Over open dimensions; TensorFlow makes ordinary ops of them once the shapes are known.
        *(f"stablehlo.dynamic_{op}" for op in ("reduce_window", "rng_bit_generator", "top_k")),
        function_list.TARGET,
    }
)

# Constants of more elements are arguments of the op: TensorFlow holds them once, outside of it.
_EMBEDDED_CONSTANT_SIZE = 64

_CPU = "cpu"
_TPU = "tpu"
_PLATFORMS = frozenset({_CPU, _TPU, "cuda", "rocm"})
# The dialect in which JAX writes how arrays are sharded, unless it writes attributes for GSPMD.
_SHARDY = "sdy."
# Of a function: shardings, names, buffers that may be reused.
_OF_ARGUMENTS = ("arg_attrs", "res_attrs")
_SHAPE_ASSERTION = "shape_assertion"


@dataclass(frozen=True)
class Options:
    """What the caller asked for.

    Attributes:
      platforms: those for which the module is lowered ("cpu", "cuda", "rocm", "tpu"); None for
        the one that JAX runs on.
      disabled_checks: jax.export.DisabledSafetyCheck.platform() leaves it to the caller that the
        module fits where it runs, .custom_call(target) that the call is known there.
    """

    platforms: tuple[str, ...] | None = None
    disabled_checks: tuple[export.DisabledSafetyCheck, ...] = ()


def platforms_of(platforms: Sequence[str]) -> tuple[str, ...]:
    """The platforms that the caller asked for.

    Raises:
      TypeError: they are no sequence.
      ValueError: one is none that JAX lowers for, or there is none.
    """
    where = "jax2tf.convert: native_serialization_platforms"
    names = ", ".join(sorted(_PLATFORMS))
    found = option_checks.sequence(platforms, where, f"names among {names}", "['cpu']")
    if not found or not all(isinstance(p, str) and p in _PLATFORMS for p in found):
        raise ValueError(
            f"{where} should be a sequence of names among {names}, got {option_checks.shown(found)}"
        )
    return found


def disabled_checks_of(
    checks: Sequence[export.DisabledSafetyCheck],
) -> tuple[export.DisabledSafetyCheck, ...]:
    """The checks that the caller disabled.

    Raises:
      TypeError: they are no sequence, or one of them is none.
    """
    where = "jax2tf.convert: native_serialization_disabled_checks"
    of = "jax2tf.DisabledSafetyCheck.platform() and .custom_call(target)"
    example = "[jax2tf.DisabledSafetyCheck.platform()]"
    found = option_checks.sequence(() if checks is None else checks, where, of, example)
    for check in found:
        if not isinstance(check, export.DisabledSafetyCheck):
            raise TypeError(
                f"{where} should be a sequence of {of}, got {option_checks.shown(check)} in it"
            )
    return found


@dataclass(frozen=True)
class _Module:
    """A serialised module, and how to call it."""

    serialized: bytes
    version: int
    platforms: list[str]
    disabled_checks: list[str]
    constants: list[Array]
    functions: list[tf.types.experimental.ConcreteFunction]
    is_shardy: bool


class Surroundings(Protocol):
    """What is known where the op comes to stand: a lowering, or the context of a rule."""

    def static_shape(self, shape: Shape) -> list[int | None]:
        """What is known of a shape before the run."""

    def constant(self, value: Array) -> tf.Tensor:
        """A tensor of a constant."""


def call(
    trace: Trace, options: Options, surroundings: Surroundings, tensors: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """The results of `trace` on `tensors`, as those of one XlaCallModule op.

    Args:
      trace: what to run.
      options: for which platforms, and which checks to leave out.
      surroundings: the lowering, which knows the sizes of dimension variables.
      tensors: one for each argument of the trace; what was assumed of their shapes was checked.

    Raises:
      ConversionError: JAX cannot export the function, or TensorFlow could not run the module.
    """
    # XLA has no variables of TensorFlow's: their values are arguments of the op.
    variables, trace = trace.with_variables()
    tensors = [*tensors, *map(value_of, variables)]
    module = trace.cached(("native", options), lambda: _export(trace, options))
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
    # Without results it is an operation, and not an empty list.
    return (
        compiled_calls.in_dtypes(results, [dtypes.to_tf(a.dtype) for a in out_avals])
        if shapes
        else []
    )


def is_partitioned(trace: Trace, options: Options) -> bool:
    """Whether the module holds parts for several devices, so that only a graph can hold it."""
    return trace.cached(("native is partitioned", options), lambda: _is_partitioned(trace, options))


def _is_partitioned(trace: Trace, options: Options) -> bool:
    programs = shardings.programs_of_devices(trace)
    if programs:
        on_several = any(eqn.params["mesh"].size > 1 for eqn in programs)
        return options.platforms == (_TPU,) and on_several
    return shardings.is_partitioned(trace)


def _export(trace: Trace, options: Options) -> _Module:
    _refuse_calls_on_the_host(trace)
    jaxpr = inlining.with_captures_inlined(trace.jaxpr)
    for value in dataclasses.replace(trace, jaxpr=jaxpr, cache={}).inner_constants():
        # Only those of the function itself become arguments of the op.
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
    # Unused arguments stay: dimension variables may be solved from them alone.
    partitioned = is_partitioned(trace, options)
    is_whole = bool(shardings.programs_of_devices(trace)) and not partitioned
    fun = device_programs.without_programs(jaxpr) if is_whole else _evaluating(jaxpr)
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
        # More lines of it may follow below: it is the cause.
        raise ConversionError(
            "jax2tf.convert: native_serialization: JAX cannot export the function: "
            f"{_words(error)}. "
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
    # Some rules compare open dimensions only when JAX lowers them, after the trace.
    jax.errors.InconclusiveDimensionOperation,
)

# An op of the module, in the text of JAX's refusal to promise that its target stays.
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


def _evaluating(jaxpr: jex_core.ClosedJaxpr) -> Callable[..., list[jax.Array]]:
    def run(consts: Sequence[Array], *args: jax.Array) -> list[jax.Array]:
        results: list[jax.Array] = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(jaxpr.jaxpr, consts))(
            *args
        )
        return results

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
    """The dtype as which an array of `dtype` goes into the module and comes out of it."""
    made: np.dtype = _PACKED.get(str(dtype), dtype)
    return made


# As `compiled.unpacked` has them.
_PACKED = {dtype.name: np.dtype(carrier.as_numpy_dtype) for dtype, carrier in HOLDS_INT4.items()}


def _as_dtype(value: Array, dtype: np.dtype) -> Array:
    # A result that is a literal is a Python number.
    same = hasattr(value, "dtype") and value.dtype == dtype
    return value if same else jax.lax.convert_element_type(value, dtype)


def _words(error: Exception) -> str:
    """What an error says in one line: what MLIR names as the error, or else its first line."""
    said = _MLIR_ERROR.search(str(error))
    return (said[1] if said else str(error).splitlines()[0]).rstrip(".;")


_MLIR_ERROR = re.compile(r": error: (.*)")


def _for_tensorflow(
    trace: Trace,
    serialized: bytes,
    options: Options,
    platforms: Sequence[str],
    partitioned: bool,
) -> tuple[bytes, bool]:
    """The module without what the running TensorFlow does not know, in the version it reads.

    Returns:
      The module, and whether its shardings are Shardy's.
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
    # Locations hold the call stack of whoever converts, with the paths of their machine.
    "strip-debuginfo",
)


def _run_passes(module: ir.Module, *passes: str) -> None:
    passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)


def _refuse_custom_calls(trace: Trace, module: ir.Module, options: Options) -> None:
    """Takes the assertions about shapes out; raises where a call is left that TensorFlow lacks."""
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
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _set_partitions(module: ir.Module, count: int) -> None:
    # JAX counts the devices that it has itself, of which an AbstractMesh has none.
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
    module.operation.attributes["mhlo.num_partitions"] = attribute


def _drop_shardings(module: ir.Module) -> None:
    """Takes out what says how arrays are sharded, which for one device means nothing."""
    for op in _operations(module):
        for name in [n for n in op.attributes if n.startswith(_SHARDY) or n in _OF_ARGUMENTS]:
            del op.attributes[name]
        if op.name == "sdy.sharding_constraint":
            op.results[0].replace_all_uses_with(op.operands[0])
        if op.name.startswith(_SHARDY):
            op.erase()


def _refusal(trace: Trace, target: str, location: str) -> UnsupportedPrimitiveError:
    # JAX ends the name of an op with the primitive that it comes from: "jit(f)/layer/cholesky".
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
