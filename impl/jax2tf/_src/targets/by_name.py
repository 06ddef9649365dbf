"""The targets that `convert` knows by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jax2tf._src.targets.coreml import COREML
from jax2tf._src.targets.litert import LITERT
from jax2tf._src.targets.onnx import ONNX
from jax2tf._src.targets.openvino import OPENVINO
from jax2tf._src.targets.target import Target
from jax2tf._src.targets.tensorflow import TENSORFLOW, WITH_XLA
from jax2tf._src.targets.tfjs import TFJS

TARGETS: Mapping[str, Target] = {
    target.name: target for target in (WITH_XLA, TENSORFLOW, LITERT, ONNX, OPENVINO, TFJS, COREML)
}


def chosen(target: str | Target | None, *, enable_xla: bool, assume_finite: bool) -> Target:
    """The target that the options of `convert` ask for.

    Raises:
      TypeError: `target` is neither a name nor a Target.
      ValueError: there is no target of that name; or enable_xla=False beside one with XLA ops.
    """
    if target is None:
        target = TARGETS["xla" if enable_xla else "tensorflow"]
    elif isinstance(target, str):
        if target not in TARGETS:
            raise ValueError(
                f"jax2tf.convert: target should be one of {', '.join(TARGETS)}, or a "
                f"jax2tf.Target; got {target!r}"
            )
        target = TARGETS[target]
    elif not isinstance(target, Target):
        raise TypeError(
            "jax2tf.convert: target should be the name of a target or a jax2tf.Target, got "
            f"{type(target).__name__}"
        )
    if target.enable_xla and not enable_xla:
        raise ValueError(
            f"jax2tf.convert: enable_xla=False forbids XLA ops, and the target {target.name!r} has "
            "them; leave one of the two out"
        )
    return dataclasses.replace(target, assume_finite=target.assume_finite or assume_finite)
