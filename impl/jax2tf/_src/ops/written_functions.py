"""TensorFlow functions without effects, written into a graph as ops are (see ops/writing.py).

tf.function binds arguments to signatures, nests results, orders side effects and prepares
gradients. A function of arrays needs none of this if only graphs call it (`WrittenFunction`), or if
eager mode calls it while no tape watches (`EagerFunction`). Its graph is the same, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jax2tf._src import compat
from jax2tf._src.ops import grappler
from jax2tf._src.ops.writing import attr_value, serialised, write_node
from jax2tf._src.util.lazy_imports import tf


@dataclass(frozen=True)
class WrittenFunction:
    """A function of tensors that is called only in graphs.

    Attributes:
      function: TensorFlow's function; it lives as long as this object, or a graph that calls it.
      shapes: the shapes of the results, as far as they are known.
      attributes: the attributes of its calls, serialised.
    """

    function: Callable[..., Sequence[tf.Tensor]]
    shapes: Sequence[tf.TensorShape]
    attributes: Sequence[tuple[str, bytes]]

    @classmethod
    def of(
        cls,
        body: Callable[..., Sequence[tf.Tensor]],
        specs: Sequence[tf.TensorSpec],
        name: str,
        *,
        jit_compile: bool = False,
    ) -> WrittenFunction | None:
        """The function of `body`; None if it has effects or captures tensors."""
        graph, function = _graph_and_function(body, specs, name, jit_compile)
        if function is None:
            return None
        outputs = graph.outputs
        attributes = {
            "Tin": _types(graph.inputs),
            "Tout": _types(outputs),
            "f": attr_value(func=tf.compat.v1.NameAttrList(name=function.name)),
            "config_proto": attr_value(s=compat.functions.call_options()),
        }
        if jit_compile:
            attributes["_XlaMustCompile"] = attr_value(b=True)
        return cls(function, [x.shape for x in outputs], serialised(attributes))

    def __call__(self, *args: tf.Tensor) -> list[tf.Tensor]:
        """The results in the graph under construction, which has to be writable."""
        graph = tf.compat.v1.get_default_graph()
        compat.functions.add_function(graph, self.function)
        attributes = [*self.attributes, (compat.graphs.NO_SHAPE_INFERENCE, grappler.TRUE)]
        results = write_node(graph, "PartitionedCall", [list(args)], attributes)
        if results:
            # The graph should be the one that tf.function makes.
            compat.graphs.clear_attribute(results[0].op, compat.graphs.NO_SHAPE_INFERENCE)
        for result, shape in zip(results, self.shapes, strict=True):
            result.set_shape(shape)
        return results


@dataclass(frozen=True)
class EagerFunction:
    """A function of tensors that is called only in eager mode.

    Attributes:
      function: TensorFlow's function; it lives as long as this object.
      n_results: the number of its results.
      options: the options of its calls for optimizers and placement.
    """

    function: Callable[..., Sequence[tf.Tensor]]
    n_results: int
    options: bytes

    @classmethod
    def of(
        cls,
        body: Callable[..., Sequence[tf.Tensor]],
        specs: Sequence[tf.TensorSpec],
        name: str,
        *,
        jit_compile: bool = False,
        is_optimized: bool = True,
    ) -> EagerFunction | None:
        """The function of `body`; None if it has effects or captures tensors.

        Unless it `is_optimized`, Grappler does not run, and each op gives the bits of eager mode.
        """
        graph, function = _graph_and_function(body, specs, name, jit_compile)
        if function is None:
            return None
        options = compat.functions.call_options(is_optimized=is_optimized)
        return cls(function, len(graph.outputs), options)

    def __call__(self, *args: tf.Tensor) -> list[tf.Tensor]:
        """The results for eager tensors that fit the specs."""
        return compat.functions.run_function(self.function, args, self.n_results, self.options)


def _graph_and_function(
    body: Callable[..., Sequence[tf.Tensor]],
    specs: Sequence[tf.TensorSpec],
    name: str,
    jit_compile: bool,
) -> tuple[tf.Graph, tf.types.experimental.ConcreteFunction | None]:
    with compat.functions.function_graph(name, jit_compile) as graph:
        inputs = [_placeholder(spec) for spec in specs]
        outputs = [graph.capture(result) for result in body(*inputs)]
    graph.inputs, graph.outputs = inputs, outputs
    return graph, compat.functions.function_of(graph, jit_compile)


def _placeholder(spec: tf.TensorSpec) -> tf.Tensor:
    attributes = {
        "dtype": attr_value(type=spec.dtype.as_datatype_enum),
        "shape": attr_value(shape=spec.shape.as_proto()),
    }
    graph = tf.compat.v1.get_default_graph()
    return write_node(graph, "Placeholder", [], serialised(attributes))[0]


def _types(tensors: Sequence[tf.Tensor]) -> tf.compat.v1.AttrValue:
    types = [x.dtype.as_datatype_enum for x in tensors]
    return attr_value(list={"type": types})
