"""A staged call: TensorFlow's own XLA compilation of a signature, inside JAX's module.

TensorFlow compiles its graph to HLO; JAX turns that into StableHLO of its own version and calls it
as a function. Values that the graph captures are parameters of the function, after the arguments:
large constants, and variables, which a host callback reads each time the module runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax.experimental import io_callback
from jax.extend import core as jex_core
from jax.extend import mlir as jex_mlir
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jax2tf._src import compat, dims
from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import exchange, failures, function_list, polymorphic, trial_runs
from jax2tf._src.call_tf.functions import UNSPECIFIED, Function, Signature, no_value_error
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Aval, Dim, MlirValue, PyTree

# TensorFlow's names of the platforms that JAX lowers for.
_PLATFORMS = {"cpu": "CPU", "cuda": "CUDA", "gpu": "CUDA", "rocm": "ROCM", "tpu": "TPU"}


def register(primitive: jex_core.Primitive) -> None:
    """Registers the lowering of the primitive to JAX's module."""
    mlir.register_lowering(primitive, _lower, inline=False)


def output_specs(signature: Signature) -> list[jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the results of a staged call.

    Raises:
      CallTfError: TensorFlow cannot tell the shapes before the run.
    """
    tensors = signature.outputs
    shapes: Dim = [t.shape for t in tensors]
    if not signature.has_static_outputs:
        shapes = _stated_shapes(signature) or _inferred_shapes(signature)
    return [
        jax.ShapeDtypeStruct(tuple(shape), dtypes.jax_dtype(tensor))
        for shape, tensor in zip(shapes, tensors, strict=True)
    ]


def _stated_shapes(signature: Signature) -> list[tuple[Dim, ...]] | None:
    """The shapes of output_shape_dtype, with its symbolic dimensions; or None."""
    stated = signature.function.options.output
    if stated is UNSPECIFIED:
        return None
    shapes = [spec.shape for spec in jax.tree.leaves(stated)]
    if all(map(dims.is_static, shapes)):
        return shapes
    if all(dims.is_static(aval.shape) for aval in signature.avals):
        return None  # the symbolic dimensions have known sizes in this trace
    return [polymorphic.stated_shape(shape, signature) for shape in shapes]


def _inferred_shapes(signature: Signature) -> list[tuple[Dim, ...]]:
    """The shapes of results that TensorFlow's shape inference does not know.

    For symbolic arguments a formula is fitted. For static ones XLA compiles the function, and if
    XLA does not know the shapes either, the function is run.
    """
    known = [t.shape for t in signature.outputs]
    if not all(dims.is_static(aval.shape) for aval in signature.avals):
        shapes = polymorphic.result_shapes(signature)
        if shapes is None:
            raise _no_formula(signature, known)
        return shapes
    options = signature.function.options
    if options.compile and not options.call_tf_graph:
        try:
            return _compiled_shapes(signature)
        except CallTfError as error:
            cause = error
    else:
        cause = _unknown_shapes(signature, known)
    seen = trial_runs.result_shapes(signature, signature.specs)
    if seen is None:
        raise cause
    signature.has_trial_shapes = True
    return [tuple(shape) for shape in seen]


def _compiled_shapes(signature: Signature) -> list[tuple[int, ...]]:
    with mlir.make_ir_context():
        module = _parsed(_compiled(signature, jax.default_backend()), signature)
        return _result_shapes(module, signature)


def _lower(
    ctx: mlir.LoweringRuleContext, *operands: MlirValue, function: Function
) -> Sequence[MlirValue]:
    options = function.options
    platforms = ctx.platforms or ctx.module_context.platforms
    is_static = all(dims.is_static(aval.shape) for aval in function_list.avals_in(ctx))
    is_embedded = is_static and len(platforms) == 1 and not options.call_tf_graph
    if function_list.is_collecting() and options.compile and not is_embedded:
        return function_list.call(ctx, operands, function)
    if options.call_tf_graph:
        raise CallTfError(
            f"jax2tf.call_tf({function.name}, call_tf_graph=True): TensorFlow's graph can be "
            "called where there is TensorFlow to call it: in eager JAX, and in what jax2tf.convert "
            "makes of the function. To stage it with jax.jit, leave call_tf_graph out"
        )
    if not is_static:
        raise CallTfError(
            f"jax2tf.call_tf({function.name}): TensorFlow compiles static shapes alone, and its "
            "arguments have symbolic ones here; convert it with jax2tf.convert, which calls it as "
            "TensorFlow ops"
        )
    if not options.compile:
        return _lower_to_callback(ctx, operands, function)
    if len(platforms) != 1:
        raise CallTfError(
            f"jax2tf.call_tf({function.name}): TensorFlow compiles it for one platform, but JAX "
            f"lowers for {', '.join(platforms)}; export for one platform at a time"
        )
    signature, serialized = compile_with_fallbacks(
        function, function_list.avals_in(ctx), platforms[0]
    )
    with ctx.module_context.context:
        captured = _captured(ctx, signature, function.stand_ins, operands)
        module = _parsed(serialized, signature)
        _result_shapes(module, signature)
        types = _main(module).type.results
        symbol = f"call_tf_{re.sub('[^A-Za-z0-9_]+', '_', function.name)}"
        callee = mlir.merge_mlir_modules(ctx.module_context.module, symbol, module)
        call = mlir.ir.Operation.create(
            "func.call",
            results=types,
            operands=[*operands[: len(signature.specs)], *captured],
            attributes={"callee": mlir.ir.FlatSymbolRefAttr.get(callee)},
        )
        inferred = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
        return [_as_inferred(x, t) for x, t in zip(call.results, inferred, strict=True)]


def _as_inferred(result: MlirValue, inferred: ir.Type) -> MlirValue:
    """A result in the dtype that TensorFlow's graph gives it.

    Some of TensorFlow's XLA kernels return another, such as real eigenvalues of complex matrices.
    """
    if result.type == inferred:
        return result
    convert = mlir.ir.Operation.create("stablehlo.convert", results=[inferred], operands=[result])
    return convert.result


def _captured(
    ctx: mlir.LoweringRuleContext,
    signature: Signature,
    stand_ins: Mapping[int, tf.Variable],
    operands: Sequence[MlirValue],
) -> list[MlirValue]:
    """The values that the graph captures, in its order.

    Constants stand in the module. The value of a variable is an operand if it was passed as one;
    otherwise the host reads it each time the module runs.
    """
    passed = {Identity(v.handle): operands[i] for i, v in stand_ins.items() if _is_as_in_jax(v)}
    values: dict[int, MlirValue] = {}
    read: dict[int, tf.Variable] = {}
    for i, value in enumerate(signature.captured()):
        if isinstance(value, np.ndarray):
            values[i] = mlir.ir_constant(value)
        elif Identity(value.handle) in passed:
            values[i] = passed[Identity(value.handle)]
        else:
            read[i] = value
    for variable in read.values():
        if not variable.shape.is_fully_defined():
            capture = f"the variable {variable.name}, whose shape is not fixed ({variable.shape})"
            raise no_value_error(signature.function.name, capture)
    values.update(zip(read, _read_by_host(ctx, list(read.values())), strict=True))
    return [values[i] for i in sorted(values)]


def _is_as_in_jax(variable: tf.Variable) -> bool:
    return bool(dtypes.dtype_of_val(variable) == variable.dtype)


def _read_by_host(
    ctx: mlir.LoweringRuleContext, variables: Sequence[tf.Variable]
) -> Sequence[MlirValue]:
    if not variables:
        return []
    specs = [jax.ShapeDtypeStruct(v.shape, v.dtype.as_numpy_dtype) for v in variables]
    # TensorFlow's module takes 64-bit variables, which JAX's callbacks would cast to 32 bits.
    x64 = jax.config.read("jax_enable_x64")
    words = [not x64 and not _is_as_in_jax(v) for v in variables]
    read_specs = [_words_spec(s) if w else s for s, w in zip(specs, words, strict=True)]

    def on_host() -> list[np.ndarray]:
        values = [v.numpy() for v in variables]
        return [_words(x) if w else x for x, w in zip(values, words, strict=True)]

    def read() -> list[jax.Array]:
        values = jax.pure_callback(on_host, read_specs)
        return [
            _of_words(x, spec.dtype) if w else x
            for x, spec, w in zip(values, specs, words, strict=True)
        ]

    with jax.enable_x64(True):
        return function_list.values_in_module(ctx, read)


def _words_spec(spec: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*spec.shape, spec.dtype.itemsize // 4), np.uint32)


def _words(value: jax.Array) -> np.ndarray:
    """The 32-bit words of a value, along a last axis."""
    return np.asarray(value)[..., None].view(np.uint32)


def _of_words(words: jax.Array, dtype: np.dtype) -> jax.Array:
    if np.issubdtype(dtype, np.complexfloating):
        parts = words[..., :2], words[..., 2:]
        return jax.lax.complex(*(jax.lax.bitcast_convert_type(p, np.float64) for p in parts))
    return jax.lax.bitcast_convert_type(words, dtype)


def _lower_to_callback(
    ctx: mlir.LoweringRuleContext, operands: Sequence[MlirValue], function: Function
) -> Sequence[MlirValue]:
    """A call that runs TensorFlow on the host, eagerly, whenever the module runs."""
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_out]
    x64 = jax.config.read("jax_enable_x64")

    def on_host(*arrays: jax.Array) -> list[np.ndarray]:
        # JAX's runtime calls this in a thread that has the default configuration.
        with jax.enable_x64(x64):
            tensors = [exchange.to_tensor(np.asarray(a)) for a in arrays]
            results = [r.numpy() for r in function.run(tensors)]
        _require_shapes(function, results, specs)
        return results

    def call(*arrays: jax.Array) -> list[jax.Array]:
        if function.signature(function_list.avals_in(ctx)).has_effects:
            ordered = function.options.ordered
            return list(io_callback(on_host, specs, *arrays, ordered=ordered))
        return list(jax.pure_callback(on_host, specs, *arrays))

    return list(mlir.lower_fun(call)(ctx, *operands))


def _require_shapes(
    function: Function, results: Sequence[np.ndarray], specs: Sequence[jax.ShapeDtypeStruct]
) -> None:
    """Refuses results whose shapes differ from those that JAX was told or a trial run showed."""
    for i, (result, spec) in enumerate(zip(results, specs, strict=True)):
        if result.shape != spec.shape:
            raise CallTfError(
                f"jax2tf.call_tf({function.name}): result {i} has the shape {result.shape}, and "
                f"JAX was told {spec.shape}: it depends on values. Call it outside of jax.jit, or "
                "pad its results to a size"
            )


def compile_with_fallbacks(
    function: Function, avals: Sequence[Aval], platform: str
) -> tuple[Signature, bytes]:
    """A signature and its StableHLO; the function falls back until XLA compiles it.

    A batch falls back from tf.vectorized_map to a loop.
    """
    # One thread at a time: two threads that fail together would fall back twice.
    with function.lock:
        while True:
            signature = function.signature(avals)
            try:
                return signature, _compiled(signature, platform)
            except CallTfError:
                # Of nested batches, one after the other becomes a loop.
                if not function.fall_back():
                    raise


def _compiled(signature: Signature, platform: str) -> bytes:
    """The signature's StableHLO for a platform, in the version of this JAX."""
    return signature.compiled(platform, lambda: _compile(signature, platform))


def _compile(signature: Signature, platform: str) -> bytes:
    name = signature.function.name
    if signature.writes:
        raise CallTfError(
            f"jax2tf.call_tf({name}): it writes to {', '.join(signature.writes)}, which compiled "
            "JAX cannot do. Pass the value in and return the new one, call it outside of jax.jit, "
            "or use call_tf(..., compile=False)"
        )
    signature.captured()  # raises for captured tables, datasets and strings
    platform_name = _PLATFORMS.get(platform, platform.upper())
    try:
        hlo = compat.functions.serialized_hlo(signature.concrete, signature.specs, platform_name)
    except (ValueError, tf.errors.OpError) as error:
        raise _not_compilable(name, str(error)) from error
    try:
        return bytes(jex_mlir.hlo_to_stablehlo(hlo))
    except jax.errors.JaxRuntimeError as error:
        raise _not_compilable(name, str(error)) from error


def _parsed(serialized: bytes, signature: Signature) -> ir.Module:
    try:
        return _without_copies(mlir.ir.Module.parse(serialized))
    except mlir.ir.MLIRError as error:
        # StableHLO has no type for a value with several bounded dimensions.
        if "bounded dimension" not in str(error):
            raise
        raise _unknown_shapes(signature, [t.shape for t in signature.outputs]) from error


def _without_copies(module: ir.Module) -> ir.Module:
    """The module without XLA's copies of arrays: they change nothing, and exports refuse them."""
    copies: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mhlo.copy":
            copies.append(op)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op in copies:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    return module


def _variable_on_other_device(
    name: str, variable: str, device: str, compiled_on: str
) -> CallTfError:
    return CallTfError(
        f"jax2tf.call_tf({name}): TensorFlow cannot compile it for jax.jit: the variable "
        f"{variable} is on {device}, and the function is compiled for {compiled_on}. Make the "
        f"variable there (tf.device('{compiled_on}')), pass its value as an argument, call the "
        "function outside of jax.jit, or run it on the host under jax.jit with "
        "call_tf(..., compile=False)"
    )


def _not_compilable(name: str, message: str) -> CallTfError:
    access = re.search(
        r"access resource (\S+)/\d+ .*? located in device (\S+) from device (\S+)", message
    )
    if access:
        devices = (text.split("/device:")[-1] for text in access.groups())
        return _variable_on_other_device(name, *devices)
    ops = re.findall(r"(\w+) \(No registered '\w+' OpKernel", message)
    constant = re.search(
        r"Input (\d+) to node `(\S+)` with op (\w+) must be a compile-time", message
    )
    if ops:
        reason = f"XLA has no {', '.join(dict.fromkeys(ops))}"
    elif constant:
        index, node, op = constant.groups()
        reason = (
            f"input {index} of {op} ('{node}') is a shape or dimension that depends on the values "
            "of arguments"
        )
    elif "Unsupported type: TUPLE" in message:
        reason = (
            "its module has a tuple where StableHLO takes arrays alone, as tf.ensure_shape may "
            "make of what a loop in a loop reads"
        )
    elif any(sign in message for sign in _SIGNS_OF_BOUNDS):
        reason = _BOUNDED
    else:
        reason = failures.cause(message)
    return CallTfError(
        f"jax2tf.call_tf({name}): TensorFlow cannot compile it for jax.jit: {reason}. Call it "
        "outside of jax.jit, or run it on the host under jax.jit with call_tf(..., compile=False)"
    )


def _main(module: ir.Module) -> PyTree:
    (main,) = (
        op
        for op in module.body.operations
        if mlir.ir.StringAttr(op.attributes["sym_name"]).value == "main"
    )
    return main


def _result_shapes(module: ir.Module, signature: Signature) -> list[tuple[int, ...]]:
    types = [mlir.ir.RankedTensorType(t) for t in _main(module).type.results]
    if not all(t.has_static_shape for t in types):
        raise _unknown_shapes(signature, types)
    return [tuple(t.shape) for t in types]


def _no_formula(signature: Signature, known: Sequence[Dim]) -> CallTfError:
    arguments = ", ".join(str(aval.shape) for aval in signature.avals)
    shapes = ", ".join(map(str, known))
    example = ", ".join(polymorphic.variables(signature.avals))
    return CallTfError(
        f"jax2tf.call_tf({signature.function.name}): for arguments of shapes {arguments} no "
        f"formula was found for those of its results: all that is known is {shapes}. "
        "State call_tf(..., output_shape_dtype=...), a pytree of jax.ShapeDtypeStruct with "
        f"symbolic dimensions: jax.export.symbolic_shape('{example}') for a shape of {example}"
    )


# XLA knows only bounds for sizes that TensorFlow passes from a branch to its derivative.
_BOUNDED = (
    "XLA does not know sizes in the derivative of its tf.cond: its input_signature has open "
    "sizes. Give call_tf a function without it, such as the python_function of a tf.function"
)
# Texts of XLA's errors: it adds gradients, one of which has the sizes of a branch that did not run.
_SIGNS_OF_BOUNDS = ("bounded dimension", "[<=", "of type AddN must have the same size and shape")


def _unknown_shapes(signature: Signature, known: Sequence[Dim]) -> CallTfError:
    shapes = ", ".join(map(str, known))
    if signature.function.is_derivative:
        return _not_compilable(signature.function.name, "bounded dimension")
    return CallTfError(
        f"jax2tf.call_tf({signature.function.name}): the shapes of its results depend on values, "
        f"and jax.jit needs them before the run: all that is known is {shapes}. Make them "
        "static (pad to a size), call it outside of jax.jit, or run it on the host under jax.jit "
        "with call_tf(..., compile=False, output_shape_dtype=...)"
    )
