"""What the process keeps after calls with many shapes and many static values has a bound."""

import ast
import collections
import functools
import gc
import itertools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.lowering import interpreter
from jax2tf._src.tracing import functions, trace

SRC = pathlib.Path(jax2tf.__file__).parent / "_src"

# More than two generations of traces, and more than `cached` keeps in the tests below.
SHAPES = 2000


@pytest.fixture(autouse=True)
def _small_caches_of_numbers(monkeypatch):
    for name in ("_eager_vector", "_eager_number"):
        small = functools.lru_cache(maxsize=100)(getattr(interpreter, name).__wrapped__)
        monkeypatch.setattr(interpreter, name, small)


def _objects():
    gc.collect()
    return collections.Counter(map(type, gc.get_objects()))


def _growth(call, calls, settled):
    """The objects by type that remain of `calls` calls, after those that fill the caches."""
    for i in range(1, settled):
        call(i)
    before = _objects()
    for i in range(settled, settled + calls):
        call(i)
    return _objects() - before


def _made_of_ours(growth):
    return {kind: n for kind, n in growth.items() if kind.__module__.startswith("jax2tf")}


def test_shapes_of_one_function_are_forgotten(monkeypatch):
    monkeypatch.setattr("jax2tf._src.tracing.tracer.KEPT_TRACES", 50)
    monkeypatch.setattr(functions, "KEPT_TRACES", 50)
    converted = jax2tf.convert(lambda x: lax_only(x))
    growth = _growth(lambda n: converted(np.zeros(n, np.float32)), SHAPES, 250)
    assert _made_of_ours(growth) == {}
    # Neither JAX keeps the jaxprs nor TensorFlow's eager mode the tensors.
    for kind in (jax.extend.core.Jaxpr, jax.extend.core.JaxprEqn, type(tf.constant(1))):
        assert growth[kind] <= 200, (kind, growth.most_common(10))


def lax_only(x):
    """Uses jax.lax only: JAX keeps the traces of jax.numpy's functions, which are jitted."""
    x = jax.lax.broadcast_in_dim(x, (3, *x.shape), (1,))
    return jax.lax.reshape(jax.lax.sin(x), (x.size,))


def test_sizes_of_a_named_dimension_are_forgotten(monkeypatch):
    monkeypatch.setattr(trace, "FEWEST_KEPT", 20)
    monkeypatch.setattr(trace, "KEPT_OF_EQUATION", 1)
    inner = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda _, y: jnp.sin(y) + 1, x))
    converted = jax2tf.convert(lambda x: inner(x) + inner(2 * x), polymorphic_shapes="b")
    growth = _growth(lambda n: converted(np.zeros(n, np.float32)), 60, 40)
    assert _made_of_ours(growth) == {}
    assert sum(growth.values()) < 600, growth.most_common(10)


class _Value:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        return isinstance(other, _Value) and self.number == other.number


class _JittedByALibrary:
    """Has its own rules for what is static, as equinox.filter_jit has."""

    def __call__(self, x, value):
        return x + value.number

    def lower(self):
        raise NotImplementedError


def test_static_values_are_forgotten(monkeypatch):
    monkeypatch.setattr("jax2tf._src.tracing.tracer.KEPT_TRACES", 10)
    converted = jax2tf.convert(_JittedByALibrary(), enable_xla=False)

    def call(i):
        converted(np.float32(1), _Value(i))
        jax.clear_caches()  # some of JAX's have these values in their keys

    growth = _growth(call, 40, 20)
    assert growth[_Value] == 0
    assert _made_of_ours(growth) == {}


def test_tensorflow_functions_called_from_jax_forget_shapes(monkeypatch):
    monkeypatch.setattr("jax2tf._src.call_tf.functions.KEPT_TRACES", 10)
    called = jax2tf.call_tf(lambda x: tf.sin(x) * 2)

    def trace_and_forget(n):
        jax.eval_shape(lambda x: called(x), jax.ShapeDtypeStruct((n,), np.float32))

    growth = _growth(trace_and_forget, 40, 30)
    assert _made_of_ours(growth) == {}
    assert growth[tf.Operation] <= 20, growth.most_common(10)


def test_a_large_program_keeps_every_function_of_it():
    n = trace.FEWEST_KEPT // trace.KEPT_OF_EQUATION + 10

    def many(x):
        for i in range(n):
            x = jax.lax.sin(x) + i
        return x

    made = jax.jit(many).trace(jax.ShapeDtypeStruct((), np.float32))
    large = trace.trace_of(made, trace.as_it_is)
    for key in itertools.chain(range(trace.KEPT_OF_EQUATION * n), (0,)):
        assert large.cached("batched", lambda key=key: [key], key) == [key]
    first = large.cached("batched", lambda: "made again", 0)
    assert first == [0]


def _modules():
    return [(p, ast.parse(p.read_text(encoding="utf-8"))) for p in sorted(SRC.rglob("*.py"))]


def test_functions_are_cached_by_one_helper():
    others = [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("cache", "lru_cache")
        and isinstance(node.value, ast.Name)
        and node.value.id == "functools"
        and path != SRC / "util/lru.py"
    ]
    assert others == []


# The lists and dicts of modules that may grow, with the reason.
MAY_GROW = {
    "lowering/registry.py:_RULES": "the import of the rules fills it",
    "export/onnx/registry.py:_rules": "the import of the rules fills it",
    "export/tflite/registry.py:_rules": "the import of the rules fills it",
    "graph/shapes/registry.py:TABLE": "the import of the shape functions fills it",
    "stablehlo/registry.py:OPS": "the import of the rules fills it",
    "stablehlo/registry.py:CUSTOM_CALLS": "the import of the rules fills it",
    "stablehlo/registry.py:COMPOSITES": "the import of the rules fills it",
    "util/lazy_imports.py:_tensorflows": "each module that compat/ names is in it",
    "compat/functions.py:_xla_contexts": "TensorFlow has the id of each context in keys of caches",
}


def test_no_module_has_a_dict_or_a_list_that_grows():
    empty = (ast.Dict, ast.List)
    found = {
        f"{path.relative_to(SRC)}:{target.id}"
        for path, tree in _modules()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, empty)
        and not (getattr(node.value, "keys", None) or getattr(node.value, "elts", None))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    assert found == MAY_GROW.keys()
