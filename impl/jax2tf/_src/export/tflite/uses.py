"""Which ops of a graph read a value, and changes that keep this known."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from jax2tf._src.export.tflite.model import Op, Subgraph, Value


class Uses:
    """The readers of the values of one graph.

    Attributes:
      graph: the graph.
    """

    def __init__(self, graph: Subgraph) -> None:
        self.graph = graph
        self._readers: dict[Value, list[Op]] = collections.defaultdict(list)
        for op in graph.ops:
            for x in op.operands:
                if x is not None:
                    self._readers[x].append(op)

    def constants(self) -> list[tuple[Value, Sequence[Op]]]:
        """The constants, each with the ops that read it."""
        return [(x, ops) for x, ops in self._readers.items() if x.array is not None]

    def readers(self, value: Value) -> Sequence[Op]:
        """The ops that read a value, twice where one reads it twice."""
        return self._readers[value]

    def only_reader(self, value: Value) -> Op | None:
        """The op that reads a value if nothing else does."""
        readers = self._readers[value]
        return readers[0] if len(readers) == 1 and value not in self.graph.outputs else None

    def put(self, op: Op, place: int, value: Value) -> None:
        """Lets an op read another value at a place of its operands."""
        old = op.operands[place]
        op.operands[place] = value
        if old is not None:
            self._readers[old].remove(op)
        self._readers[value].append(op)

    def replace(self, old: Value, new: Value) -> None:
        """Lets all who read one value read another."""
        for op in self._readers.pop(old, []):
            op.operands = [new if x is old else x for x in op.operands]
            if op not in self._readers[new]:
                self._readers[new] += [op] * op.operands.count(new)
        self.graph.outputs = [new if x is old else x for x in self.graph.outputs]

    def absorb(self, op: Op, value: Value) -> None:
        """Lets all who read the result of an op, which goes, read a value instead."""
        for x in {x for x in op.operands if x is not None}:
            self._readers[x] = [reader for reader in self._readers[x] if reader is not op]
        self.replace(op.results[0], value)

    def without_unread(self) -> None:
        """Removes the ops whose results nothing reads."""
        live = set(self.graph.outputs)
        kept = []
        for op in reversed(self.graph.ops):
            if not live.isdisjoint(op.results):
                kept.append(op)
                live.update(x for x in op.operands if x is not None)
        self.graph.ops = kept[::-1]
