"""Whether the harnesses of a primitive notice a fault in it."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.engine.compare import compare
from harnesses.engine.judge import result_of_jax
from harnesses.harness import Harness
from reports.planted.faults import EDGES, Fault
from reports.planted.planting import is_hit, planted


class Trial:
    """Tries faults against harnesses; keeps what JAX gives for those that were tried last."""

    def __init__(self, harnesses: Iterable[Harness]):
        self._of: dict[str, list[Harness]] = collections.defaultdict(list)
        for harness in harnesses:
            self._of[harness.primitive].append(harness)
        self._expected: collections.OrderedDict[str, Any] = collections.OrderedDict()

    @property
    def harnesses(self) -> Mapping[str, Sequence[Harness]]:
        """The harnesses of each primitive."""
        return self._of

    def caught_by(self, fault: Fault) -> tuple[Harness | None, int]:
        """The first harness whose comparison fails for the fault, and how many were tried."""
        tried = 0
        for harness in self._in_order(fault):
            tried += 1
            if self._notices(harness, fault):
                return harness, tried
        return None, tried

    def _in_order(self, fault: Fault) -> list[Harness]:
        """The harnesses that the fault may hit; those that are fed its edge come first."""
        edge = EDGES.get(fault.what.partition(" has ")[2])

        def is_fed(harness: Harness) -> bool:
            leaves = jax.tree.leaves(harness.make_args())
            return edge is not None and any(
                edge.of(leaf.dtype) and np.asarray(edge.holds(jnp.asarray(leaf))).any()
                for leaf in leaves
            )

        return sorted(self._of[fault.primitive], key=lambda harness: not is_fed(harness))

    def _notices(self, harness: Harness, fault: Fault) -> bool:
        with jax.enable_x64(harness.x64):
            args = harness.make_args()
            try:
                closed = jax.make_jaxpr(harness.fun)(*args)
            except Exception:  # JAX cannot run the harness here, and the matrix says so
                return False
            if not is_hit(closed, fault):
                return False
            expected = self._law(harness, args)
            if isinstance(expected, Exception):
                return False
            actual = result_of_jax(planted(harness.fun, fault), args)
        return compare(harness, args, expected, actual).problem is not None

    def _law(self, harness: Harness, args: tuple) -> Any:
        if harness.name not in self._expected:
            try:
                self._expected[harness.name] = result_of_jax(harness.fun, args)
            except Exception as error:  # an error of JAX's own is a row of the matrix
                self._expected[harness.name] = error
            if len(self._expected) > _KEPT:
                self._expected.popitem(last=False)
        return self._expected[harness.name]


_KEPT = 500
