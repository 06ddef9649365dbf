"""`Module` makes a JAX function of parameters and inputs a tf.Module that owns the parameters."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src import compat, dims
from jax2tf._src.api import keras_layer
from jax2tf._src.api.convert import convert
from jax2tf._src.api.errors import ConversionError
from jax2tf._src.tracing import arguments, functions
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.tf_decorators import without_autograph
from jax2tf._src.util.typing import KeyPath, Option, PyTree


class Module(compat.containers.SavesVariableLists, tf.Module):  # type: ignore[misc]
    """`fun_jax(params, *inputs, **kwargs)` with a tf.Variable for each leaf of `params`.

    Graphs and SavedModels hold each variable once for all functions, and do not embed its value.
    TensorFlow trains the variables. Other large arrays that the function captures become variables,
    too, which are not trained.

    >>> import jax.numpy as jnp
    >>> linear = Module(lambda p, x: x @ p["w"], {"w": jnp.ones([3, 2])}, polymorphic_shapes="b, _")
    >>> linear(tf.ones([4, 3])).shape, [v.name for v in linear.trainable_variables]
    (TensorShape([4, 2]), ['w:0'])

    Save it like any tf.Module, with a signature of your own:

        linear.serve = tf.function(linear, input_signature=[tf.TensorSpec([None, 3])])
        tf.saved_model.save(linear, folder)

    Keras neither trains nor saves variables that it did not make. In a layer or model of Keras,
    use the result of `keras_layer`.

    Attributes:
      parameters: the variables by the path of their leaf, such as "layers/0/w". A restored
        SavedModel has `parameters`, `variables` and `trainable_variables`, too.

    Args:
      fun_jax: the function, as `convert` takes it. Its first argument is the pytree of parameters.
      params: a pytree of arrays. A leaf that is neither an array nor a number (an Equinox module
        has functions) is passed on unchanged, and does not become a variable.
      trainable: whether variables are trainable, or a pytree prefix of `params` with a value for
        each. Variables of integers are never trainable.
      polymorphic_shapes: as `convert` takes it, but only for the inputs.
      name: the module's name.
      **options: the other options of `convert`.
    """

    def __init__(
        self,
        fun_jax: Callable[..., PyTree],
        params: PyTree,
        *,
        trainable: PyTree = True,
        polymorphic_shapes: PyTree = None,
        name: str | None = None,
        **options: Option,
    ):
        super().__init__(name=_require_name(name))
        option_checks.callable_(fun_jax, "jax2tf.Module: fun_jax", " of parameters and inputs")
        _require_options(options, "jax2tf.Module")
        params = functions.without_opaque_leaves(
            arguments.unwrap(params), functions.is_array_or_number
        )
        paths, self._tree = jax.tree_util.tree_flatten_with_path(params)
        flags = _flags(trainable, params)
        names = _names([path for path, _ in paths])
        self.parameters: dict[str, tf.Variable] = {
            name: _parameter(leaf, path, name, flag)
            for name, (path, leaf), flag in zip(names, paths, flags, strict=True)
        }
        self._constants: list[tf.Variable] = []
        # Whether the weights of a Keras layer include the parameters.
        self.is_seen_by: Callable[[object], bool] = lambda layer: False
        self._converted = self._convert(fun_jax, polymorphic_shapes, options)

    @without_autograph
    def __call__(self, *inputs: PyTree, **kwargs: PyTree) -> PyTree:
        """The function's result for the current values of the parameters.

        Raises:
          ConversionError: the calling Keras layer does not track the trainable variables.
        """
        layer = compat.libraries.keras_layer_under_way()
        if layer is not None and self.trainable_variables and not self.is_seen_by(layer):
            self._refuse(layer)
        return self._converted(self._with_statics(), *inputs, **kwargs)

    def function(
        self,
        fun_jax: Callable[..., PyTree],
        *,
        polymorphic_shapes: PyTree = None,
        **options: Option,
    ) -> Callable[..., PyTree]:
        """Converts another function of the same parameters.

        >>> module = Module(lambda p, x: x @ p, tf.eye(2))
        >>> module.norm = module.function(lambda p: (p * p).sum())
        >>> float(module.norm())
        2.0

        Args:
          fun_jax: `fun_jax(params, *inputs, **kwargs)`, as `convert` takes it.
          polymorphic_shapes: as for the module.
          **options: the other options of `convert`.

        Returns:
          A function of the inputs, which uses the module's variables.
        """
        option_checks.callable_(
            fun_jax, "jax2tf.Module.function: fun_jax", " of parameters and inputs"
        )
        _require_options(options, "jax2tf.Module.function")
        converted = self._convert(fun_jax, polymorphic_shapes, options)

        @without_autograph
        def with_parameters(*inputs: PyTree, **kwargs: PyTree) -> PyTree:
            return converted(self._with_statics(), *inputs, **kwargs)

        return with_parameters

    def keras_layer(self, **options: Option) -> tf.keras.layers.Layer:
        """The module as a layer of Keras 3 on TensorFlow, which Keras trains and saves.

        The layer's weights replace the variables of the module.

        Args:
          **options: those of keras.layers.Layer, as name and dtype.

        Returns:
          A keras.layers.Layer, to be put into a model or assigned to an attribute of a layer.

        Raises:
          ImportError: Keras is not installed.
          ValueError: Keras runs on another backend than TensorFlow.
        """
        return keras_layer.layer_of(self, **options)

    def _convert(
        self, fun_jax: Callable[..., PyTree], shapes: PyTree, options: dict[str, Option]
    ) -> Callable[..., PyTree]:
        options.setdefault("large_constants", self._hold)
        return convert(fun_jax, polymorphic_shapes=dims.OfInputs(shapes), **options)

    def _refuse(self, layer: tf.keras.layers.Layer) -> None:
        names = ", ".join(path for path, v in self.parameters.items() if v.trainable)
        raise ConversionError(
            f"jax2tf.Module({self._converted.__name__}): the Keras layer {layer.name!r} calls it, "
            f"and its trainable variables ({names}) are no weights of that layer: Keras would "
            "neither train nor save them. What to do: assign module.keras_layer() to the "
            "layer's attribute, and call that in place of the module; or make the module with "
            "trainable=False"
        )

    @property
    def params(self) -> PyTree:
        """The variables, in the structure of the pytree of parameters."""
        return functions.values(self._with_statics())

    def _with_statics(self) -> PyTree:
        return jax.tree.unflatten(self._tree, list(self.parameters.values()))

    def _hold(self, value: np.ndarray) -> tf.Variable:
        self._constants.append(_variable(value, f"constant_{len(self._constants)}", False))
        return self._constants[-1]


def _require_name(name: str | None) -> str | None:
    is_name = isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    if name is not None and not is_name:
        raise ValueError(
            "jax2tf.Module: name should be a text that Python takes for a name, such as 'dense', "
            f"got {option_checks.shown(name)}; leave it out for one of TensorFlow's choice"
        )
    return name


def _require_options(options: Mapping[str, Option], function: str) -> None:
    option_checks.options_of(convert, options, function, own=["polymorphic_shapes"])


def _flags(trainable: PyTree, params: PyTree) -> list[bool]:
    """Whether each parameter is trainable."""
    cause = None
    try:
        flags = jax.tree.leaves(jax.tree.broadcast(trainable, params))
        if all(isinstance(flag, bool | np.bool_) for flag in flags):
            return flags
    except ValueError as error:
        cause = error
    raise ValueError(
        "jax2tf.Module: trainable should be True, False or a pytree prefix of params, "
        f"{jax.tree.structure(params)}, got {trainable!r}; give a dict of the parameters the "
        "same keys, and True for what trains"
    ) from cause


def _names(paths: Sequence[KeyPath]) -> list[str]:
    """A unique name for each parameter; a key like "a/b" may need a number behind its name."""
    names: dict[str, None] = {}
    for path in paths:
        key = jax.tree_util.keystr(path, simple=True, separator="/")
        # Files cannot hold lone surrogates, which os.fsdecode may give.
        name = key.encode("utf-8", "replace").decode() or "parameters"
        others = (f"{name}_{i}" for i in itertools.count(1))
        names[next(n for n in itertools.chain([name], others) if n not in names)] = None
    return list(names)


def _parameter(leaf: PyTree, path: KeyPath, name: str, trainable: bool) -> tf.Variable:
    where = f"jax2tf.Module: params{jax.tree_util.keystr(path)}"
    if isinstance(leaf, jax.core.Tracer):
        raise TypeError(
            f"{where} should be an array, got a JAX tracer. What to do: make the module outside of "
            "what JAX traces"
        )
    try:
        return _variable(leaf, name, trainable)
    except (TypeError, OverflowError) as error:
        raise type(error)(
            f"{where}: {error}. What to do: give an array of numbers, or keep what is none out of "
            "params, in the function"
        ) from None


def _variable(leaf: PyTree, name: str, trainable: bool) -> tf.Variable:
    if isinstance(leaf, jax.Array) and dtypes.is_key(leaf.dtype):
        leaf = compat.jaxprs.data_of_keys(leaf)
    dtype = dtypes.dtype_of_val(leaf)
    trainable = trainable and (dtype.is_floating or dtype.is_complex)
    # A variable takes over a tensor's memory, and copies NumPy's.
    value = leaf if isinstance(leaf, tf.Tensor) and leaf.dtype == dtype else np.asarray(leaf)
    return tf.Variable(value, trainable=trainable, name=scope_name(name), dtype=dtype)


def scope_name(name: str) -> str:
    """The name in a form that TensorFlow's name scopes accept; Haiku has "mlp/~/linear/w"."""
    name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name)
    # TensorFlow drops an empty part of a name, so that "/" would be the name of its scope.
    name = "/".join(part or "_" for part in name.split("/"))
    return name if re.match("[A-Za-z0-9.]", name) else f"parameters/{name}"
