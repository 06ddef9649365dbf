"""Single ops take the arguments of tf.raw_ops and make the same nodes."""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from jax2tf._src.graph import ops as our_ops
from jax2tf._src.graph import signatures
from jax2tf._src.graph.from_tensorflow import program_of
from jax2tf._src.graph.make import making
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.ops import asked
from tests.impl.graph.cases import CASES
from tests.impl.graph.tensorflow_shapes import S
from tests.impl.graph.test_ops import flat, tree


def argument_names(op):
    """The names of operands and attributes in tf.raw_ops, by those of the signature."""
    signature = signatures.signature_of(op)
    theirs = [*inspect.signature(getattr(tf.raw_ops, op)).parameters]
    ours = [*(x.name for x in signature.operands), *signature.attributes]
    return {name: name if name in theirs else "axis" for name in ours}


def arguments(op, operands, attributes):
    """The arguments by their names in tf.raw_ops."""
    names, found, rest = argument_names(op), {}, list(operands)
    expected = signatures.signature_of(op).operands
    for operand in expected:
        n = len(operands) - len(expected) + 1
        found[names[operand.name]] = rest[:n] if operand.is_list else rest[0]
        rest = rest[n:] if operand.is_list else rest[1:]
    return found | {names[name]: value for name, value in attributes.items()}


def by_tensorflow(op, operands, attributes):
    specs = [_spec(x, i) for i, x in enumerate(operands) if isinstance(x, S)]

    def call(*tensors):
        given = iter(tensors)
        values = [next(given) if isinstance(x, S) else x for x in operands]
        results = getattr(tf.raw_ops, op)(**arguments(op, values, attributes))
        return {f"y{i:02}": x for i, x in enumerate(flat(results))}

    concrete = tf.function(call, autograph=False, input_signature=specs).get_concrete_function()
    return [x.node.inputs[0] for x in program_of(concrete).main.outputs]


def _spec(x, i):
    shape = x.shape and [size if isinstance(size, int) else None for size in x.shape]
    return tf.TensorSpec(x.shape if not x.shape else shape, x.dtype, f"x{i}")


def by_us(op, operands, attributes):
    with making(folds=False) as maker:
        values = [
            Symbol(maker.argument(f"x{i}", signatures.dtype_of(x.dtype), x.shape), maker)
            if isinstance(x, S)
            else x
            for i, x in enumerate(operands)
        ]
        results = getattr(our_ops.raw, op)(**arguments(op, values, attributes))
        return [x.tensor for x in flat(results)]


OPS = sorted({op for op, *_ in CASES} & asked.OPS.keys())


def test_every_op_that_rules_make_has_a_use():
    assert sorted(asked.OPS) == OPS


@pytest.mark.parametrize("op", OPS)
def test_same_nodes(op):
    for name, operands, attributes in CASES:
        if name == op and all(x.shape is not None for x in operands if isinstance(x, S)):
            ours = by_us(op, operands, attributes)
            theirs = by_tensorflow(op, operands, attributes)
            assert [tree(x) for x in ours] == [tree(x) for x in theirs]


@pytest.mark.parametrize("op", OPS)
def test_arguments_that_rules_give(op):
    names = set(argument_names(op).values())
    assert names >= set(asked.OPS[op].split())
