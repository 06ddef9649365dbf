"""Explains why some primitives cannot be lowered to TensorFlow ops, and what the user can do."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api.errors import ConversionError, UnsupportedPrimitiveError
from jax2tf._src.util.typing import Param


def refusal(eqn: jex_core.JaxprEqn) -> UnsupportedPrimitiveError:
    """Returns the exception for an equation whose primitive has no lowering rule."""
    name = eqn.primitive.name
    reason, remedy = _SAID[name](eqn.params) if knows(eqn.primitive) else _NOTHING_SAID
    return unsupported(eqn, reason, remedy)


def unsupported(
    eqn: jex_core.JaxprEqn, reason: str, remedy: str, **params: Param
) -> UnsupportedPrimitiveError:
    """Returns the exception for an equation that cannot be lowered; it shows `params`."""
    said = ", ".join(f"{name}={value!r}" for name, value in params.items())
    return UnsupportedPrimitiveError(
        eqn.primitive.name, reason, remedy, compat.jaxprs.user_source(eqn), said
    )


def knows(primitive: jex_core.Primitive) -> bool:
    """Whether this module explains the refusal of a primitive.

    It explains JAX's own primitives only, not those of other libraries with the same names.
    """
    return primitive.name in _SAID and compat.primitives.is_compiled_by_jax(primitive)


def refuse_tracer(value: object) -> None:
    """Refuses a constant of a jaxpr that is a tracer.

    Raises:
      ConversionError: `value` is a tracer.
    """
    if isinstance(value, jax.core.Tracer):
        raise ConversionError(
            "jax2tf.convert: the rule for derivatives (jax.custom_jvp, jax.custom_vjp) of a jitted "
            f"function captures a value {value.dtype.name}{list(value.shape)} of the function "
            "around it, which JAX does not compile either. Where a call_tf reads a variable, "
            "gradients and native_serialization=True make such a value of it. What to do: pass the "
            "value to the rule as an argument, or leave out the inner jax.jit"
        )


def _ffi_call(params: dict[str, Param]) -> tuple[str, str]:
    target = params["target_name"]
    return (
        f"it calls compiled code that is registered with JAX as {target!r}, and TensorFlow does "
        "not have it",
        "call it inside of jax.pure_callback, which runs it in this process; or, if the process "
        "that runs the function has the code registered with TensorFlow's XLA, convert with "
        "native_serialization=True and native_serialization_disabled_checks="
        f"[jax.export.DisabledSafetyCheck.custom_call({target!r})]",
    )


def _pallas_call(params: dict[str, Param]) -> tuple[str, str]:
    return (
        f"a kernel with interpret={params['interpret']} is code for one kind of device",
        "make it with pallas_call(..., interpret=True), which is lowered, or call a function "
        "without a kernel",
    )


def _check(params: dict[str, Param]) -> tuple[str, str]:
    return (
        "a check raises in Python, and here nobody has made a value of it",
        "convert checkify.checkify(f): it gives the error as a value beside the result, also where "
        "XLA compiles it",
    )


def _spsolve(params: dict[str, Param]) -> tuple[str, str]:
    return (
        "JAX calls SciPy or a library of the device for it",
        "call it inside of jax.pure_callback, which runs it in this process; or solve with "
        "jax.scipy.sparse.linalg.gmres or .bicgstab, which are lowered",
    )


_NOTHING_SAID = (
    "there is no lowering rule for it",
    "write that part with other functions, or keep it outside the converted function",
)
_SAID: dict[str, Callable[[dict[str, Param]], tuple[str, str]]] = {
    "check": _check,
    "ffi_call": _ffi_call,
    "pallas_call": _pallas_call,
    "spsolve": _spsolve,
}
