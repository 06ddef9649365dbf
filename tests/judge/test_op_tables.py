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
    "appends_in_loops": ("onnx", "TensorListReserve: written backwards", "int32", "^differs"),
    "atan2_of_arrays": ("litert", "Atan2: of an array and a scalar", "float32", "^refuses"),
    "carries_in_turn": ("litert", "StatelessWhile: that moves its arguments", "int32", "^differs"),
    "choice_by_product": ("onnx", "SelectV2", "float32", "nan"),
    "compares_integers_as_floats": ("onnx", "Greater", "int32", "large"),
    "divides_integers_as_floats": ("openvino", "TruncateDiv", "int32", "large"),
    "equates_large_integers": ("openvino", "Equal", "int32", "large"),
    "extreme_keeps_a_nan_of_the_second": ("openvino", "Maximum", "float32", "nan"),
    "infinite_exp_of_nan": ("openvino", "Exp", "float32", "nan"),
    "integer_reductions_saturate": ("onnx", "Sum", "int32", "large"),
    "last_axis_by_number": ("onnx", "GatherV2: in batches along axis -1", "int32", "^refuses"),
    "logarithm_of_half": ("litert", "Log", "float32", "large"),
    "no_adjoint_of_integers": ("onnx", "BatchMatMulV2: with an adjoint", "int32", "^refuses"),
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
    "sorts_integers_as_floats": ("onnx", "TopKV2", "int32", "large"),
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


def test_ops_of_its_own_are_in_the_table() -> None:
    for op, dtypes in TARGETS["coreml"].own_ops.items():
        assert op in NOT_IN_EVERY_ENGINE
        assert all(op_tables.uses("coreml")[op][dtype].startswith("takes") for dtype in dtypes)


def test_dimensions_of_which_litert_reduces_no_arrays() -> None:
    """Seven fail, one more than the most."""
    most = TARGETS["litert"].most_dimensions_of
    for op in ("All", "Any", "Max", "Min", "Prod", "Sum"):
        assert most[op] == 6
    assert op_tables.uses("litert")["Sum: of seven dimensions"]["float32"].startswith("fails")


def test_dimensions_that_core_ml_lacks() -> None:
    """Six are refused, one more than the most."""
    assert TARGETS["coreml"].most_dimensions == 5
    for op in ("AddV2", "BroadcastTo", "Transpose"):
        outcomes = op_tables.uses("coreml")[f"{op}: of six dimensions"].values()
        assert all("rank <= 5" in outcome for outcome in outcomes)
