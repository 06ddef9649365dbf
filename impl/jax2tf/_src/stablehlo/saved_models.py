"""SavedModels: signatures whose graphs hold XlaCallModule ops.

The modules become JAX functions. TensorFlow ops around them stay TensorFlow ops, inside `call_tf`.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from jax2tf._src.api.errors import LoadError
from jax2tf._src.stablehlo.around import NOT_NUMBERS
from jax2tf._src.stablehlo.function import Argument, LoadedFunction
from jax2tf._src.stablehlo.saved_graphs import Contents, Evaluation, Variable
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree


def functions_of(path: pathlib.Path) -> dict[str, LoadedFunction | LoadError]:
    """The signatures of a SavedModel; an error for one that is no function of arrays.

    Raises:
      LoadError: it has no signature, or no signature is a function of arrays.
    """
    try:
        loaded = tf.saved_model.load(str(path))
    # TensorFlow raises an IndexError for variables that end early.
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:
        raise LoadError(
            f"jax2tf.load: TensorFlow cannot load the SavedModel {path}: {str(error).rstrip('.')}. "
            "What to do: copy the whole folder again, with its variables/, or save it again."
        ) from error
    if not loaded.signatures:
        raise LoadError(
            f"jax2tf.load: the SavedModel {path} has no signature. What to do: save it with "
            "tf.saved_model.save(module, path, signatures={name: function})."
        )
    names = dict(_named_variables(loaded))
    signatures = {
        str(key): _Signature(key, function, names, str(path))
        for key, function in loaded.signatures.items()
    }
    found = {
        key: signature.refusal() or signature.function() for key, signature in signatures.items()
    }
    refusals = [value for value in found.values() if isinstance(value, LoadError)]
    if len(refusals) == len(found):
        raise refusals[0]
    return found


def _named_variables(root: PyTree) -> Iterator[tuple[Identity, str]]:
    """Each variable, with its path of attributes, keys and indices."""
    seen: set[Identity] = set()
    stack: list[tuple[PyTree, str]] = [(root, "")]
    while stack:
        node, path = stack.pop()
        if (key := Identity(node)) in seen:
            continue
        seen.add(key)
        if isinstance(node, tf.Variable):
            yield key, path
            continue
        stack += [(child, f"{path}.{name}" if path else name) for name, child in _children(node)]


def _children(node: PyTree) -> Iterator[tuple[str, PyTree]]:
    if isinstance(node, Mapping):
        yield from ((str(key), child) for key, child in node.items())
    elif isinstance(node, (list, tuple)):
        yield from ((str(i), child) for i, child in enumerate(node))
    elif hasattr(node, "__dict__") and not callable(node):
        public = vars(node).items()
        yield from ((name, child) for name, child in public if not name.startswith("_"))


@dataclasses.dataclass(frozen=True, eq=False)
class _Signature:
    """One signature: a graph, what it captures, and what it takes and returns by name."""

    name: str
    concrete: PyTree
    variable_names: Mapping[Identity, str]
    origin: str

    @functools.cached_property
    def _contents(self) -> Contents:
        return Contents(self.concrete.graph, f"{self.origin}: {self.name}")

    @property
    def _specs(self) -> Mapping[str, PyTree]:
        return self.concrete.structured_input_signature[1]

    def refusal(self) -> LoadError | None:
        """The error for a signature that is no function of arrays; None for one that is."""
        for name, spec in sorted(self._specs.items()):
            if not _is_array(spec):
                return self._no_array(f"takes {name!r}", spec)
        for name, tensor in sorted(self.concrete.structured_outputs.items()):
            if not _is_array(tensor):
                return self._no_array(f"returns {name!r}", tensor)
        if (op := self._contents.writing_op()) is not None:
            return LoadError(
                f"jax2tf.load: {self.origin}: the signature {self.name!r} changes a variable (the "
                f"op {op}), which a JAX function does not do. What to do: save a signature that "
                "takes the values and returns the new ones."
            )
        return None

    def function(self) -> LoadedFunction:
        """The signature as a function."""
        names, results = sorted(self._specs), sorted(self.concrete.structured_outputs)
        arguments = [_argument(name, self._specs[name]) for name in names]
        params, captures = self._captures()
        contents = self._contents

        def flat(params: Mapping[str, PyTree], leaves: Sequence[PyTree]) -> Sequence[PyTree]:
            return Evaluation(contents, (*leaves, *captures), params).results()

        in_tree = tree_util.tree_structure(((), dict.fromkeys(names, 0)))
        out_tree = tree_util.tree_structure(dict.fromkeys(results, 0))
        return LoadedFunction(self.name, flat, arguments, in_tree, out_tree, params)

    def _no_array(self, what: str, spec: PyTree) -> LoadError:
        return LoadError(
            f"jax2tf.load: {self.origin}: the signature {self.name!r} {what} of type "
            f"{spec.dtype.name} and shape {spec.shape}, which is no array of JAX. What to do: "
            "save a signature that takes and returns numbers of a known rank, without the "
            "preprocessing around them."
        )

    def _captures(self) -> tuple[dict[str, PyTree], list[PyTree]]:
        """The values of the variables by name, and what stands for each captured tensor."""
        variables = {Identity(variable.handle): variable for variable in self.concrete.variables}
        params: dict[str, PyTree] = {}
        captures: list[PyTree] = []
        for tensor in self.concrete.captured_inputs:
            variable = variables.get(Identity(tensor))
            if variable is not None:
                name = self.variable_names.get(Identity(variable), variable.name.partition(":")[0])
                params[name] = jnp.asarray(variable.numpy())
                captures.append(Variable(name))
            else:
                captures.append(None if tensor.dtype.name in NOT_NUMBERS else np.asarray(tensor))
        return params, captures


def _is_array(spec: PyTree) -> bool:
    return spec.dtype.name not in NOT_NUMBERS and spec.shape.rank is not None


def _argument(name: str, spec: PyTree) -> Argument:
    dtype = np.dtype(spec.dtype.as_numpy_dtype)
    if dtype.kind in "iu":  # token ids have 64 bits in TensorFlow
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return Argument(f"kwargs[{name!r}]", tuple(spec.shape), dtype)
