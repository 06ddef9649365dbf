"""Converts the functions to export to TensorFlow functions that share their variables."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from jax2tf._src.api.errors import ExportError
from jax2tf._src.api.module import Module
from jax2tf._src.call_tf import exchange
from jax2tf._src.export.signatures import Signature
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import Option, PyTree


@dataclasses.dataclass
class Program:
    """The converted functions.

    Attributes:
      root: the object to save, with the functions under their signatures' names and lists of the
        variables.
      functions: a tf.function by signature, from named tensors to a dict of named tensors.
    """

    root: tf.train.Checkpoint
    functions: dict[str, PyTree]

    def save(self, folder: Path, with_gradients: bool) -> None:
        """Writes a SavedModel."""
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
        tf.saved_model.save(self.root, str(folder), self.functions, options)


def program_of(
    signatures: Sequence[Signature],
    params: PyTree,
    options: Mapping[str, Option],
) -> Program:
    """Converts the functions.

    Args:
      signatures: the functions, which share the parameters.
      params: the parameters; arrays of JAX and NumPy share their memory with the variables.
      options: the options of `jax2tf.Module`.
    """
    first, *others = signatures
    module = Module(
        first.function,
        jax.tree.map(_sharing_memory, () if params is None else params),
        polymorphic_shapes=first.polymorphic_shapes,
        polymorphic_constraints=first.constraints,
        **options,
    )
    convert_options = {key: value for key, value in options.items() if key != "trainable"}
    functions = {first.name: _tf_function(first, module)}
    for signature in others:
        converted = module.function(
            signature.function,
            polymorphic_shapes=signature.polymorphic_shapes,
            polymorphic_constraints=signature.constraints,
            **convert_options,
        )
        functions[signature.name] = _tf_function(signature, converted)
    captured = [
        variable
        for name, function in functions.items()
        for variable in _captured(name, function.get_concrete_function())
    ]
    variables = list({Identity(v.handle): v for v in (*module.variables, *captured)}.values())
    # A restored tf.Module lacks lists of its variables, which are properties of the class.
    root = tf.train.Checkpoint(
        parameters=module.parameters,
        variables=variables,
        trainable_variables=[v for v in variables if v.trainable],
        **functions,
    )
    return Program(root, functions)


def _captured(name: str, concrete: tf.types.experimental.ConcreteFunction) -> Sequence[tf.Variable]:
    """The variables of a signature: its parameters and those that call_tf's functions capture.

    Raises:
      ExportError: it captures a resource that is not a variable.
    """
    variables: Sequence[tf.Variable] = concrete.variables
    handles = {Identity(v.handle) for v in variables}
    for value in concrete.captured_inputs:
        if value.dtype in (tf.resource, tf.variant) and Identity(value) not in handles:
            raise ExportError(
                f"jax2tf.export: signature {name!r}: a function of call_tf captures a "
                f"{value.dtype.name} that is not a variable (a table, a dataset), which has no "
                "place in the file. What to do: write a SavedModel by tf.saved_model.save, of a "
                "tf.Module with an attribute that is the table and one that is "
                "tf.function(jax2tf.convert(fun), input_signature=[...])"
            )
    return variables


_BY_NAME_TOO = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _tf_function(signature: Signature, converted: Callable[..., PyTree]) -> PyTree:
    def function(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        args, kwargs = signature.arguments(tensors)
        results = converted(*args, **kwargs)
        # Engines confuse an input with an output that is the same tensor, so each has an Identity.
        leaves = map(tf.identity, jax.tree.leaves(results))
        return dict(zip(signature.output_names(results), leaves, strict=True))

    function.__name__ = signature.name
    names = [inspect.Parameter(spec.name, _BY_NAME_TOO) for spec in signature.inputs]
    setattr(function, "__signature__", inspect.Signature(names))  # noqa: B010
    specs = [spec.spec for spec in signature.inputs]
    return tf.function(function, input_signature=specs, autograph=False)


def _sharing_memory(leaf: PyTree) -> PyTree:
    """A tensor that shares an array's memory if possible. An export never writes to it."""
    if isinstance(leaf, jax.Array) and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return exchange.to_tensor(leaf)
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f" and leaf.flags.writeable:
        return tf.experimental.dlpack.from_dlpack(leaf.__dlpack__())
    return leaf
