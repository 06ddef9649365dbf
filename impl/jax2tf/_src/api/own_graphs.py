"""A JAX function as a graph of our own, made without TensorFlow (see graph/make.py).

The stages are those of `convert`: the tracer, the passes and the rules are the same, and the ops of
the rules go into our graph.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np

from jax2tf._src import compat
from jax2tf._src.api.convert import Conversion
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.graph import make
from jax2tf._src.graph.graph import Graph, Node, Size, Tensor
from jax2tf._src.graph.inlining import replace
from jax2tf._src.graph.symbol_shapes import SymbolShape
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.lowering import pipeline
from jax2tf._src.lowering.passes import value_checks as checks
from jax2tf._src.targets import by_name
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import arguments
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.tracing.tracer import Tracer
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Aval, Dim, KeyPath, PyTree


def conversion_of(
    fun_jax: Callable[..., PyTree],
    *,
    target: str | Target,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] = (),
    assume_finite: bool = False,
    value_checks: checks.Choice = "raise",
) -> Conversion:
    """The conversion of a function whose graphs are ours; the options are those of `convert`."""
    function = Function(fun_jax)
    simplify = functools.partial(pipeline.simplified, choice=value_checks)
    tracer = Tracer(function, polymorphic_shapes, polymorphic_constraints, simplify=simplify)
    chosen = by_name.chosen(target, enable_xla=True, assume_finite=assume_finite)
    return Conversion(function, tracer, chosen, polymorphic_checks=False, with_gradient=False)


def graph_of(
    conversion: Conversion,
    trace: Trace,
    names: Sequence[str],
    known: Sequence[PyTree] = (),
    *,
    given: Sequence[np.dtype] | None = None,
    folds: bool = True,
) -> Graph:
    """The graph of a trace.

    Args:
      conversion: the conversion; its target has no ops of XLA's.
      trace: the function, as `Conversion.trace` returns it.
      names: the names of the arguments behind the known ones.
      known: the values of the first arguments, which become constants of the graph. They share the
        memory of the arrays.
      given: the dtypes of the named arguments, if JAX sees others: int32 in the place of int64
        without jax_enable_x64.
      folds: whether ops whose results are known become constants, which rules then see.
    """
    avals = trace.jaxpr.in_avals
    with make.making(conversion.name, folds=folds) as maker:
        every = [*(f"parameters/{i}" for i in range(len(known))), *names]
        seen = [_dtype(aval) for aval in avals]
        given = seen if given is None else [*seen[: len(known)], *given]
        args = [
            Symbol(_argument(maker, name, aval, dtype), maker)
            for name, aval, dtype in zip(every, avals, given, strict=True)
        ]
        try:
            results = conversion.lower(trace, args)
        except UnsupportedPrimitiveError as error:
            error.locate(f"the function {conversion.name}")
            raise
        # An output is neither an input nor another output.
        outputs = [make.make("Identity", [x.tensor])[0] for x in results]
    graph = maker.graph(outputs)
    for tensor, aval in zip(graph.outputs, trace.jaxpr.out_avals, strict=True):
        tensor.shape = _sizes(aval)
    _make_constant(graph, [_array(value) for value in known])
    return graph


def _argument(maker: make.Maker, name: str, aval: Aval, dtype: np.dtype) -> Tensor:
    """The tensor of an argument of this dtype, in the dtype that JAX sees."""
    seen = _dtype(aval)
    # No engine casts complex numbers.
    if dtype == seen or np.issubdtype(dtype, np.complexfloating):
        return maker.argument(name, seen, _sizes(aval))
    tensor = maker.argument(name, dtype, _sizes(aval))
    return make.make("Cast", [tensor], {"DstT": seen})[0]


def _make_constant(graph: Graph, arrays: Sequence[np.ndarray]) -> None:
    """Makes constants of the first arguments of a graph."""
    constants: dict[Tensor, Tensor] = {}
    nodes = []
    for tensor, array in zip(graph.inputs, arrays, strict=False):
        node = Node("Const", tensor.name, [], {"value": array, "dtype": array.dtype})
        node.outputs.append(Tensor(f"{node.name}:0", array.dtype, array.shape, node))
        constants[tensor] = node.outputs[0]
        nodes.append(node)
    graph.inputs = graph.inputs[len(arrays) :]
    for i, tensor in enumerate(graph.inputs):
        tensor.index = i
    replace(graph, constants)
    graph.nodes[:0] = nodes


def _dtype(aval: Aval) -> np.dtype:
    return dtypes.to_tf(aval.dtype).dtype


def _sizes(aval: Aval) -> tuple[Size, ...]:
    """The sizes of the tensor that stands for an array, open ones as JAX writes them."""
    return tuple(_size(d) for d in dtypes.physical_shape(aval))


def _size(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def _array(value: PyTree) -> np.ndarray:
    if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
        return compat.jaxprs.data_of_keys(value)
    return np.asarray(value).astype(_dtype_of(value), copy=False)


def _dtype_of(value: PyTree) -> np.dtype:
    return dtypes.to_tf(dtypes.jax_dtype(value)).dtype


@dataclasses.dataclass(frozen=True)
class _Described:
    """An argument with a shape and a dtype; a size that is no number is open."""

    path: str
    where: str
    shape: SymbolShape
    dtype: np.dtype
    weak_type: bool = False


def described(path: KeyPath, value: PyTree, function: Function) -> PyTree:
    """The argument that a jax.ShapeDtypeStruct or an array describes, for `Conversion.trace`."""
    is_spec = isinstance(value, jax.ShapeDtypeStruct)
    return _Described(
        function.parameters.path(path),
        arguments.where(path, function),
        SymbolShape(tuple(_size(d) for d in value.shape) if is_spec else np.shape(value)),
        jax.dtypes.canonicalize_dtype(value.dtype) if is_spec else dtypes.jax_dtype(value),
    )
