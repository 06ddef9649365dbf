"""Custom calls: a target that JAX or XLA knows by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from jax import export, lax

from jax2tf._src.stablehlo import registry
from jax2tf._src.stablehlo.evaluator import TOKEN, Step, takes_sizes
from jax2tf._src.stablehlo.known import as_sizes, is_known
from jax2tf._src.stablehlo.registry import reads, reads_custom_call
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

# What a custom call says beside its target: where arrays lie, how it may be called.
_HOW_IT_IS_CALLED = {
    *("call_target_name", "api_version", "has_side_effect", "operand_layouts", "result_layouts"),
    *("output_operand_aliases", "called_computations", "backend_config", "custom_call_schedule"),
    "indices_of_shape_operands",
}


@reads("stablehlo.custom_call")
@takes_sizes
def _custom_call(
    step: Step, *operands: PyTree, call_target_name: str, **attributes: PyTree
) -> PyTree:
    rule = registry.CUSTOM_CALLS.get(call_target_name)
    if rule is None:
        raise _unknown(step, call_target_name)
    config = step.op.attributes.get("mhlo.backend_config", attributes.get("backend_config", {}))
    of_mhlo = step.op.attributes.get("mhlo.attributes", {})  # of an op of MHLO, by JAX before 0.10
    own = {k: v for k, v in attributes.items() if k not in _HOW_IT_IS_CALLED}
    given = {**(config if isinstance(config, Mapping) else {}), **of_mhlo, **own}
    shapes = np.asarray(attributes.get("indices_of_shape_operands", ()))  # of open results
    operands = tuple(x for i, x in enumerate(operands) if i not in shapes)
    return step.apply(rule, operands, given)


def _unknown(step: Step, target: str) -> Exception:
    for platform, prefixes in _LIBRARIES.items():
        if target.startswith(prefixes):
            return step.refused(
                f"it calls a library that only {platform} have",
                "export the model for the CPU: jax.export.export(function, platforms=['cpu'])",
            )
    return step.refused(
        "JAX has no function for this target",
        "write the model without the library that made it, or for the platform 'cpu'",
    )


# How the targets start that JAX writes for other platforms than the CPU.
_LIBRARIES = {
    "GPUs of NVIDIA": (
        *(
            "cu_",
            "cublas",
            "cudnn",
            "cufft",
            "curand",
            "cusolver",
            "cusparse",
            "__cu",
            "mosaic_gpu",
        ),
        *("triton", "__gpu$"),
    ),
    "GPUs of AMD": ("hip", "rocblas", "rocm", "rocsolver", "miopen"),
    "TPUs": (
        *("tpu_", "mosaic", "Qr", "LuDecomposition", "ProductOfElementaryHouseholder", "Eigh"),
    ),
}


@reads_custom_call(
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
    "LayoutConstraint", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
)  # fmt: skip
@takes_sizes
def _placement(
    step: Step, *operands: PyTree, unspecified_dims: PyTree = (), shardings: PyTree = None
) -> PyTree:
    """Where an array lies does not change it on one device."""
    return list(operands)


@reads_custom_call("tf.call_tf_function")
def _call_tf_function(step: Step, *operands: PyTree) -> list[PyTree]:
    """A function of TensorFlow that the XlaCallModule op of the module names."""
    config = step.op.attributes.get("tf.backend_config", {})
    outside, index = step.evaluator.outside, config.get("called_index", -1)
    if not 0 <= index < len(outside):
        raise step.refused(
            "it calls a function of TensorFlow, which the file does not hold",
            "read the SavedModel with the XlaCallModule op that holds the module",
        )
    results = list(outside[index](*(x for x in operands if x is not TOKEN)))
    return [TOKEN, *results] if config.get("has_token_input_output") else results


@reads_custom_call("shape_assertion")
@takes_sizes
def _shape_assertion(step: Step, holds: PyTree, *sizes: PyTree, error_message: str) -> PyTree:
    """A condition of the sizes of the arguments. Raises ValueError where it does not hold."""
    if is_known(holds) and all(as_sizes(holds)):
        return []
    message = error_message.format(*map(_shown, sizes))
    remedy = (
        f"state the condition: polymorphic_constraints=[{_constraint(error_message, sizes)}] of "
        "jax2tf.export or jax2tf.convert, or constraints of jax.export.symbolic_shape"
    )
    if not is_known(holds):
        raise step.refused(
            f"it is not known whether the sizes of the arguments fit: {message}", remedy
        )
    has_names = any(export.is_symbolic_dim(as_sizes(s)[0]) for s in sizes if is_known(s))
    what_to_do = f" What to do: {remedy}." if has_names else ""
    raise ValueError(f"jax2tf.load: {message}{what_to_do}")


def _constraint(error_message: str, operands: tuple[PyTree, ...]) -> str:
    """The condition of a message of jax.export about the sizes, as a constraint of their names."""
    sizes = [*map(_shown, operands)]
    if "to be greater or equal to 0" in error_message:
        return f'"{sizes[0]} >= 0"'
    # JAX takes equations of one term.
    is_term = bool(sizes) and " " not in re.sub(r"\(.*?\)", "", sizes[0])
    if is_term and ("to be equal to 0" in error_message or "had remainder" in error_message):
        return f'"{sizes[0]} == 0"'
    return f'"{sizes[0]} == {sizes[1]}"' if "inconsistency" in error_message else "..."


def _shown(size: PyTree) -> str:
    return str(as_sizes(size)[0]) if is_known(size) else "?"


@reads_custom_call("ApproxTopK")
def _approx_top_k(
    step: Step,
    x: Array,
    indices: Array,
    *initials: Array,
    top_k: int,
    reduction_dim: int,
    recall_target: float = 1.0,
    aggregate_to_topk: bool = True,
    is_fallback: bool = True,
    reduction_input_size_override: int = -1,
) -> list[Array]:
    called = step.op.attributes.get("called_computations", ("",))
    function = lax.approx_min_k if "lt_" in str(called) else lax.approx_max_k
    values, places = function(
        x,
        top_k,
        reduction_dim,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )
    return [values, places.astype(step.types[1].dtype)]


@reads_custom_call("mhlo.topk", "TopK")
def _top_k(step: Step, x: Array, *, k: int, largest: bool = True) -> list[Array]:
    if largest:
        return list(lax.top_k(x, k))
    values, places = lax.top_k(-x, k)
    return [-values, places]


def _register_mhlo(name: str, function: PyTree) -> None:
    @reads_custom_call(f"mhlo.{name}")
    def rule(step: Step, *operands: Array, version: int = 1) -> Array:
        return function(*operands)


for _name, _function in {
    "acos": lax.acos,
    "acosh": lax.acosh,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atanh": lax.atanh,
    "cosh": lax.cosh,
    "erf": lax.erf,
    "sinh": lax.sinh,
    "tan": lax.tan,
}.items():
    _register_mhlo(_name, _function)
