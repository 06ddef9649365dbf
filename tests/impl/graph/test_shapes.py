"""Our shape functions, op by op, beside TensorFlow's: they know as much, and refuse the same."""

from __future__ import annotations

import ast
import pathlib
import re

import numpy as np
import pytest

from jax2tf._src.graph import shapes, signatures
from tests.impl.graph.cases import CASES, N_REFUSED_EARLY, REFUSED
from tests.impl.graph.definitions import definition
from tests.impl.graph.tensorflow_shapes import S, our_types, tensorflow_types

OPS = sorted({op for op, *_ in CASES})


def knows(ours, theirs):
    """Whether a shape is the other one, or says more."""
    if theirs is None or ours is None:
        return theirs is None
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(b is None or a == b for a, b in pairs)


@pytest.mark.parametrize("op", OPS)
def test_types(op):
    for name, operands, attributes in CASES:
        if name == op:
            ours = our_types(op, operands, attributes)
            theirs = tensorflow_types(op, operands, attributes)
            told = [getattr(x, "shape", None) for x in operands], attributes, ours, theirs
            assert [dtype for dtype, _ in ours] == [dtype for dtype, _ in theirs], told
            for (_, a), (_, b) in zip(ours, theirs, strict=True):
                assert knows(a, b), told


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refused(i):
    op, operands, attributes = REFUSED[i]
    if i < N_REFUSED_EARLY:
        with pytest.raises((ValueError, TypeError)):
            tensorflow_types(op, operands, attributes)
    with pytest.raises(ValueError, match=rf"^{op}: .*; the operands are ") as error:
        our_types(op, operands, attributes)
    shape = operands[0].shape
    assert str(list(shape)).replace("'", "") in str(error.value)


def test_an_error_says_all():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "ConcatV2: the sizes 3 and 4 should be equal; "
            "the operands are float32[b, 3], float32[?, 4], int32[]"
        ),
    ):
        our_types("ConcatV2", [S("b", 3), S(None, 4), np.array(0, np.int32)], {})


def test_every_op_has_a_signature_shapes_and_a_case():
    assert list(shapes.known_ops()) == list(signatures.known_ops())
    # XLA's ops are no ops of TensorFlow's own kernels.
    assert set(signatures.known_ops()) - set(OPS) == {"XlaDynamicUpdateSlice"}


@pytest.mark.parametrize("op", signatures.known_ops())
def test_signatures_are_those_of_tensorflow(op):
    ours, theirs = signatures.entry(op), definition(op)
    for name, attribute in theirs["attributes"].items():
        known = ours["attributes"][name]
        # Versions of TensorFlow add dtypes.
        known_dtypes = set(known.pop("allowed", ()))
        assert known_dtypes <= set(attribute.pop("allowed", known_dtypes))
    assert ours == theirs


NAMED = {
    "AddV2": ([S("b", 3), S("b", 1)], {}, ("b", 3)),
    "ConcatV2": ([S("b"), S("n"), S(2), np.int32(0)], {}, ("n + b + 2",)),
    "Reshape": ([S("b", "2*n", 3), np.array([-1, 6], np.int32)], {}, ("b*n", 6)),
    "Tile": ([S("b"), np.array([3], np.int32)], {}, ("3*b",)),
    "Pad": ([S("b"), np.array([[1, 2]], np.int32)], {}, ("b + 3",)),
    "Split": ([np.int32(0), S("4*b")], {"num_split": 2}, ("2*b",)),
    "Pack": ([S("b"), S("b")], {"axis": 1}, ("b", 2)),
    "GatherV2": ([S("b", 3), S("n", dtype="int32"), np.int32(1)], {}, ("b", "n")),
    "MatMul": ([S("b", 3), S(3, "n")], {}, ("b", "n")),
    "Svd": ([S("b", "n")], {"compute_uv": False}, ("min(b, n)",)),
    "RFFT": ([S("b", 8), np.array([8], np.int32)], {}, ("b", 5)),
    "Slice": ([S("b + 2"), np.array([1], np.int32), np.array([-1], np.int32)], {}, ("b + 1",)),
}


@pytest.mark.parametrize("op", NAMED)
def test_names(op):
    operands, attributes, expected = NAMED[op]
    assert our_types(op, operands, attributes)[0][1] == expected


def test_nothing_imports_tensorflow():
    folder = pathlib.Path(signatures.__file__).parent
    files = [f for f in folder.rglob("*.py") if f.name != "from_tensorflow.py"]
    assert len(files) > 12
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [x.name for x in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                ours = name.startswith(("jax2tf._src.graph", "jax2tf._src.util"))
                assert ours or not name.startswith("jax2tf"), (file, name)
                assert "tensorflow" not in name, (file, name)
