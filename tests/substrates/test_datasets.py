"""tf.data.Dataset: elements, their order, and what is refused, as in TensorFlow."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of


def of_range(name, *args, count=10, **kwargs):
    def program(tf):
        tf.random.set_seed(7)
        return list(getattr(tf.data.Dataset.range(count), name)(*args, **kwargs))

    return Case(f"{name} {args} {kwargs} of {count}", program)


def slices(name, structure, then=list):
    return Case(name, lambda tf: then(tf.data.Dataset.from_tensor_slices(structure)))


PAIRS = ([1, 2, 3], [3.0, 4.0, 5.0])


@over(
    [
        Case("from_tensors", lambda tf: list(tf.data.Dataset.from_tensors(([1, 2], 3)))),
        slices("rows", [[1, 2], [3, 4]]),
        slices("rows side by side", PAIRS),
        slices("rows by name", {"a": [1, 2], "b": (np.ones([2, 3]),)}),
        slices("other numbers of rows", ([1, 2], [3.0])),
        slices("no rows", 3),
        slices("a tuple is two arguments", PAIRS, lambda d: list(d.map(lambda a, b: (b, a)))),
        slices("a list is a tuple", PAIRS, lambda d: [len(x) for x in d.map(lambda a, b: [a, b])]),
        slices("batches", PAIRS, lambda d: list(d.batch(2))),
        slices("reduced", PAIRS, lambda d: d.reduce(0.0, lambda s, e: s + e[1])),
        Case("range to", lambda tf: list(tf.data.Dataset.range(2, 10, 3))),
        Case("range down", lambda tf: list(tf.data.Dataset.range(10, 2, -3))),
        Case("floats", lambda tf: list(tf.data.Dataset.range(3, output_type=tf.float32))),
        Case("range of nothing", lambda tf: tf.data.Dataset.range()),
        *(
            of_range("batch", size, drop_remainder=drop)
            for size in (3, 5)
            for drop in (False, True)
        ),
        of_range("batch", 0),
        *(of_range("take", n) for n in (2, 20, -1)),
        *(of_range("skip", n) for n in (2, 20, -1)),
        *(of_range("repeat", n, count=2) for n in (0, 2)),
        of_range("shard", 3, 1),
        of_range("shard", 2, 2),
        of_range("enumerate", 5, count=3),
        of_range("cache"),
        of_range("prefetch", 1),
        Case("filter", lambda tf: list(tf.data.Dataset.range(10).filter(lambda x: x % 3 == 1))),
        Case("filter by numbers", lambda tf: list(tf.data.Dataset.range(10).filter(lambda x: x))),
        Case("apply", lambda tf: list(tf.data.Dataset.range(10).apply(lambda d: d.take(1)))),
        *(
            of_range("shuffle", size, seed=seed, reshuffle_each_iteration=again)
            for size in (1, 4, 10, 200)
            for seed in (0, 1, 2**40)
            for again in (False, True)
        ),
        of_range("shuffle", 70, seed=3, count=300),
        of_range("shuffle", 0, seed=1),
    ]
)
def test_elements(case, substrate):
    assert_as_tensorflow(case, substrate)


def flat(tf):
    numbers = tf.data.Dataset.range(4)
    return list(numbers.flat_map(lambda x: tf.data.Dataset.from_tensors([x, x])).unbatch())


def side_by_side(tf):
    numbers = tf.data.Dataset.range
    return [
        list(tf.data.Dataset.zip(numbers(3), numbers(2))),
        list(tf.data.Dataset.zip((numbers(2), {"a": numbers(3)}))),
        len(tf.data.Dataset.zip(numbers(3), numbers(2).repeat())),
    ]


def epochs(tf):
    tf.random.set_seed(7)
    shuffled = tf.data.Dataset.range(6).shuffle(6, seed=1)
    cached = tf.data.Dataset.range(6).shuffle(6, seed=1).cache()
    kept = [list(shuffled), list(shuffled), list(shuffled.map(lambda x: x + 1))]
    return [*kept, list(shuffled.repeat(2)), list(cached), list(cached)]


def seeded(tf):
    results = []
    for _ in range(2):
        tf.random.set_seed(5)
        for seed in (None, 3, None):
            results.append(list(tf.data.Dataset.range(8).shuffle(8, seed=seed)))
    return results


def sizes(tf):
    d = tf.data.Dataset.range(7)
    every = [
        *(d, d.repeat(), d.repeat(2), d.repeat(0), d.filter(lambda x: x > 1), d.take(3), d.skip(9)),
        *(d.batch(3), d.batch(3, drop_remainder=True), d.repeat().take(4), d.shard(3, 1)),
        *(d.concatenate(d), d.concatenate(d.repeat()), d.enumerate(), d.shuffle(2, seed=1)),
    ]
    return [found.cardinality() for found in every]


def iterated(tf):
    numbers = iter(tf.data.Dataset.range(2))
    return [next(numbers), numbers.get_next(), numbers.get_next()]


@over(
    [
        Case("flat", flat),
        Case("side by side", side_by_side),
        Case("each iteration has its order", epochs),
        Case("seeds of tf.random.set_seed", seeded),
        Case("sizes", sizes),
        Case("without end", lambda tf: list(tf.data.Dataset.range(2).repeat().take(5))),
        Case("no number", lambda tf: len(tf.data.Dataset.range(2).filter(lambda x: x > 0))),
        Case("no end", lambda tf: len(tf.data.Dataset.range(2).repeat())),
        Case("after the end", iterated),
        Case(
            "arrays", lambda tf: list(tf.data.Dataset.range(4).batch(2).as_numpy_iterator())
        ),
        Case("one after another", lambda tf: list(
            tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(3)))),
        Case("numbers", lambda tf: [
            tf.data.AUTOTUNE, tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY]),
    ]
)  # fmt: skip
def test_datasets(case, substrate):
    assert_as_tensorflow(case, substrate)


METHODS = [name for name in vars(tf_of("numpy").data.Dataset) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_parameters_of_tensorflow(name):
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
        for method in (getattr(t.data.Dataset, name) for t in (tf_of("numpy"), tensorflow))
    )
    assert ours == theirs


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_what_is_refused(substrate):
    tf = tf_of(substrate)
    with pytest.raises(NotImplementedError, match=r"writes no files. What to do: leave `filename`"):
        tf.data.Dataset.range(2).cache("somewhere")
    with pytest.raises(AttributeError, match=r"tf.data.TFRecordDataset is refused .* files"):
        tf.data.TFRecordDataset  # noqa: B018  # what is read is refused
