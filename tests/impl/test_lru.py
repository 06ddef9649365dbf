"""The cache of what was used last, and what the process keeps of what was converted and called."""

import gc
import itertools
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import dims
from jax2tf._src.tracing import trace, tracer
from jax2tf._src.util import lru


def test_what_was_not_used_for_longest_goes():
    letters = lru.Lru(3)
    for key in ("a", "b", "c"):
        letters.add(key, key.upper())
    assert letters.get("a") == "A"
    letters.add("b", "again")
    letters.add("d", "D")
    assert [letters.get(key) for key in ("a", "b", "c", "d")] == ["A", "again", None, "D"]


def test_a_value_is_made_once_and_may_be_none():
    made, values = [], lru.Lru(2)
    for _ in range(2):
        assert values.value("a", lambda: made.append("a")) is None
    assert made == ["a"]
    with pytest.raises(KeyError, match="missing"):
        values.value("b", lambda: {}["missing"])
    assert values.value("b", lambda: "made later") == "made later"
    values.clear()
    assert len(values) == 0


def test_who_asks_for_a_value_that_is_there_does_not_wait():
    values = lru.Lru(2)
    values.add("a", 1)
    began, may_end = threading.Event(), threading.Event()

    def slowly():
        began.set()
        assert may_end.wait(20)
        return 2

    thread = threading.Thread(target=values.value, args=("b", slowly))
    thread.start()
    assert began.wait(20)
    assert values.value("a", lambda: 3) == 1
    may_end.set()
    thread.join()
    assert values.get("b") == 2


def test_two_values_are_made_at_once():
    values, both = lru.Lru(2), threading.Barrier(2, timeout=20)
    threads = [
        threading.Thread(target=values.value, args=(key, both.wait), daemon=True) for key in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(values.get, "ab")) == [0, 1]


@pytest.mark.parametrize("spec", [None, "n"])
def test_functions_that_call_each_other_are_traced_in_two_threads(spec):
    both = threading.Barrier(2, timeout=20)

    def calls(other):
        def fun(x):
            if x.dtype == jnp.int32:
                return x + 1
            both.wait()
            called = jax2tf.call_tf(lambda y: converted[other](tf.cast(y, tf.int32)))
            return called(x)

        return fun

    converted = [jax2tf.convert(calls(other), polymorphic_shapes=spec) for other in (1, 0)]
    found = {}
    x = np.arange(3, dtype=np.float32)
    threads = [
        threading.Thread(target=lambda i=i: found.setdefault(i, converted[i](x)), daemon=True)
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == [0, 1]
    for result in found.values():
        np.testing.assert_array_equal(result, [1, 2, 3])


def test_a_value_that_goes_is_not_kept_alive():
    values = lru.Lru(1)
    values.add("a", kept := lru.Lru(1))
    gone = weakref.ref(kept)
    del kept
    assert gone() is not None
    values.add("b", lru.Lru(1))
    assert gone() is None


@pytest.mark.parametrize("spec", [None, "b, ..."])
def test_a_trace_that_was_forgotten_is_made_again(monkeypatch, spec):
    monkeypatch.setattr(tracer, "KEPT_TRACES", 4)
    converted = jax2tf.convert(lambda x: x * 2 + x.shape[0], polymorphic_shapes=spec)
    # Eleven sizes, of which the first is forgotten and the last is not.
    for size in (*range(1, 12), 1, 11, 1, 2):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(converted(x), x * 2 + size)


def test_traces_of_many_shapes_go(monkeypatch):
    monkeypatch.setattr(tracer, "KEPT_TRACES", 4)
    converted = jax2tf.convert(lambda x: x * 2)
    before = _count(trace.Trace)
    for size in range(1, 40):
        converted(np.ones(size, np.float32))
    # Each has a second form beside it, ready to be lowered.
    assert _count(trace.Trace) - before <= 2 * 4


def _count(kind):
    gc.collect()
    return sum(type(o) is kind for o in gc.get_objects())


def test_a_called_tensorflow_function_goes_with_the_function_that_calls_it():
    def graph_of_called():
        doubled = tf.function(lambda x: x * 2, autograph=False)
        jitted = jax.jit(jax.grad(lambda x: jax2tf.call_tf(doubled)(x).sum()))
        np.testing.assert_array_equal(jitted(np.ones(3, np.float32)), [2, 2, 2])
        return weakref.ref(doubled.get_concrete_function(tf.TensorSpec([3], tf.float32)).graph)

    gone = graph_of_called()
    gc.collect()
    assert gone() is None


def test_nothing_is_collected_while_another_thread_traces():
    assert gc.isenabled()
    seen = []
    first_is_in, second_is_out = threading.Event(), threading.Event()

    def first(x):
        first_is_in.set()
        assert second_is_out.wait(20)
        seen.append(gc.isenabled())
        return x

    thread = threading.Thread(target=jax2tf.convert(first), args=(np.float32(1),))
    thread.start()
    assert first_is_in.wait(20)
    jax2tf.convert(lambda x: x + 1)(np.float32(1))
    second_is_out.set()
    thread.join()
    assert seen == [False]
    assert gc.isenabled()


def test_scopes_of_dimension_variables_take_turns():
    scopes = [dims.new_scope(["b >= 2"]) for _ in range(200)]
    assert len(set(map(id, scopes))) < 50
    assert all(a is not b for a, b in itertools.pairwise(scopes))


def test_a_dimension_of_another_function_is_refused():
    kept = []

    def first(x):
        kept.append(x.shape[0])
        return x

    def second(x):
        return x + np.float32(1) * jax.numpy.ones(kept[0])

    x = np.ones(3, np.float32)
    jax2tf.convert(first, polymorphic_shapes="b")(x)
    with pytest.raises(TypeError, match="incompatible shapes"):
        jax2tf.convert(second, polymorphic_shapes="b")(x)
