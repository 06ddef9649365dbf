"""Values that are made of tensors, and the specs that say of which: tf.TypeSpec's protocol.

A class of such values derives from `CompositeTensor` and has `_type_spec`; its spec takes a value
apart (`_to_components`) and puts it together (`_from_components`). tf.nest looks into them where it
is called with `expand_composites=True`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.shapes import TensorShape, TensorSpec, TypeSpec
from tf_substrates.numpy.tensors import convert, is_tensor
from tf_substrates.numpy.variables import Variable

_COMPOSITE = "python.framework.composite_tensor"


@export("__internal__.CompositeTensor", f"{_COMPOSITE}.CompositeTensor")
class CompositeTensor(metaclass=abc.ABCMeta):
    """A value that is made of tensors."""

    @property
    @abc.abstractmethod
    def _type_spec(self) -> TypeSpec:
        """The spec that takes this value apart."""

    def _shape_invariant_to_type_spec(self, shape: Any) -> TypeSpec:
        raise NotImplementedError(f"{type(self).__name__} has no shape invariants")


def _components(value: CompositeTensor) -> Any:
    return value._type_spec._to_components(value)


def _with_components(value: CompositeTensor, components: Any) -> Any:
    return value._type_spec._from_components(components)


nest.register_composite(CompositeTensor, _components, _with_components)


@export(f"{_COMPOSITE}.replace_composites_with_components")
def replace_composites_with_components(structure: Any) -> Any:
    """A structure in which values that are made of tensors are the structures of these."""
    if isinstance(structure, CompositeTensor):
        return replace_composites_with_components(_components(structure))
    if not nest.is_nested(structure):
        return structure
    return nest.map_structure(replace_composites_with_components, structure)


_SPEC = "python.framework.type_spec"
export(f"{_SPEC}.TypeSpec")(TypeSpec)
export("python.framework.tensor_spec.TensorSpec")(TensorSpec)
export("python.framework.tensor_shape.TensorShape")(TensorShape)


@export(f"{_SPEC}.BatchableTypeSpec")
class BatchableTypeSpec(TypeSpec):
    """A spec of values that can be batched."""

    __slots__ = ()


@export(f"{_SPEC}.type_spec_from_value", "type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a value.

    Raises:
      TypeError: it is neither a tensor nor made of tensors.
    """
    if isinstance(value, CompositeTensor):
        return value._type_spec
    if isinstance(value, Variable):
        return VariableSpec.from_value(value)
    try:
        return TensorSpec.from_tensor(value if is_tensor(value) else convert(value))
    except (TypeError, ValueError):
        raise TypeError(
            f"Could not build a TypeSpec for {value!r} of type {type(value).__name__}"
        ) from None


_REGISTERED: dict[str, type] = {}
_NAMES: dict[type, str] = {}
_REGISTRY = "python.framework.type_spec_registry"
export(f"{_REGISTRY}._NAME_TO_TYPE_SPEC")(_REGISTERED)
export(f"{_REGISTRY}._TYPE_SPEC_TO_NAME")(_NAMES)


@export(f"{_REGISTRY}.register")
def register(name: str) -> Callable[[type], type]:
    """A decorator that gives a class of specs a name.

    Raises:
      ValueError: the name is another one's already.
    """

    def named(cls: type) -> type:
        if name in _REGISTERED:
            raise ValueError(f"Name {name} has already been registered for class {name}.")
        _REGISTERED[name] = cls
        _NAMES[cls] = name
        return cls

    return named


@export(f"{_REGISTRY}.lookup")
def lookup(name: str) -> type:
    if name not in _REGISTERED:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return _REGISTERED[name]


@export(f"{_REGISTRY}.get_name")
def get_name(cls: type) -> str:
    if cls in _NAMES:
        return _NAMES[cls]
    raise ValueError(f"TypeSpec {cls.__module__}.{cls.__name__} has not been registered.")


_RESOURCES = "python.ops.resource_variable_ops"


@export(f"{_RESOURCES}.VariableSpec")
class VariableSpec(TensorSpec):
    """The shape and dtype of a variable, and whether it is trained."""

    __slots__ = ("trainable",)

    value_type = Variable

    def __init__(
        self,
        shape: Any,
        dtype: Any = dtypes.float32,
        trainable: bool = True,
        alias_id: Any = None,
    ):
        super().__init__(shape, dtype)
        self.trainable = trainable

    @classmethod
    def from_value(cls, value: Variable) -> VariableSpec:
        return cls(value.shape, value.dtype, value.trainable)

    def _to_components(self, value: Any) -> list:
        return [value]

    def _from_components(self, components: Any) -> Any:
        return components[0]


@export(f"{_RESOURCES}.is_resource_variable")
def is_resource_variable(var: Any) -> bool:
    return isinstance(var, Variable)


@export("python.util.variable_utils.convert_variables_to_tensors")
def convert_variables_to_tensors(values: Any) -> Any:
    """A structure in which variables are tensors, also in values that are made of them."""
    return nest.map_structure(_without_variables, values)


def _without_variables(value: Any) -> Any:
    if isinstance(value, Variable):
        return value.value()
    if isinstance(value, CompositeTensor):
        return value._convert_variables_to_tensors()  # type: ignore[attr-defined]
    return value
