"""Graphs made without TensorFlow."""

from __future__ import annotations

import doctest
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from jax2tf._src.graph import dimensions
from jax2tf._src.graph import make as make_module
from jax2tf._src.graph.make import branch, constant, current, loop, make, making, scoped, switch
from jax2tf._src.graph.text import text_of


def test_documented():
    for module in (dimensions, make_module):
        assert doctest.testmod(module).failed == 0


def lines(graph):
    return textwrap.dedent(text_of(graph)).splitlines()


def test_computed_shapes():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", 3, 4))
        (shape,) = make("Shape", [x])
        index = [np.array([i], np.int32) for i in (0, 1, 1)]
        (rows,) = make("StridedSlice", [shape, *index], {"shrink_axis_mask": 1})
        (doubled,) = make("Mul", [rows, 2])
        (stated,) = make("Pack", [doubled, np.int32(-1)])
        (y,) = make("Reshape", [x, stated])
    assert y.shape == ("2*b", 6)
    assert doubled.sizes.item() == "2*b"
    assert stated.sizes.tolist() == ["2*b", -1]


def test_known_results_are_constants():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", 3))
        (shape,) = make("Shape", [x])
        index = [np.array([i], np.int32) for i in (1, 2, 1)]
        (columns,) = make("StridedSlice", [shape, *index], {"shrink_axis_mask": 1})
        (total,) = make("AddV2", [columns, 1])
        (numbers,) = make("Range", [0, total, 1])
        (floats,) = make("Cast", [numbers], {"DstT": np.dtype(np.float32)})
    assert columns.value == 3
    assert columns.value.dtype == np.int32
    np.testing.assert_array_equal(floats.value, np.arange(4, dtype=np.float32))
    assert shape.value is None


def test_without_folding_all_nodes_stay():
    with making(folds=False) as maker:
        (y,) = make("AddV2", [np.float32(1), np.float32(2)])
    assert [node.op for node in maker.nodes] == ["Const", "Const", "AddV2"]
    assert y.value is None


def test_constants_are_not_copied():
    array = np.ones((1000, 1000), np.float32)
    with making() as maker:
        x = constant(array)
        (y,) = make("MatMul", [x, maker.argument("w", np.float32, (1000, 2))])
    assert x.value is array
    assert y.shape == (1000, 2)


def test_attributes_are_complete():
    with making() as maker:
        x = maker.argument("x", np.float32, (2, 3))
        (y,) = make("Sum", [x, [0, 1]])
    assert y.node.attributes == {
        "keep_dims": False,
        "T": np.dtype(np.float32),
        "Tidx": np.dtype(np.int32),
    }
    assert y.node.inputs[1].dtype == np.int32


def test_names_are_unique_and_scoped():
    with making() as maker:
        x = maker.argument("x", np.float32, ())
        with scoped("Block"), scoped("Dense_0"):
            make("Sin", [x])
            make("Sin", [x])
        make("Sin", [x])
    assert [node.name for node in maker.nodes] == [
        "Block/Dense_0/Sin",
        "Block/Dense_0/Sin_1",
        "Sin",
    ]
    assert [node.scope for node in maker.nodes] == ["Block/Dense_0"] * 2 + [""]


def test_a_loop():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b",))
        scale = maker.argument("scale", np.float32, ())

        def step(i, unchanged, carried):
            (product,) = make("Mul", [carried, scale])
            (total,) = make("AddV2", [product, unchanged])
            return [*make("AddV2", [i, 1]), unchanged, total]

        first = constant(np.int32(0))
        i, same, y = loop(lambda i, *_: make("Less", [i, 5])[0], step, [first, x, x])
        graph = maker.graph([i, y])
    assert same is x
    assert lines(graph) == [
        "graph main(x : float32[b], scale : float32[])",
        "  Const = Const() {value: 0} : int32[]",
        "  While = While(Const, x) : int32[], float32[b]",
        "    cond(cond/0 : int32[], cond/2 : float32[b])",
        "      Less/y = Const() {value: 5} : int32[]",
        "      Less = Less(cond/0, Less/y) : bool[]",
        "      return Less",
        "    body(body/0 : int32[], body/2 : float32[b])",
        "      Mul = Mul(body/2, scale) : float32[b]",
        "      AddV2 = AddV2(Mul, x) : float32[b]",
        "      AddV2_1/y = Const() {value: 1} : int32[]",
        "      AddV2_1 = AddV2(body/0, AddV2_1/y) : int32[]",
        "      return AddV2_1, AddV2",
        "  return While, While:1",
    ]


def test_sizes_that_a_loop_changes_are_unknown():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", 3))

        def step(i, carried):
            return [*make("AddV2", [i, 1]), *make("ConcatV2", [carried, carried, 0])]

        first = constant(np.int32(0))
        _, y = loop(lambda i, *_: make("Less", [i, 5])[0], step, [first, x])
    assert y.shape == (None, 3)
    body = y.node.attributes["body"]
    assert [x.shape for x in body.inputs] == [(), (None, 3)]


def test_branches():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", 3))
        p = maker.argument("p", np.bool_, ())
        y, z = branch(
            p,
            lambda: [x, *make("Sum", [x, 0])],
            lambda: [*make("ConcatV2", [x, x, 0]), *make("Max", [x, 0])],
        )
    assert y.shape == (None, 3)
    assert z.shape == (3,)
    assert lines(maker.graph([y]))[1:4] == [
        "  If = If(p) : float32[?, 3], float32[3]",
        "    then()",
        "      Sum/reduction_indices = Const() {value: 0} : int32[]",
    ]


def test_a_known_predicate_takes_one_branch():
    with making() as maker:
        x = maker.argument("x", np.float32, ())
        (y,) = branch(constant(np.True_), lambda: make("Sin", [x]), lambda: make("Cos", [x]))
    assert y.node.op == "Sin"


def test_a_switch_is_a_chain():
    with making() as maker:
        x = maker.argument("x", np.float32, ())
        i = maker.argument("i", np.int32, ())
        (y,) = switch(i, [lambda op=op: make(op, [x]) for op in ("Sin", "Cos", "Tan")])
    text = text_of(maker.graph([y]))
    assert text.count(" = If(") == 2
    assert text.index("Sin(x)") < text.index("Cos(x)") < text.index("Tan(x)")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: make("AddV2", [x]), "AddV2: it takes 2 operands, not 1"),
        (lambda x: make("AddV2", [x, np.int32(1)]), "AddV2: y is int32, not float32"),
        (lambda x: make("Sum", [x, 0], {"keep": True}), "Sum: there is no attribute keep"),
        (lambda x: make("Cast", [x]), "Cast: the attribute DstT is missing"),
        (lambda x: make("LogicalNot", [x]), "LogicalNot: x is float32, not bool"),
        (lambda x: make("BitwiseAnd", [x, x]), "BitwiseAnd: the attribute T cannot be float32"),
        (lambda x: make("Sum", [x, 2]), "Sum: axis 2 is out of range for rank 2"),
        (lambda x: branch(x, list, list), r"If: the predicate is float32\[b, 3\], not bool\[\]"),
        (
            lambda x: loop(lambda x: make("Sum", [x, [0, 1]])[0], lambda x: [x], [x]),
            r"While: the condition gives float32\[\], not bool\[\]",
        ),
        (
            lambda x: loop(lambda x: x, lambda x: make("Sum", [x, 0]), [x]),
            r"While: a step takes float32\[b, 3\] and gives float32\[3\]",
        ),
    ],
)
def test_refusals(call, said):
    with making() as maker, pytest.raises(ValueError, match=f"^{said}"):
        call(maker.argument("x", np.float32, ("b", 3)))


def test_an_unknown_op():
    with making(), pytest.raises(NotImplementedError, match="lack the op XlaSort"):
        make("XlaSort", [1.0])


def test_outside_of_a_graph():
    with pytest.raises(RuntimeError, match="with making"):
        current()


def test_tensorflow_is_not_imported():
    program = """
        import importlib.util, sys, types
        folder = importlib.util.find_spec("jax2tf").submodule_search_locations
        package = types.ModuleType("jax2tf")
        package.__path__ = list(folder)
        sys.modules["jax2tf"] = package
        sys.modules["tensorflow"] = None
        import numpy as np
        from jax2tf._src.graph.make import make, making
        with making() as maker:
            make("Softmax", [maker.argument("x", np.float32, ("b", 3))])
        print(maker.nodes[-1].outputs[0].shape)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "('b', 3)", done.stderr[-2000:]
