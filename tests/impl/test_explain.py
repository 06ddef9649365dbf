"""`explain`: what a function becomes for each target, and all that it cannot become."""

from __future__ import annotations

import html.parser
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import op_types
from jax2tf import __main__ as command
from jax2tf._src.explain import known

X = jax.ShapeDtypeStruct((2, 4), jnp.float32)
TINY = jax2tf.Target("tiny", ops={"AddV2": ("float32",), "Mul": ("float32",)})


def _foreign(name):
    return lambda x: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def _with_refusals(x):
    first = _foreign("first")(x) + 1
    second = jax.jit(_foreign("second"))(first)
    return jax.lax.fori_loop(0, 3, lambda i, y: _foreign("third")(y) * 2, second)


def test_all_that_is_refused_is_told_at_once():
    explanation = jax2tf.explain(_with_refusals, X)
    for report in explanation.reports:
        assert not report.converts
        said = [(r.primitive, r.reason.split("'")[1]) for r in report.refusals]
        assert said == [("ffi_call", name) for name in ("first", "second", "third")]
        assert all(__file__ in r.source for r in report.refusals)
        assert all("pure_callback" in r.remedy for r in report.refusals)
    assert {report.target for report in explanation.reports} == set(jax2tf.TARGETS)


def test_what_is_told_is_what_convert_says():
    with pytest.raises(jax2tf.UnsupportedPrimitiveError) as caught:
        jax2tf.convert(_with_refusals)(np.zeros((2, 4), np.float32))
    refusal = jax2tf.explain(_with_refusals, X, target="xla")["xla"].refusals[0]
    for part in (refusal.primitive, refusal.reason, refusal.remedy, refusal.source):
        assert part in str(caught.value)


def test_nothing_runs():
    ran = []

    def told(x):
        jax.debug.callback(lambda: ran.append(1))
        return x + 1

    assert jax2tf.explain(told, X, target="xla")["xla"].converts
    assert not ran


def test_uses_in_one_place_are_counted():
    def layers(x):
        for _ in range(2):
            x = jnp.tanh(x)
        return x + 1

    explanation = jax2tf.explain(layers, X, target=TINY)
    (refusal,) = explanation["tiny"].refusals
    assert (refusal.primitive, refusal.count) == ("tanh", 2)
    assert ", 2 times" in str(explanation)
    assert "Tanh of float32, and the target 'tiny' takes no Tanh" in refusal.reason


def _model(x):
    with jax.named_scope("body"):
        y = jax.nn.softmax(jnp.tanh(x))
    with jax.named_scope("head"):
        return jnp.sort(y, axis=-1)


@pytest.mark.parametrize("target", ["xla", "tensorflow", "litert"])
def test_ops_are_those_of_the_graph(target):
    report = jax2tf.explain(_model, X, target=target)[target]
    function = tf.function(
        jax2tf.convert(_model, target=target, with_gradient=False), autograph=False
    )
    counts = op_types(function.get_concrete_function(tf.TensorSpec([2, 4])).graph)
    around = {"Const", "Identity", "Placeholder", "NoOp"}
    # What nothing reads (a BroadcastTo that a select does itself) is no op of the function.
    in_graph = {op: n for op, n in counts.items() if op not in around}
    assert report.ops.keys() <= in_graph.keys()
    assert all(count <= in_graph[op] for op, count in report.ops.items())
    assert report.size == sum(report.lines.values()) == sum(report.scopes.values())
    assert set(report.scopes) == {"body", "head"}
    assert all(__file__ in line for line in report.lines)


def test_what_a_function_of_jax_binds_comes_from_the_line_that_calls_it():
    lines = jax2tf.explain(lambda x: jnp.sort(x), X, target="tensorflow")["tensorflow"].lines
    assert len(lines) == 1
    assert __file__ in next(iter(lines))


def test_shapes_that_only_the_run_knows():
    explanation = jax2tf.explain(
        lambda x, w: x @ w["k"][0],
        tf.TensorSpec([None, 4], tf.float32),
        w={"k": [jax.ShapeDtypeStruct((4, 3), jnp.float32)]},
        polymorphic_shapes={"x": "b, _"},
        target="xla",
    )
    assert explanation.dynamic == ("x: float32[b,4]", "result 0: float32[b,3]")


class TestLimitations:
    def test_they_touch_what_uses_the_primitive_in_the_dtype(self):
        (in_float32, in_int32) = (
            jax2tf.explain(
                lambda x: jnp.bitwise_and(x, x) if x.dtype == jnp.int32 else jnp.sqrt(x),
                jax.ShapeDtypeStruct((2,), dtype),
                target="litert",
            )["litert"].limitations
            for dtype in (jnp.float32, jnp.int32)
        )
        assert [entry.primitive for entry in in_float32] == ["sqrt"]
        assert "LiteRT's square root of the largest number" in in_float32[0].reason
        assert not any(entry.primitive == "sqrt" for entry in in_int32)

    def test_those_of_one_engine_are_not_those_of_another(self):
        argument = jax.ShapeDtypeStruct((2,), jnp.float32)
        explanation = jax2tf.explain(jnp.sqrt, argument, target=["xla", "litert"])
        assert not explanation["xla"].limitations
        assert explanation["litert"].limitations
        assert "1 known limitation may touch it" in str(explanation)
        assert "The limitations: found[target].limitations" in str(explanation)

    def test_every_entry_has_a_place_a_dtype_and_a_reason(self):
        places = {"xla", "no_xla", "gradient", "poly", "stablehlo", *jax2tf.TARGETS}
        for entry, where in known._ledger():
            assert entry.primitive
            assert entry.dtypes
            assert entry.reason
            assert where <= places
            assert where


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_needs_nothing_from_outside():
    explanation = jax2tf.explain(_with_refusals, X, target=["xla", "litert"])
    page = _Page()
    page.feed(explanation.html())
    text = " ".join(page.text)
    for part in ("_with_refusals", "ffi_call", "first", "pure_callback", "does not convert"):
        assert part in text
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href")]


def test_names_of_the_user_are_text_on_the_page():
    def named(x):
        with jax.named_scope("a<b>&c"):
            return jnp.sin(x)

    page = jax2tf.explain(named, X, target="xla").html()
    assert "<b>" not in page
    assert "a&lt;b&gt;&amp;c" in page


class TestBadInput:
    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match=r"jax2tf.explain: fun_jax should be a function, got i"):
            jax2tf.explain(3, X)

    def test_an_unknown_target(self):
        with pytest.raises(ValueError, match="target should be one of xla, tensorflow"):
            jax2tf.explain(jnp.sin, X, target=["xla", "phone"])

    def test_a_target_that_was_not_asked_about(self):
        with pytest.raises(KeyError, match=r"not asked about 'onnx'; there are xla"):
            jax2tf.explain(jnp.sin, X, target="xla")["onnx"]

    def test_an_argument_that_is_no_array(self):
        with pytest.raises(TypeError, match="argument x"):
            jax2tf.explain(lambda x: x, "text", target="xla")


def test_the_ledger_in_the_package_is_json():
    entries = json.loads((known.FILE).read_text())
    assert len(entries) > 100


class TestTheCommand:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(sys.modules, "models", sys.modules[__name__])

        def call(*arguments):
            status = command.main(["explain", *arguments])
            said = capsys.readouterr()
            return status, said.out, said.err

        return call

    def test_a_function_and_its_page(self, run):
        status, out, _ = run(
            *("models:_model", "--input", "x=b,4", "--target", "litert", "--target", "xla"),
            *("--html", "page.html"),
        )
        assert status == 0
        assert out.startswith("_model(x: float32[b,4]) -> float32[b,4]\n  litert ")
        with open("page.html", encoding="utf-8") as page:
            assert page.read().startswith("<!doctype html>")

    def test_parameters_of_a_file(self, run):
        np.savez("w.npz", w=np.ones((4, 2), np.float32))
        status, out, _ = run(
            "models:_with_parameters", "--params", "w.npz", "--input", "b,4", "--target", "onnx"
        )
        assert status == 0
        assert "x: float32[b,4]" in out

    def test_what_does_not_convert_is_the_status(self, run):
        status, out, _ = run("models:_with_refusals", "--input", "2,4", "--target", "xla")
        assert status == 1
        assert "ffi_call" in out

    def test_a_function_that_is_not_there(self, run):
        status, out, err = run("models:nothing", "--input", "2,4")
        assert (status, out) == (1, "")
        assert "there is no 'nothing' in models" in err


def _with_parameters(params, x):
    return x @ params["w"]


def test_the_page_says_how_many_rows_it_leaves_out():
    def of_lines(n):
        scope: dict = {"jnp": jnp}
        lines = "\n".join(f"    x = x + {i}" for i in range(n))
        exec(compile(f"def f(x):\n{lines}\n    return x", "many.py", "exec"), scope)
        return jax2tf.explain(scope["f"], X, target="xla").html()

    assert "10 more" in of_lines(50)
    assert " more<" not in of_lines(3)


class TestPlanCommand:
    """`python -m jax2tf plan`: the equations after each pass, and what lowers each of them."""

    @pytest.fixture
    def run(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "models", sys.modules[__name__])

        def call(*arguments):
            status = command.main(["plan", *arguments])
            said = capsys.readouterr()
            return status, said.out, said.err

        return call

    def test_passes_that_change_something_and_who_lowers_what(self, run):
        status, out, _ = run("models:_model", "--input", "2,4", "--target", "litert")
        assert status == 0
        stages, _, lowered = out.partition("\nlowered by:\n")
        heads = [line for line in stages.splitlines() if line.endswith(":")]
        assert heads == ["traced:", "after idioms:", "after unread equations:"]
        assert stages.startswith("_model, target litert\n\ntraced:\n  a:float32[2,4] = tanh b\n")
        rows = [line.split() for line in lowered.splitlines()]
        assert ["tanh", "->", "float32[2,4]", "rule:"] in [row[:4] for row in rows]
        softmax = next(row for row in rows if row[0] == "div")
        assert softmax[3:] == ["idioms:", "lowering.passes.idioms.table._softmax"]

    def test_equations_inside_stand_further_in(self, run):
        _, out, _ = run("models:_with_a_loop", "--input", "2:uint32", "--target", "litert")
        assert "\n      " in out.partition("lowered by")[0]
        assert "    mul -> uint32[2]" in out
        assert "legalize: emulated dtypes: lowering.passes.legalize." in out

    def test_what_is_refused(self, run):
        status, out, _ = run("models:_with_refusals", "--input", "2,4")
        assert status == 1
        assert out.count("refused: it calls compiled code") == 3

    def test_a_target_that_is_not_there(self, run, capsys):
        with pytest.raises(SystemExit) as exit:
            run("models:_model", "--input", "2,4", "--target", "abacus")
        assert exit.value.code == 2
        assert "--target: invalid choice: 'abacus'" in capsys.readouterr().err

    def test_open_dimensions(self, run):
        status, out, _ = run("models:_model", "--input", "b,4", "--target", "onnx")
        assert status == 0
        assert "tanh -> float32[b,4]" in out


def _with_a_loop(x):
    return jax.lax.fori_loop(0, 3, lambda i, y: y * y, x)
