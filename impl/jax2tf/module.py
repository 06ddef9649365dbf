"""`Module`: a JAX function of parameters and inputs as a tf.Module that owns the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jax2tf import dtypes
from jax2tf.convert import convert


class Module(tf.Module):
    """`fun_jax(params, *inputs, **kwargs)` with a tf.Variable for each leaf of `params`.

    Graphs and SavedModels hold the variables once, whatever the number of functions that use them,
    and none of their values; TensorFlow trains them. Other large arrays that the function captures
    become variables too, which are not trained.

    >>> import jax.numpy as jnp
    >>> linear = Module(lambda p, x: x @ p["w"], {"w": jnp.ones([3, 2])}, polymorphic_shapes="b, _")
    >>> linear(tf.ones([4, 3])).shape, [v.name for v in linear.trainable_variables]
    (TensorShape([4, 2]), ['w:0'])

    Save it as any module, with a signature of your own:

        linear.serve = tf.function(linear, input_signature=[tf.TensorSpec([None, 3])])
        tf.saved_model.save(linear, folder)

    Attributes:
      parameters: the variables by the path of their leaf, as "layers/0/w"; a restored SavedModel
        has them too.

    Args:
      fun_jax: the function; its first argument are the parameters.
      params: a pytree of arrays.
      trainable: whether variables are trainable, or a pytree prefix of `params` that says it for
        each; those of integers never are.
      polymorphic_shapes: as `convert` takes it, for the inputs alone.
      name: the module's name.
      **options: the other options of `convert`.
    """

    def __init__(
        self,
        fun_jax: Callable[..., Any],
        params: Any,
        *,
        trainable: Any = True,
        polymorphic_shapes: Any = None,
        name: str | None = None,
        **options: Any,
    ):
        super().__init__(name=name)
        paths, self._tree = jax.tree_util.tree_flatten_with_path(params)
        flags = jax.tree.leaves(
            jax.tree.map(lambda flag, sub: [flag] * len(jax.tree.leaves(sub)), trainable, params)
        )
        self.parameters: dict[str, tf.Variable] = {
            _name(path): _variable(leaf, _name(path), flag)
            for (path, leaf), flag in zip(paths, flags, strict=True)
        }
        self._constants: list[tf.Variable] = []
        if isinstance(polymorphic_shapes, list):
            polymorphic_shapes = tuple(polymorphic_shapes)
        options.setdefault("large_constants", self._hold)
        self._converted = convert(
            _of_tuple(fun_jax), polymorphic_shapes=(None, polymorphic_shapes), **options
        )

    @tf.autograph.experimental.do_not_convert
    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """The function's result for the present values of the parameters."""
        return self._converted(self.params, inputs, **kwargs)

    @property
    def params(self) -> Any:
        """The variables, in the pytree that the parameters came in."""
        return jax.tree.unflatten(self._tree, list(self.parameters.values()))

    def _hold(self, value: np.ndarray) -> tf.Variable:
        self._constants.append(_variable(value, f"constant_{len(self._constants)}", False))
        return self._constants[-1]


def _of_tuple(fun_jax: Callable[..., Any]) -> Callable[..., Any]:
    def fun(params: Any, inputs: tuple[Any, ...], **kwargs: Any) -> Any:
        return fun_jax(params, *inputs, **kwargs)

    fun.__name__ = getattr(fun_jax, "__name__", type(fun_jax).__name__)
    # What is jitted is compiled by itself, here as by `convert`.
    return jax.jit(fun) if isinstance(fun_jax, jax.stages.Wrapped) else fun


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/") or "parameters"


def _variable(leaf: Any, name: str, trainable: bool) -> tf.Variable:
    if isinstance(leaf, jax.Array) and dtypes.is_key(leaf.dtype):
        leaf = jax.random.key_data(leaf)
    dtype = dtypes.dtype_of_val(leaf)
    trainable = trainable and (dtype.is_floating or dtype.is_complex)
    return tf.Variable(np.asarray(leaf), trainable=trainable, name=name, dtype=dtype)
