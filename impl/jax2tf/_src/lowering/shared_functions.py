"""Makes one TensorFlow function of a body that several places of a graph call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax2tf._src import ops
from jax2tf._src.ops.written_functions import EagerFunction, WrittenFunction
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.tensors import Tensor

# An inner jaxpr of fewer equations is always inlined: a call costs about as many nodes.
SHARED_FUNCTION_MIN_EQUATIONS = 4


def shared_function(
    body: Callable[..., Sequence[Tensor]],
    args: Sequence[Tensor],
    shapes: Sequence[Sequence[int | None] | None],
    name: str,
    jit_compile: bool | None,
    is_written: bool,
) -> Callable[..., Sequence[Tensor]]:
    """A TensorFlow function that runs `body`; see `Lowering.call_function`.

    Args:
      args: the tensors of the first call. The sizes of dimension variables come last.
      shapes: the shapes of the arguments before these sizes; None stands for any shape.
      is_written: whether the surrounding graph is written without TensorFlow.
    """

    def function(*inner: Tensor) -> list[Tensor]:
        return list(body(*inner))

    function.__name__ = identifier(name) or "shared"
    shapes = [*shapes, *([()] * (len(args) - len(shapes)))]
    specs = [ops.TensorSpec(shape, a.dtype) for shape, a in zip(shapes, args, strict=True)]
    kind = EagerFunction if ops.executing_eagerly() else WrittenFunction if is_written else None
    if kind is not None:
        made = kind.of(function, specs, function.__name__, jit_compile=bool(jit_compile))
        if made is not None:
            return made
    shared = ops.function(function, autograph=False, jit_compile=jit_compile)
    return shared.get_concrete_function(*specs)
