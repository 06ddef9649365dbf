"""What tables of ops show: the quirks of targets and the forms of graphs that one op is there for.

tests/consumers/test_op_tables.py holds the tables themselves against the engines.
"""

from __future__ import annotations

import re

import pytest

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.forms import FORMS, NOT_IN_EVERY_ENGINE
from jax2tf._src.targets.quirks import Quirk

ENGINES = ("litert", "onnx", "openvino", "tfjs")

# By quirk or form: the target, the use of an op, its dtype, and what comes of it.
SHOWN: dict[str, tuple[str, str, str, str]] = {
    "adds_integers_as_floats": ("openvino", "Sum", "int32", "large"),
    "atan2_of_arrays": ("litert", "Atan2: of an array and a scalar", "float32", "^refuses"),
    "carries_in_turn": ("litert", "StatelessWhile: that moves its arguments", "int32", "^differs"),
    "divides_integers_as_floats": ("openvino", "TruncateDiv", "int32", "large"),
    "equates_large_integers": ("openvino", "Equal", "int32", "large"),
    "extreme_keeps_a_nan_of_the_second": ("openvino", "Maximum", "float32", "nan"),
    "infinite_exp_of_nan": ("openvino", "Exp", "float32", "nan"),
    "last_axis_by_number": ("tfjs", "Cumsum: along axis -1", "int32", "^fails"),
    "logarithm_of_half": ("litert", "Log", "float32", "large"),
    "no_atan2_of_scalar": ("litert", "Atan2: of an array and a scalar", "float32", "^refuses"),
    "no_convolution_in_groups": ("tfjs", "Conv2D: in groups", "float32", "^(refuses|fails)"),
    "numbers_first": ("openvino", "Maximum", "float32", "nan"),
    "one_reverse_at_a_time": ("openvino", "ReverseV2: of two axes", "int32", "^refuses"),
    "orders_integers_as_floats": ("openvino", "ReverseV2", "int32", "large"),
    "pads_with_constants_alone": (
        "openvino",
        "PadV2: with a computed number",
        "float32",
        "^differs",
    ),
    "smaller_for_larger": ("openvino", "Greater", "float32", "nan"),
}


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_what_a_quirk_is_there_for_is_in_a_table(name: str) -> None:
    target, use, dtype, what = SHOWN[name]
    assert name in FORMS or (name in set(Quirk) and name in TARGETS[target].quirks)
    assert re.search(what, op_tables.uses(target)[use][dtype])


@pytest.mark.parametrize("op", sorted(NOT_IN_EVERY_ENGINE))
def test_what_every_engine_is_spared_one_engine_lacks(op: str) -> None:
    """An op that all engines take has no need of another in its place."""
    uses = {target: op_tables.uses(target) for target in ENGINES}
    name = {"Case": "StatelessCase"}.get(op, op)
    for dtype in NOT_IN_EVERY_ENGINE[op] or uses["onnx"][name]:
        if any(not uses[target][name][dtype].startswith("takes") for target in ENGINES):
            return
    pytest.fail(f"every engine takes {op}")


def test_targets_lack_what_their_tables_say() -> None:
    for target in (*ENGINES, "coreml"):
        lacks = TARGETS[target].lacks
        assert lacks
        for op, dtypes in lacks.items():
            outcomes = {
                use: row
                for use, row in op_tables.uses(target).items()
                if use.partition(":")[0] == op
            }
            for dtype in dtypes:
                said = [row.get(dtype, "takes") for row in outcomes.values()]
                assert any(not s.startswith("takes") or "differs at" in s for s in said), (
                    op,
                    dtype,
                )


@pytest.mark.parametrize("target", ["coreml", "onnx"])
def test_ops_of_its_own_are_in_the_table(target: str) -> None:
    assert TARGETS[target].own_ops
    for op, dtypes in TARGETS[target].own_ops.items():
        assert op in NOT_IN_EVERY_ENGINE
        assert all(op_tables.uses(target)[op][dtype].startswith("takes") for dtype in dtypes)
