"""tf.data.Dataset over arrays that the program holds, in Python: no threads, files or graphs.

A dataset is a function that gives an iterator of its elements, which are structures of tensors.
"""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.errors import OutOfRangeError, invalid_argument
from tf_substrates.numpy.namespaces import EXPORTS, export
from tf_substrates.numpy.random import philox_words, seeds_of
from tf_substrates.numpy.tensors import convert

export("data.AUTOTUNE", "data.experimental.AUTOTUNE")(-1)
export("data.INFINITE_CARDINALITY", "data.experimental.INFINITE_CARDINALITY")(-1)
export("data.UNKNOWN_CARDINALITY", "data.experimental.UNKNOWN_CARDINALITY")(-2)
_INFINITE, _UNKNOWN = -1, -2


@export("data.Dataset")
class Dataset:
    """Elements one after another, each a tensor or a tuple or dictionary of them.

    >>> from tf_substrates.numpy import tf
    >>> rows = tf.data.Dataset.from_tensor_slices(([1, 2, 3], [0.5, 1.5, 2.5]))
    >>> for x, y in rows.map(lambda x, y: (x * 2, y)).batch(2):
    ...     print(x.numpy(), y.numpy())
    [2 4] [0.5 1.5]
    [6] [2.5]

    Functions are called for each element with tensors that have values. `shuffle` gives
    TensorFlow's own order of elements for a seed.
    """

    def __init__(self, variant_tensor: Callable[[], Iterator]):
        self._elements = variant_tensor
        self._size = _UNKNOWN

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """One element."""
        element = _constants(tensors)
        return _made(lambda: iter([element]), 1)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """The rows of tensors.

        Raises:
          ValueError: a tensor is a scalar, or their numbers of rows differ.
        """
        whole = _constants(tensors)
        if not all(len(leaf.shape) for leaf in nest.flatten(whole)):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        sizes = [leaf.shape[0] for leaf in nest.flatten(whole)]
        for size in sizes[1:]:
            if size != sizes[0]:
                raise ValueError(f"Dimensions {sizes[0]} and {size} are not compatible")
        return _made(lambda: _rows(whole, sizes[0]), sizes[0])

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """Whole numbers: `range(stop)`, `range(start, stop)` or `range(start, stop, step)`.

        Args:
          output_type: their dtype; int64 if not given.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(
                "Invalid `args`. The length of `args` should be between 1 and 3 but was"
                f" {len(args)}."
            )
        dtype = dtypes.numpy_dtype(kwargs.get("output_type", dtypes.int64))
        numbers = builtins.range(*map(int, args))
        return _made(lambda: (_tensor(np.array(i, dtype)) for i in numbers), len(numbers))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Any = None) -> Dataset:
        """Elements of several datasets side by side, in their structure, as far as all reach."""
        structure = datasets if datasets is not None else args if len(args) > 1 else args[0]
        parts = nest.flatten(structure)
        finite = [part._size for part in parts if part._size != _INFINITE]
        size = _INFINITE if not finite else _UNKNOWN if _UNKNOWN in finite else min(finite)
        return _made(
            lambda: (
                nest.pack_sequence_as(structure, list(found))
                for found in builtins.zip(*parts, strict=False)
            ),
            size,
        )

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        synchronous: Any = None,
        use_unbounded_threadpool: bool = False,
        name: Any = None,
    ) -> Dataset:
        """What a function gives of each element; it takes the parts of a tuple as arguments."""
        return _made(lambda: (_result(_called(map_func, e)) for e in self), self._size)

    def flat_map(self, map_func: Callable, name: Any = None) -> Dataset:
        """The elements of the datasets that a function gives of each element."""
        return _made(lambda: (inner for e in self for inner in _called(map_func, e)), _UNKNOWN)

    def filter(self, predicate: Callable, name: Any = None) -> Dataset:
        """The elements of which the predicate, a boolean scalar, holds."""
        return _made(lambda: (e for e in self if _holds(_called(predicate, e))), _UNKNOWN)

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Elements stacked, `batch_size` of them; the last ones may be fewer.

        Raises:
          tf.errors.InvalidArgumentError: the size is not positive, or shapes differ.
        """
        count = int(batch_size)
        if count <= 0:
            raise invalid_argument("Batch size must be greater than zero. [Op:BatchDatasetV2]")
        whole, left = divmod(self._size, count)
        size = self._size if self._size < 0 else whole + (left > 0 and not drop_remainder)
        return _made(lambda: _batches(self, count, drop_remainder), size)

    def unbatch(self, name: Any = None) -> Dataset:
        """The rows of each element."""
        return _made(
            lambda: (row for e in self for row in _rows(e, nest.flatten(e)[0].shape[0])), _UNKNOWN
        )

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        """The elements `count` times; without end if it is None or -1."""
        times = -1 if count is None else int(count)
        if times < 0:
            size = _INFINITE if self._size != 0 else 0
            return _made(lambda: _endless(self), size)
        size = self._size * times if self._size >= 0 or times == 0 else self._size
        return _made(lambda: (e for _ in builtins.range(times) for e in self), size)

    def take(self, count: Any, name: Any = None) -> Dataset:
        """The first elements; all if `count` is -1."""
        wanted = int(count)
        if wanted < 0:
            return self
        size = min(self._size, wanted) if self._size >= 0 else self._size
        size = wanted if self._size == _INFINITE else size
        return _made(lambda: itertools.islice(iter(self), wanted), size)

    def skip(self, count: Any, name: Any = None) -> Dataset:
        """All but the first elements; none if `count` is -1."""
        first = int(count)
        if first < 0:
            return _made(lambda: iter(()), 0)
        size = max(self._size - first, 0) if self._size >= 0 else self._size
        return _made(lambda: itertools.islice(iter(self), first, None), size)

    def shard(self, num_shards: Any, index: Any, name: Any = None) -> Dataset:
        """Every `num_shards`-th element, from the one at `index` on."""
        step, first = int(num_shards), int(index)
        if not 0 <= first < step:
            raise invalid_argument(
                f"Index must be between 0 and {step - 1} (currently index = {first})."
                " [Op:ShardDataset]"
            )
        size = len(builtins.range(first, self._size, step)) if self._size >= 0 else self._size
        return _made(lambda: itertools.islice(iter(self), first, None, step), size)

    def concatenate(self, dataset: Dataset, name: Any = None) -> Dataset:
        """The elements, and then those of another dataset."""
        sizes = (self._size, dataset._size)
        size = sum(sizes) if min(sizes) >= 0 else _INFINITE if _INFINITE in sizes else _UNKNOWN
        return _made(lambda: itertools.chain(iter(self), iter(dataset)), size)

    def enumerate(self, start: Any = 0, name: Any = None) -> Dataset:
        """Pairs of a number, int64, and the element."""
        return _made(
            lambda: (
                (_tensor(np.array(i, np.int64)), e) for i, e in builtins.enumerate(self, int(start))
            ),
            self._size,
        )

    def cache(self, filename: str = "", name: Any = None) -> Dataset:
        """The elements, which are kept once they have all been read.

        Raises:
          NotImplementedError: they are to be kept in a file.
        """
        if filename:
            raise NotImplementedError(
                "tf.data.Dataset.cache: tf_substrates writes no files. What to do: leave `filename`"
                " out, which keeps the elements in memory."
            )
        kept: list = []
        return _made(lambda: iter(kept[0]) if kept else _keeping(self, kept), self._size)

    def prefetch(self, buffer_size: Any, name: Any = None) -> Dataset:
        """The dataset: nothing runs beside the program."""
        return self

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: Any = True,
        name: Any = None,
    ) -> Dataset:
        """The elements in an order that is drawn from a buffer of some of them.

        With `seed` or tf.random.set_seed it is TensorFlow's order.

        Args:
          buffer_size: how many elements are drawn from.
          seed: the seed, beside that of tf.random.set_seed.
          reshuffle_each_iteration: whether each iteration has an order of its own.

        Raises:
          ValueError: inside jax.jit there is no seed.
          tf.errors.InvalidArgumentError: the buffer has no elements.
        """
        size = int(buffer_size)
        if size < 1:
            raise invalid_argument("buffer_size must be greater than zero [Op:ShuffleDatasetV3]")
        pair = seeds_of("shuffle", seed)
        drawn = philox_words(*pair)

        def elements() -> Iterator:
            again = reshuffle_each_iteration or reshuffle_each_iteration is None
            own = (next(drawn), next(drawn)) if again else pair
            return _shuffled(iter(self), size, philox_words(*own))

        return _made(elements, self._size)

    def reduce(self, initial_state: Any, reduce_func: Callable, name: Any = None) -> Any:
        """The last state, where `reduce_func(state, element)` gives the next."""
        state = _as_tensors(initial_state)
        return functools.reduce(lambda s, e: _result(reduce_func(s, e)), self, state)

    def apply(self, transformation_func: Callable) -> Any:
        return transformation_func(self)

    def cardinality(self) -> Any:
        """How many elements there are, int64: -1 if without end, -2 if that is not known."""
        return _tensor(np.array(self._size, np.int64))

    def as_numpy_iterator(self) -> Iterator:
        """The elements as arrays of NumPy."""
        return (nest.map_structure(lambda x: np.array(x)[()], e) for e in self)

    def __iter__(self) -> OwnedIterator:
        return OwnedIterator(self)

    def __len__(self) -> int:
        """How many elements there are.

        Raises:
          TypeError: they have no end, or their number is not known.
        """
        if self._size == _INFINITE:
            raise TypeError("The dataset is infinite.")
        if self._size == _UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return self._size

    def __bool__(self) -> bool:
        return True


@export("python.data.ops.iterator_ops.OwnedIterator")
class OwnedIterator:
    """The elements of a dataset, one after another."""

    def __init__(self, dataset: Any = None, components: Any = None, element_spec: Any = None):
        self._left = dataset._elements()

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        return next(self._left)

    def get_next(self) -> Any:
        """The next element.

        Raises:
          tf.errors.OutOfRangeError: there is none.
        """
        for element in self._left:
            return element
        raise OutOfRangeError(None, None, "End of sequence [Op:IteratorGetNext]")


def _made(elements: Callable[[], Iterator], size: int) -> Dataset:
    dataset = Dataset(elements)
    dataset._size = size
    return dataset


def _tensor(value: Any) -> Any:
    return EXPORTS["convert_to_tensor"](value)


def _as_tensors(structure: Any) -> Any:
    """A structure in which lists, too, are tensors."""
    if isinstance(structure, dict):
        return type(structure)({key: _as_tensors(value) for key, value in structure.items()})
    if isinstance(structure, tuple):
        parts = [_as_tensors(part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return _tensor(structure)


def _constants(structure: Any) -> Any:
    """A structure of tensors without derivatives: TensorFlow's datasets hold values."""
    return nest.map_structure(EXPORTS["stop_gradient"], _as_tensors(structure))


def _result(value: Any) -> Any:
    """What a function gave as an element: a list is a tuple."""
    return _as_tensors(tuple(value) if type(value) is list else value)


def _called(function: Callable, element: Any) -> Any:
    return function(*element) if type(element) is tuple else function(element)


def _holds(value: Any) -> bool:
    found = convert(value)
    if found.dtype != np.bool_ or len(found.shape):
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return"
            f" is {value!r}."
        )
    return bool(found)


def _rows(structure: Any, count: int) -> Iterator:
    for i in builtins.range(count):
        yield nest.map_structure(lambda x, i=i: x[i], structure)


def _batches(dataset: Dataset, count: int, drop_remainder: bool) -> Iterator:
    elements = iter(dataset)
    while True:
        taken = list(itertools.islice(elements, count))
        if not taken or (drop_remainder and len(taken) < count):
            return
        yield nest.map_structure(lambda *parts: EXPORTS["stack"](list(parts)), *taken)


def _endless(dataset: Dataset) -> Iterator:
    while True:
        empty = True
        for element in dataset:
            empty = False
            yield element
        if empty:
            return


def _keeping(dataset: Dataset, kept: list) -> Iterator:
    read = []
    for element in dataset:
        read.append(element)
        yield element
    if not kept:
        kept.append(read)


def _shuffled(elements: Iterator, size: int, words: Iterator[int]) -> Iterator:
    """Elements drawn from a buffer, in whose place those come that follow."""
    buffer = list(itertools.islice(elements, size))
    # The places are those of a ring, of which `first` is the first that is taken.
    first, last, capacity = 0, len(buffer), len(buffer)
    while first < last:
        at = (first + next(words) % (last - first)) % capacity
        here = first % capacity
        buffer[at], buffer[here] = buffer[here], buffer[at]
        yield buffer[here]
        first += 1
        for following in itertools.islice(elements, 1):
            buffer[last % capacity] = following
            last += 1
