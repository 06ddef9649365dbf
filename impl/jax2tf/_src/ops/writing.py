"""Ops written straight into a graph, below the Python that TensorFlow runs for each op.

In a graph, a function of tf.raw_ops looks for dispatchers, converts operands, infers attributes and
wraps them in messages, which takes ten times as long as to add the node. `write` only captures
operands of other graphs, names the op in its scope and sets its attributes; TensorFlow's C++ infers
the dtype and the shape of the result, as always. Graphs are the same, node by node, except for the
last part of some names.

TensorFlow makes the ops that `write` cannot: see `Form.of` for ops, `Form.read` for arguments and
`compat.graphs.writable_graph` for graphs. `counted` counts the ops made in each way. TensorFlow
makes all ops in a process with the environment variable JAX2TF_WRITE_OPS=0, and within
`switched(False)`.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import inspect
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from jax2tf._src import compat
from jax2tf._src.graph import symbols
from jax2tf._src.graph.make import is_making
from jax2tf._src.ops import grappler
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import cached

# An operand, or an attribute, as the functions of tf.raw_ops take it.
OpArgument: TypeAlias = Any

_writes: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "writes", default=os.environ.get("JAX2TF_WRITE_OPS") != "0"
)
_stack: contextvars.ContextVar[object] = contextvars.ContextVar("stack", default=None)
_counts: contextvars.ContextVar[collections.Counter[tuple[str, bool]] | None] = (
    contextvars.ContextVar("counts", default=None)
)


@contextlib.contextmanager
def switched(on: bool) -> Iterator[None]:
    """A context in which ops are written, or TensorFlow makes all of them."""
    token = _writes.set(on)
    try:
        yield
    finally:
        _writes.reset(token)


def writes() -> bool:
    """Whether ops that are made now are written: in a graph, with the writer switched on."""
    return _writes.get() and not tf.executing_eagerly()


def is_writable() -> bool:
    """Whether ops can be written into the graph under construction."""
    return compat.graphs.writable_graph() is not None


@contextlib.contextmanager
def called_from_here() -> Iterator[None]:
    """A context whose ops all get the stack trace of this line, not of the line that makes each.

    Extracting a stack trace takes half as long as the rest of an op.
    """
    token = _stack.set(compat.graphs.stack_trace())
    try:
        yield
    finally:
        _stack.reset(token)


@contextlib.contextmanager
def counted() -> Iterator[collections.Counter[tuple[str, bool]]]:
    """A context that counts the ops of graphs: the keys are the op, and whether it was written.

    TensorFlow made the ops that were not written.
    """
    counts: collections.Counter[tuple[str, bool]] = collections.Counter()
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


def writer_of(op: str) -> Callable[..., tf.Tensor]:
    """A function that writes an op; that of tf.raw_ops makes it where that fails."""

    def make(**arguments: OpArgument) -> tf.Tensor:
        if is_making():
            return getattr(symbols.raw, op)(**arguments)
        if not writes():
            return make_by_tensorflow(**arguments)
        form = form_of_op()
        result = None if form is None else write(form, arguments)
        counts = _counts.get()
        if counts is not None:
            counts[op, result is not None] += 1
        return make_by_tensorflow(**arguments) if result is None else result

    def make_by_tensorflow(**arguments: OpArgument) -> tf.Tensor:
        result = by_tensorflow()(**arguments)
        if tf.executing_eagerly():
            return result
        form = form_of_op()
        if form is not None and not form.gives_list:
            for name, value in grappler.attributes(op, result.op.inputs):
                compat.graphs.set_attribute(result.op, name, value)
        return result

    # TensorFlow is imported when an op is made.
    by_tensorflow: Callable[[], Callable[..., tf.Tensor]] = cached(lambda: getattr(tf.raw_ops, op))
    form_of_op: Callable[[], Form | None] = cached(lambda: Form.of(op, by_tensorflow()))
    make.__doc__ = f"tf.raw_ops.{op}."
    make.__name__ = make.__qualname__ = op
    return make


def write(form: Form, arguments: Mapping[str, OpArgument]) -> tf.Tensor | list[tf.Tensor] | None:
    """The result of an op in the graph under construction; None if TensorFlow has to make it."""
    graph = compat.graphs.writable_graph()
    if graph is None:
        return None
    inputs = form.read(arguments)
    if inputs is None:
        return None
    try:
        operands, attributes = inputs
        attributes = [*attributes, *grappler.attributes(form.op, operands)]
        results = write_node(graph, form.op, operands, attributes)
        return results if form.gives_list else results[0]
    except tf.errors.InvalidArgumentError:  # The error of TensorFlow's own function says more.
        return None


def write_node(
    graph: tf.Graph, op: str, operands: Sequence[tf.Tensor], attributes: Sequence[tuple[str, bytes]]
) -> list[tf.Tensor]:
    """The results of an op, made by `compat.graphs.write_op`.

    Raises:
      tf.errors.InvalidArgumentError: TensorFlow refuses the op.
    """
    stack = _stack.get() or compat.graphs.stack_trace()
    return compat.graphs.write_op(graph, op, operands, attributes, stack)


def attr_value(**value: OpArgument) -> tf.compat.v1.AttrValue:
    """The message for the value of an attribute, as `attr_value(b=True)`."""
    return tf.compat.v1.AttrValue(**value)


def serialised(attributes: Mapping[str, tf.compat.v1.AttrValue]) -> list[tuple[str, bytes]]:
    """Attributes by name as `write_node` takes them."""
    return [(name, value.SerializeToString()) for name, value in attributes.items()]


def write_constant(value: OpArgument, dtype: tf.DType) -> tf.Tensor | None:
    """A constant in the graph under construction; None if TensorFlow has to make it.

    TensorFlow raises for constants of 2 GB, which a graph cannot hold.
    """
    if not isinstance(value, np.ndarray | np.generic | int | float | list):
        return None
    graph = compat.graphs.writable_graph()
    if graph is None or (isinstance(value, np.ndarray) and value.nbytes > _LARGE):
        return None
    return write_node(graph, "Const", [], _constant_attributes(value, dtype))[0]


def _constant_attributes(value: OpArgument, dtype: tf.DType) -> Sequence[tuple[str, bytes]]:
    if isinstance(value, np.generic | np.ndarray) and dtype is None and value.nbytes <= _SMALL:
        return _small_constant(value.dtype, value.shape, value.tobytes())
    return _as_constant(tf.make_tensor_proto(value, dtype))


@cached
def _small_constant(
    dtype: np.dtype, shape: tuple[int, ...], data: bytes
) -> Sequence[tuple[str, bytes]]:
    """The attributes of a small constant, cached: all functions of a graph have the same ones."""
    return _as_constant(tf.make_tensor_proto(np.frombuffer(data, dtype).reshape(shape)))


def _as_constant(tensor: tf.compat.v1.TensorProto) -> Sequence[tuple[str, bytes]]:
    return serialised(
        {
            "value": attr_value(tensor=tensor),
            "dtype": attr_value(type=tensor.dtype),
        }
    )


_SMALL = 64
_LARGE = 2**30


@dataclass(frozen=True)
class Form:
    """The arguments of an op without side effects whose result is one tensor or a list of them.

    Attributes:
      op: its type.
      operands: the operands, in order.
      attributes: those that operands do not determine. Each has the name of the argument in
        tf.raw_ops, the name in the op, and the kind.
      gives_list: whether the result is a list, of tensors of one dtype.
    """

    op: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str, str], ...]
    gives_list: bool

    @classmethod
    def of(cls, op: str, function: Callable[..., tf.Tensor]) -> Form | None:
        """The form of an op; None for an op with side effects or several results."""
        definition = compat.graphs.op_definition(op)
        results = definition.output_arg
        if definition.is_stateful or len(results) != 1:
            return None
        if results[0].type_list_attr:
            return None
        inferred = {x.type_attr for x in definition.input_arg}
        inferred |= {x.number_attr for x in definition.input_arg}
        attributes = [a for a in definition.attr if a.name not in inferred]
        names = _names_in_python([*definition.input_arg, *attributes], function)
        if names is None or any(x.type_list_attr for x in definition.input_arg):
            return None
        defaults = {a.name: a.default_value.type for a in definition.attr}
        operands = tuple(
            Operand(names[x.name], x.type_attr, x.type, defaults.get(x.type_attr), x.number_attr)
            for x in definition.input_arg
        )
        read_attributes = tuple((names[a.name], a.name, a.type) for a in attributes)
        return cls(op, operands, read_attributes, bool(results[0].number_attr))

    def read(
        self, arguments: Mapping[str, OpArgument]
    ) -> tuple[list[tf.Tensor], list[tuple[str, bytes]]] | None:
        """Operands and serialised attributes as `compat.graphs.write_op` takes them.

        None for other arguments: an operand that is neither a tensor nor a number of a known dtype,
        an attribute of a kind that rules do not use, a name for the op.
        """
        operands = []
        for operand in self.operands:
            value = operand.read(arguments, self.operands)
            if value is None:
                return None
            operands.append(value)
        attributes = []
        n_read = len(operands)
        for argument, name, kind in self.attributes:
            if argument not in arguments:
                continue
            n_read += 1
            value = arguments[argument]
            if value is None:  # the default
                continue
            # Not cached for floats: as keys, 0.0 and -0.0 are equal.
            make = _attribute if isinstance(value, float) else _cached_attribute
            serialised = make(kind, tuple(value) if isinstance(value, list) else value)
            if serialised is None:
                return None
            attributes.append((name, serialised))
        return (operands, attributes) if n_read == len(arguments) else None


@dataclass(frozen=True)
class Operand:
    """One operand of an op: a tensor, or a list of them.

    Attributes:
      name: the name of the argument in tf.raw_ops.
      type_attribute: the attribute that holds its dtype; empty if the dtype is always `dtype`.
      dtype: the dtype, an enum value of TensorFlow's.
      default_dtype: the dtype of integers if no other operand has the same attribute; may be 0.
      number_attribute: the attribute with the number of tensors; empty if it is not a list.
    """

    name: str
    type_attribute: str
    dtype: int
    default_dtype: int | None
    number_attribute: str

    def read(
        self, arguments: Mapping[str, OpArgument], operands: Sequence[Operand]
    ) -> tf.Tensor | list[tf.Tensor] | None:
        """The tensor or the list of tensors; None for any other argument."""
        value: OpArgument = arguments.get(self.name)
        if self.number_attribute:
            is_read = isinstance(value, list | tuple) and all(map(_is_tensor, value)) and value
            return list(value) if is_read else None
        if _is_tensor(value):
            return value
        if not isinstance(value, int | float | list) or isinstance(value, bool):
            return None
        dtype = self._known_dtype(arguments, operands)
        return None if dtype is None else write_constant(value, dtype)

    def _known_dtype(
        self, arguments: Mapping[str, OpArgument], operands: Sequence[Operand]
    ) -> tf.DType | None:
        if not self.type_attribute:
            return tf.as_dtype(self.dtype)
        for other in operands:
            if other.type_attribute == self.type_attribute:
                value: OpArgument = arguments.get(other.name)
                if _is_tensor(value):
                    return value.dtype
        return tf.int32 if self.default_dtype == tf.int32.as_datatype_enum else None


def _is_tensor(value: OpArgument) -> bool:
    return isinstance(value, tf.Tensor)


def _names_in_python(
    definitions: Sequence[tf.compat.v1.OpDef.ArgDef], function: Callable[..., tf.Tensor]
) -> dict[str, str] | None:
    """The names of operands and attributes in tf.raw_ops, by their names in the op.

    None if more than one name differs.
    """
    arguments = inspect.signature(function).parameters.keys() - {"name"}
    names = {x.name: x.name for x in definitions}
    missing, renamed = names.keys() - arguments, arguments - names.keys()
    if len(missing) > 1 or len(renamed) != len(missing):
        return None
    return names | dict(zip(missing, renamed, strict=True))


def _attribute(kind: str, value: Hashable) -> bytes | None:
    """A serialised AttrValue; None for kinds that rules do not use."""
    make = _ATTRIBUTES.get(kind)
    return None if make is None else make(value).SerializeToString()


_cached_attribute = cached(_attribute)


_ATTRIBUTES: Mapping[str, Callable[[OpArgument], tf.compat.v1.AttrValue]] = {
    "bool": lambda v: attr_value(b=bool(v)),
    "float": lambda v: attr_value(f=float(v)),
    "int": lambda v: attr_value(i=int(v)),
    "shape": lambda v: attr_value(shape=v.as_proto()),
    "list(int)": lambda v: attr_value(list={"i": [*map(int, v)]}),
    "string": lambda v: attr_value(s=v if isinstance(v, bytes) else v.encode()),
    "type": lambda v: attr_value(type=tf.as_dtype(v).as_datatype_enum),
}
