"""The registry of lowering rules, and what holds for all of the implementation's source."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

import jax2tf
import jax2tf._src.lowering.rules
from harnesses.engine.graphs import XlaOpError
from harnesses.engine.judge import Judge
from harnesses.engine.selection import Selection
from jax2tf._src import compat
from jax2tf._src.lowering import registry
from jax2tf._src.targets import forms
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.target import Target

SOURCES = sorted(pathlib.Path(jax2tf.__file__).parent.rglob("*.py"))
LOWERING = [path for path in SOURCES if "lowering" in path.parts]
DTYPE_TABLES = "compute_dtypes.py"
PRIVATE = ("jax._src", "jaxlib", "tensorflow.python", "tensorflow.compiler")

XLA, STANDARD = TARGETS["xla"], TARGETS["tensorflow"]


@pytest.fixture
def no_rules(monkeypatch):
    monkeypatch.setattr(registry, "_RULES", {})


@pytest.mark.usefixtures("no_rules")
class TestRegistry:
    def test_two_rules_for_one_primitive_name_both(self):
        @registry.register("sin")
        def first(ctx, x):
            return x

        with pytest.raises(ValueError, match=r"'sin' has two rules.*first.*second"):

            @registry.register(lax.sin_p, op="")
            def second(ctx, x):
                return x

    def test_an_op_may_have_a_rule_of_its_own(self):
        registry.register("sin", op="XlaSin")(lambda ctx, x: x)
        assert registry.find(lax.sin_p, STANDARD) is None
        assert not registry.primitives(STANDARD)
        registry.register("sin")(lambda ctx, x: -x)
        assert registry.find(lax.sin_p, XLA).function("ctx", 1) == 1
        assert registry.find(lax.sin_p, STANDARD).function("ctx", 1) == -1
        assert registry.primitives(XLA) == registry.primitives(STANDARD) == {"sin"}

    def test_a_target_that_lacks_the_op_gets_the_other_rule(self):
        registry.register("sin", op="Sin")(lambda ctx, x: x)
        registry.register("sin")(lambda ctx, x: -x)
        for target, sign in (
            (STANDARD, 1),
            (Target("mine", lacks={"Sin": ()}), -1),
            (Target("mine", lacks={"Sin": ("float64",)}), 1),
            (Target("mine", ops={"Neg": ("float32",)}), -1),
            (Target("mine", ops={"Sin": ("float32",)}), 1),
        ):
            assert registry.find(lax.sin_p, target).function("ctx", 1) == sign
        lacks_double = Target("mine", lacks={"Sin": ("float64",)})
        for dtype, sign in (("float32", 1), ("float64", -1)):
            assert registry.find(lax.sin_p, lacks_double, dtype).function("ctx", 1) == sign

    def test_a_name_stands_for_the_primitive_of_jax_alone(self):
        registry.register("sin")(lambda ctx, x: x)
        assert registry.find(lax.sin_p, XLA) is not None
        assert registry.find(jex_core.Primitive("sin"), XLA) is None

    def test_an_unknown_name(self):
        with pytest.raises(ValueError, match="has no primitive 'sinus'"):
            registry.register("sinus")(lambda ctx, x: x)
        # A version of JAX that nobody has tried may have lost a primitive.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax, "__version_info__", (0, 13, 0))
            registry.register("sinus")(lambda ctx, x: x)
        assert not registry.primitives(XLA)

    def test_an_unknown_param_is_listed(self):
        @registry.register("sin")
        def rule(ctx, x, *, axis):
            return x

        found = registry.find(lax.sin_p, XLA)
        (eqn,) = jax.make_jaxpr(jnp.sin)(1.0).eqns
        eqn = eqn.replace(params={"axis": 1, "sharding": 3, "unset": None})
        assert registry.select_params(found, eqn) == {"axis": 1}
        eqn = eqn.replace(params={"axis": 1, "new_mode": "x"})
        with pytest.raises(TypeError, match="'sin' does not know the params new_mode='x'"):
            registry.select_params(found, eqn)


# Rules with **params, which pass over a param that they do not know.
TAKE_ALL = {
    # They call a jaxpr or return their operands: other params say where, how fast, or for whom.
    *("_closed_call", "_composite", "_custom_derivative_call", "_custom_partitioning", "_dce_sink"),
    *("_identities", "_identity", "_inspect_sharding", "_jit", "_remat"),
    *("_reshard", "_shard_map", "_sharding_constraint"),
    # Their params go on to a function that names each of them, or to JAX.
    *("_callback", "_reduce_window", "_reduce_window_monoid"),
    *("_select_and_gather_add", "_select_and_scatter", "_select_and_scatter_add"),
}


def test_rules_name_the_params_that_they_know():
    """All others raise for a param that a later JAX adds."""
    rules = (rule for of_op in registry._RULES.values() for rule in of_op.values())
    assert {rule.function.__name__ for rule in rules if rule.takes_all} == TAKE_ALL


ENGINES = re.compile(
    r"enable_xla|op_set|no_xla|litert|tflite|onnx|openvino|tfjs|tensorflow\.js|core ?ml",
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", LOWERING, ids=lambda path: path.name)
def test_rules_name_no_engine_and_no_set_of_ops(path):
    """What a target takes, and what it gets wrong, stands in _src/targets as data.

    Comments and docstrings may name an engine: they say why a line is there.
    """
    assert _named_in_code(path.read_text(encoding="utf-8")) == []


def test_an_engine_is_found_in_code_and_not_in_prose():
    source = '"""LiteRT."""\n\n\ndef f(x):\n    """ONNX."""\n    # OpenVINO\n    return x\n'
    assert _named_in_code(source) == []
    assert _named_in_code(source + 'g = f("litert")\n') == ["8: g = f('litert')"]
    assert _named_in_code("def of_onnx(x):\n    return x\n") == ["1: def of_onnx(x):"]


def _named_in_code(source: str) -> list[str]:
    """The lines of code that name an engine, with their numbers. Comments are in no syntax tree."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    named = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            line = ast.unparse(node).partition("\n")[0]
            if ENGINES.search(line):
                named.append(f"{node.lineno}: {line}")
    return named


def _dtype_maps(source: str) -> list[str]:
    """Tables from one dtype to another that a module writes out."""

    def is_dtype(node: ast.AST) -> bool:
        is_of_tf = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tf"
        return is_of_tf and isinstance(getattr(tf, node.attr, None), tf.DType)

    found = []
    for node in ast.walk(ast.parse(source)):
        values = node.values if isinstance(node, ast.Dict) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict.fromkeys":
            values = node.args[1:]
        if any(map(is_dtype, values)):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in LOWERING if path.name != DTYPE_TABLES],
    ids=lambda path: path.name,
)
def test_which_dtype_stands_for_which_is_said_in_one_place(path):
    assert not _dtype_maps(path.read_text()), f"lowering/emit/{DTYPE_TABLES} has such tables"


def test_a_table_of_dtypes_is_seen():
    assert _dtype_maps(
        "A = {'int8': tf.int32}\nB = dict.fromkeys(C, tf.int64)\nD = {1: tf.abs}"
    ) == [
        "line 1: {'int8': tf.int32}",
        "line 2: dict.fromkeys(C, tf.int64)",
    ]


def test_every_form_is_that_of_a_rule():
    comments = "".join(path.read_text(encoding="utf-8") for path in LOWERING)
    named = set(re.findall(r"# Form: (\w+)", comments))
    assert named == forms.FORMS.keys()


def test_what_is_lowered_with_xla_is_lowered_without():
    assert registry.primitives(XLA) == registry.primitives(STANDARD)


@pytest.fixture
def no_xla_ops(monkeypatch):
    """Every op of XLA raises instead of running."""

    def refuse(*args, **kwargs):
        raise XlaOpError

    for name in dir(compat.xla.xla_ops):
        if name.startswith("xla_"):
            monkeypatch.setattr(compat.xla.xla_ops, name, refuse)


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
    if "compat" in path.parts:
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


def test_what_may_be_of_any_type_has_a_name():
    """`jax2tf._src.util.typing` names what no type describes: a pytree, a dimension, a param."""
    uses = {
        str(path): sum(
            isinstance(node, ast.Name) and node.id == "Any"
            for node in ast.walk(ast.parse(path.read_text()))
        )
        for path in SOURCES
    }
    assert 0 < sum(uses.values()) <= 150, {path: n for path, n in uses.items() if n}


def test_what_an_id_or_an_address_names_is_kept():
    # In a key that holds it: an id alone is that of another object once its own is gone.
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        # The attribute `id` of a device is a number of JAX's, and no address.
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        if path.name != "identity.py":
            assert "id" not in names, path
            assert not {"__array_interface__", "ctypes"} & (names | attributes), path


def test_the_implementation_knows_nothing_of_its_judge():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in ("harnesses", "limitations", "reports")


def test_the_place_of_a_refusal_is_the_first_that_is_known():
    error = jax2tf.UnsupportedPrimitiveError("sin", "there is no sine", "leave it out", source="")
    assert "It comes from" not in str(error)
    error.locate("")
    assert "It comes from" not in str(error)
    error.locate("model.py:3")
    error.locate("train.py:7")
    error.locate("")
    assert "It comes from model.py:3. What to do: leave it out." in str(error)
    assert error.source == "model.py:3"


def test_no_nested_function_has_a_nested_function():
    found = {
        f"{path.name}: {'.'.join(names)}"
        for path in SOURCES
        for names in _nested(ast.parse(path.read_text(encoding="utf-8")))
        if len(names) > 2
    }
    assert found == set()


def test_a_method_is_not_nested_in_its_class():
    source = "class A:\n    def f(x):\n        def g(y):\n            def h(z): ...\n"
    assert list(_nested(ast.parse(source))) == [("f",), ("f", "g"), ("f", "g", "h")]


def _nested(node: ast.AST, around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of each function in the node, behind those of the functions around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            names = (*around, child.name)
            yield names
            yield from _nested(child, names)
        else:
            yield from _nested(child, around)
