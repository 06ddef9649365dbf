"""The registry of lowering rules, and what holds for all of the implementation's source."""

from __future__ import annotations

import ast
import pathlib

import pytest

import jax2tf
from harnesses.engine.cells import Selection
from harnesses.engine.graphs import XlaOpError
from harnesses.engine.judge import Judge
from jax2tf import compat
from jax2tf.lowering import rules

SOURCES = sorted(pathlib.Path(jax2tf.__file__).parent.rglob("*.py"))
PRIVATE = ("jax._src", "jaxlib", "tensorflow.python", "tensorflow.compiler")


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(rules, "_RULES", {})


@pytest.mark.usefixtures("registry")
class TestRegistry:
    def test_two_rules_for_one_primitive_name_both(self):
        @rules.register("p")
        def first(ctx, x):
            return x

        with pytest.raises(ValueError, match=r"'p' has two rules.*first.*second"):

            @rules.register("p", op_sets=(rules.XLA,))
            def second(ctx, x):
                return x

    def test_an_op_set_may_have_a_rule_of_its_own(self):
        for op_set in rules.OP_SETS:
            rules.register("p", op_sets=(op_set,))(lambda ctx, x: x)
        assert rules.find("p", rules.XLA) is not rules.find("p", rules.NO_XLA)
        assert rules.primitives(rules.XLA) == {"p"}

    def test_an_unknown_op_set(self):
        with pytest.raises(ValueError, match="unknown op set 'tflite'; there are xla, no_xla"):
            rules.register("p", op_sets=("tflite",))(lambda ctx, x: x)

    def test_an_unknown_param_is_listed(self):
        @rules.register("p")
        def rule(ctx, x, *, axis):
            return x

        found = rules.find("p", rules.XLA)
        assert rules.select_params(found, "p", {"axis": 1, "sharding": 3, "unset": None}) == {
            "axis": 1
        }
        with pytest.raises(TypeError, match="primitive 'p' does not know the params new_mode='x'"):
            rules.select_params(found, "p", {"axis": 1, "new_mode": "x"})


def test_what_is_lowered_with_xla_is_lowered_without():
    assert rules.primitives(rules.XLA) == rules.primitives(rules.NO_XLA)


@pytest.fixture
def no_xla_ops(monkeypatch):
    """Every op of XLA raises instead of running."""

    def refuse(*args, **kwargs):
        raise XlaOpError

    for name in dir(compat.xla_ops):
        if name.startswith("xla_"):
            monkeypatch.setattr(compat.xla_ops, name, refuse)


@pytest.mark.usefixtures("no_xla_ops")
@pytest.mark.parametrize(("lowering", "some"), [("no_xla", False), ("xla", True)])
def test_eager_mode_runs_ops_of_xla_only_where_it_may(lowering, some):
    # Where there is a graph, the judge looks for them in each cell.
    judge = Judge("jax2tf")
    cells = Selection(sample=60, lowering=(lowering,), mode=("eager",)).cells()
    used = [str(cell) for cell in cells if judge.run(cell).get("exception") == "XlaOpError"]
    assert bool(used) == some, used


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_private_names_stand_in_compat_alone(path):
    if path.name == "compat.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        private = [n for n in names if n.startswith(PRIVATE)]
        assert not private, f"{path}:{node.lineno} uses {private}"


def test_the_implementation_knows_nothing_of_its_judge():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in ("harnesses", "limitations", "reports")
