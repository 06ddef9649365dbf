"""Two ways to one graph: through TensorFlow's graph, and made by ours without TensorFlow.

Ours may have fewer ops. Rules see constants that were folded while the graph is made, and what a
loop, a branch or a function reads from around it, where TensorFlow's graphs have arguments. So they
leave out guards against NaN, and choices by what is known. Ours has no op that the other lacks,
except for the harnesses in `OTHERWISE`.
"""

from __future__ import annotations

import jax
import pytest

from jax2tf._src.api.errors import UnsupportedPrimitiveError
from tests.impl.graph.both_graphs import ops_of, ours
from tests.impl.graph.harness_graphs import Traced, harnesses

STEP, PARTS = 40, 8
TARGET = "onnx"
SAME, FEWER = "the same", "fewer"
# TensorFlow's ops that call Python: a graph may have them, a file of an engine may not.
PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}

_FUNCTION = (
    "The rule makes a function of these ops. The check of what the target takes does not look into "
    "TensorFlow's functions, and finds the ops in our graph."
)
# The harnesses whose ops differ otherwise, with the reason. The list is exact.
OTHERWISE = {
    "eq_to_float8_e4m3b11fnuz": _FUNCTION,
    "reduce_window_max_from_one_float32": (
        "The first value is seen to be a constant that is no NaN, so one Maximum serves."
    ),
}


def _comparison(traced: Traced) -> str:
    theirs = ops_of(traced.graph())
    if any(op.partition(" ")[0] in PYTHON for op in theirs):
        with pytest.raises(UnsupportedPrimitiveError, match="cannot call Py"):
            ours(traced, TARGET)
        return SAME
    try:
        mine = ops_of(ours(traced, TARGET))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    more, fewer = mine - theirs, theirs - mine
    if more:
        return f"ours {sorted(more.elements())}, TensorFlow's {sorted(fewer.elements())}"
    return FEWER if fewer else SAME


def _comparisons(harness) -> list[str]:
    """Of the harness closed and open; none where the target or JAX refuses it."""
    found = []
    with jax.enable_x64(harness.x64):
        for is_open in (False, True):
            try:
                traced = Traced(harness, TARGET, is_open)
            # The cells of the judge say why.
            except Exception:
                continue
            found.append(_comparison(traced))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_the_ops_and_their_attributes_are_the_same(part):
    every = []
    for harness in harnesses(STEP)[part::PARTS]:
        found = _comparisons(harness)
        different = [text for text in found if text not in (SAME, FEWER)]
        if harness.name in OTHERWISE:
            assert different, f"strike {harness.name} from OTHERWISE"
        else:
            assert different == [], harness.name
        every += found
    assert every.count(SAME) > 0.8 * len(every) > 10
