"""`locate`: the equation at which a file, or a graph, begins to differ from JAX."""

from __future__ import annotations

import html.parser
import json

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import jax2tf
from jax2tf import __main__ as command
from jax2tf._src import ops
from jax2tf._src.locate import onnx_differences
from jax2tf._src.locate.answer import Party
from jax2tf._src.lowering import registry

RNG = np.random.default_rng(0)
PARAMS = {
    "scale": RNG.normal(size=8).astype(np.float32),
    "w": [RNG.normal(size=(8, 8)).astype(np.float32) / 2 for _ in range(3)],
}
SPECS = "b, 8"
ROW = np.zeros((1, 8), np.float32)


def _norm(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def model(params, x):
    for w in params["w"]:
        x = x + jnp.sin(_norm(x, params["scale"]) @ w)
    return {"y": jax.nn.softmax(x)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("locate") / "model.onnx"
    jax2tf.export(model, PARAMS, SPECS, path, progress=False)
    return path


def _node(proto, op, number):
    return [node for node in proto.graph.node if node.op_type == op][number]


def _exchanged(proto):
    _node(proto, "Sin", 1).op_type = "Cos"


def _dropped(proto):
    node = _node(proto, "Sin", 1)
    for other in proto.graph.node:
        names = [node.input[0] if name == node.output[0] else name for name in other.input]
        other.input[:] = names
    proto.graph.node.remove(node)


def _with_another_axis(proto):
    _node(proto, "Softmax", 0).attribute[0].i = 0


def _with_another_constant(proto):
    _changed(proto, _node(proto, "MatMul", 1).input[1], lambda array: array * 1.01)


def _with_a_nan(proto):
    def change(array):
        array[2, 3] = np.nan
        return array

    _changed(proto, _node(proto, "MatMul", 1).input[1], change)


def _changed(proto, name, change):
    tensor = next(t for t in proto.graph.initializer if t.name == name)
    array = change(onnx.numpy_helper.to_array(tensor).copy())
    tensor.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float32), name))


def _rounded(proto):
    node = _node(proto, "Sin", 1)
    to = onnx.TensorProto
    half = onnx.helper.make_node("Cast", ["sin"], ["half"], to=to.FLOAT16)
    back = onnx.helper.make_node("Cast", ["half"], [node.output[0]], to=to.FLOAT)
    node.output[0] = "sin"
    place = list(proto.graph.node).index(node) + 1
    proto.graph.node.insert(place, half)
    proto.graph.node.insert(place + 1, back)


@pytest.mark.parametrize(
    ("fault", "primitive", "said"),
    [
        (_exchanged, "sin", "is Cos"),
        (_dropped, "sin", "missing"),
        (_with_another_axis, "div", "axis is 0 for -1"),
        (_with_another_constant, "dot_general", "differs in 64 of 64 elements"),
        (_with_a_nan, "dot_general", "[2, 3] is nan"),
        (_rounded, "sin", "sin"),
    ],
)
def test_a_fault_in_a_file_is_found(path, tmp_path, fault, primitive, said):
    proto = onnx.load(path)
    fault(proto)
    file = tmp_path / "faulty.onnx"
    onnx.save(proto, file)
    before = file.read_bytes()
    found = jax2tf.locate(model, PARAMS, SPECS, file)
    assert (found.party, found.primitive) == (Party.FILE, primitive)
    assert f"{__file__}:" in found.source
    assert said in found.reason
    assert file.read_bytes() == before


def test_the_first_of_several_faults_is_named_before_the_largest(path):
    first, second, third = PARAMS["w"]
    found = jax2tf.locate(model, {**PARAMS, "w": [first, second * 1.01, third * 1.5]}, SPECS, path)
    assert (found.layer, [line.layer for line in found.also]) == ("['w'][1]", ["['w'][2]"])
    assert f"also wrong: {found.also[0].index}, ['w'][2], {__file__}:" in str(found)
    assert "beyond the tolerance" in str(found)


def test_the_parameter_that_the_equation_reads_and_its_callers_are_told(path):
    found = jax2tf.locate(model, {**PARAMS, "scale": PARAMS["scale"] * 1.1}, SPECS, path)
    assert found.layer == "['scale']"
    (caller,) = found.equation.callers
    assert caller.startswith(f"{__file__}:")
    assert caller.endswith("(model)")
    assert f"called at:  {caller}" in str(found)
    assert f"from {caller}" in found.html()


def test_the_first_of_results_with_the_same_numbers_is_named(tmp_path):
    def twice(x):
        # The file has one op for both.
        return {"y": jnp.cos(jnp.tanh(x)) + jnp.sin(jnp.tanh(x))}

    path = tmp_path / "model.onnx"
    jax2tf.export(twice, None, "2, 8", path, progress=False, verify=False)
    proto = onnx.load(path)
    node = _node(proto, "Tanh", 0)
    rounded = onnx.helper.make_node("Mul", ["exact", "factor"], [node.output[0]])
    node.output[0] = "exact"
    proto.graph.node.insert(list(proto.graph.node).index(node) + 1, rounded)
    factor = onnx.numpy_helper.from_array(np.float32(1 + 1e-6), "factor")
    proto.graph.initializer.append(factor)
    onnx.save(proto, path)
    found = jax2tf.locate(twice, None, "2, 8", path)
    assert (found.party, found.primitive) == (Party.FILE, "tanh")
    assert found.equation.index == 0


def test_a_right_file_has_no_wrong_equation(path):
    found = jax2tf.locate(model, PARAMS, SPECS, path)
    assert (found.agrees, found.equation, found.party) == (True, None, Party.NOBODY)
    assert sum(line.difference is not None for line in found.lines) > 10


@pytest.mark.parametrize("target", ["graph", "compiled", "eager"])
def test_a_wrong_rule_is_found(monkeypatch, target):
    assert jax2tf.locate(model, PARAMS, SPECS, target).equation is None
    rules = registry._RULES[lax.sin_p]
    wrong = registry.Rule(lambda ctx, x: ops.raw.Cos(x=x), frozenset(), False, False)
    monkeypatch.setitem(registry._RULES, lax.sin_p, dict.fromkeys(rules, wrong))

    def own(params, x):
        return model(params, x * 1.0)

    found = jax2tf.locate(own, PARAMS, SPECS, target)
    assert (found.party, found.primitive) == (Party.LOWERING, "sin")
    assert "bind(x0" in found.program


def test_the_inputs_that_are_given_are_run(path):
    found = jax2tf.locate(model, PARAMS, SPECS, path, np.zeros((3, 8), np.float32))
    assert found.agrees


@pytest.mark.parametrize(
    ("arguments", "error", "parts"),
    [
        (("b, 9",), ValueError, ("b, 8]", "b, 9]", "exported with")),
        (("b, 8:int32",), ValueError, ("int32",)),
        ((SPECS, "none.onnx"), FileNotFoundError, ("none.onnx", "compiled")),
        ((SPECS, "no.txt"), FileNotFoundError, ("no.txt",)),
        ((SPECS, None, np.zeros((3, 7))), ValueError, ("jax2tf.locate: inputs", "b, 8", "(3, 7)")),
        ((SPECS, None, {"z": ROW}), ValueError, ("inputs has 'z'", "takes 'x'", "(x,)")),
        ((SPECS, None, {"x": ROW}), ValueError, ("inputs is a dict", "(x,)", "{'x': ...}")),
        (({"x": SPECS}, None, ROW), ValueError, ("1 value without a name", "{'x': ...}")),
        ((SPECS, None, (ROW, ROW)), ValueError, ("inputs has 2 values", "takes 'x'", "(x,)")),
        (([{"a": SPECS}], None, [{"c": ROW}]), ValueError, ("arrays x['c']", "of x['a']")),
    ],
)
def test_what_cannot_be_compared_is_refused(path, arguments, error, parts):
    specs, other, inputs = (*arguments, None, None)[:3]
    with pytest.raises(error) as caught:
        jax2tf.locate(lambda x: x, None, specs, other or path, inputs)
    assert all(part in str(caught.value) for part in parts)


def test_a_dict_of_numbers_from_a_file_of_parameters_is_explained(tmp_path):
    np.savez(tmp_path / "w.npz", **{"w/0": np.eye(8), "w/1": np.eye(8), "scale": np.ones(8)})
    with pytest.raises(TypeError) as caught:
        jax2tf.locate(model, tmp_path / "w.npz", SPECS, "graph")
    (note,) = caught.value.__notes__[-1:]
    assert "[params['w'][str(i)] for i in range(2)]" in note


def test_a_broken_file_is_refused(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(jax2tf.ExportError, match=r"broken\.onnx.*cannot be read as 'onnx'"):
        jax2tf.locate(model, PARAMS, SPECS, broken)


@pytest.mark.parametrize("name", ["a.onnx", "a.tflite", "a.xml", "a/saved_model.pb"])
def test_an_empty_file_is_told(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(jax2tf.ExportError, match=r"is empty \(0 bytes\)"):
        jax2tf.locate(lambda x: x, None, SPECS, tmp_path / name.partition("/")[0])


def test_a_file_that_holds_nothing_of_the_function_is_told(path):
    def other(params, x):
        x = jnp.exp(jnp.cosh(jnp.cos(x) @ params["w"][0]) @ params["w"][1])
        return {"y": jnp.log(x.cumsum(1))}

    found = jax2tf.locate(other, PARAMS, SPECS, path)
    assert (found.party, found.equation) == (Party.FILE, None)
    assert "looks like the file of another function" in str(found)
    with pytest.raises(ValueError, match=r"its outputs are y: float32\[2, 8\], and the function's"):
        jax2tf.locate(lambda p, x: {"y": other(p, x)["y"][:, 1:]}, PARAMS, SPECS, path)


def test_a_file_with_the_same_ops_under_other_names_is_compared(path, tmp_path):
    proto = onnx.load(path)
    _with_another_axis(proto)
    outputs = {output.name for output in proto.graph.output}
    made = [name for node in proto.graph.node for name in node.output if name not in outputs]
    # As with another number of equal parts, a name is that of the part after it.
    onnx_differences.rename(proto.graph, dict(zip(made, [*made[1:], "last"], strict=True)))
    onnx.save(proto, tmp_path / "renamed.onnx")
    found = jax2tf.locate(model, PARAMS, SPECS, tmp_path / "renamed.onnx")
    assert found.primitive == "div"
    assert found.reason.endswith("axis is 0 for -1")


@pytest.mark.parametrize(
    ("array", "other", "said"),
    [
        (np.float32([[1, 0, 3], [4, 0, 6]]), np.float32([[1, 2, 3], [4, 5, 6]]), "of column 1)"),
        (np.float32([[1, 2], [0, 0]]), np.float32([[1, 2], [3, 4]]), "of row 1)"),
        (np.float32([[1, 2], [0, 4]]), np.float32([[1, 2], [3, 4]]), "1 of 4 elements, ["),
        (np.int64([2, 8]), np.int64([-1, 8]), "[0] is 2 for -1 (an open size)"),
    ],
)
def test_the_place_of_a_difference_is_told(array, other, said):
    texts = []
    for value in (array, other):
        node = onnx.helper.make_node("Identity", ["c"], ["y"], "n")
        c = onnx.numpy_helper.from_array(value, "c")
        y = onnx.ValueInfoProto(name="y")
        texts.append(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [y], [c])))
    (found,) = onnx_differences.between(*texts)
    assert said in found.text
    assert found.is_of_sizes == ("open" in said)


def test_a_file_of_another_program_is_told(path):
    found = jax2tf.locate(lambda params, x: {"y": x[:, ::-1] * 2.5}, PARAMS, SPECS, path)
    assert found.party is Party.FILE
    assert "another program" in found.remedy


def test_the_page_and_the_overlay_have_all_equations(path):
    found = jax2tf.locate(model, PARAMS, SPECS, path)
    page = found.html()
    html.parser.HTMLParser().feed(page)
    assert "http" not in page
    assert page.count("<tr class=") == len(found.lines)
    (data,) = json.loads(found.overlay()).values()
    names = {name for node in onnx.load(path).graph.node for name in node.output}
    assert data["results"].keys() <= names
    assert len(data["results"]) > 10


def function(x):
    return jnp.tanh(x)


def test_the_command_prints_the_answer(tmp_path, capsys):
    path = str(tmp_path / "tanh.onnx")
    jax2tf.export(function, None, "b, 4", path, progress=False)
    page = tmp_path / "page.html"
    arguments = ["locate", f"{__name__}:function", "-i", "b,4", "--file", path]
    assert command.main([*arguments, "--html", str(page)]) == 0
    assert "no equation differs" in capsys.readouterr().out
    assert "tanh" in page.read_text()
    assert command.main(["locate", f"{__name__}:function", "-i", "b,5", "--file", path]) == 1
    assert "python -m jax2tf locate: jax2tf.locate: the file" in capsys.readouterr().err


def test_a_failed_verification_says_the_line(monkeypatch, tmp_path):
    def own(params, x):
        return model(params, x * 2.0)

    jax2tf.export(own, PARAMS, SPECS, tmp_path / "right.onnx", progress=False)
    rules = registry._RULES[lax.sin_p]
    wrong = registry.Rule(lambda ctx, x: ops.raw.Cos(x=x), frozenset(), False, False)
    monkeypatch.setitem(registry._RULES, lax.sin_p, dict.fromkeys(rules, wrong))

    def another(params, x):
        return model(params, x * 3.0)

    arguments = (another, PARAMS, SPECS, tmp_path / "wrong.onnx")
    with pytest.raises(jax2tf.VerificationError, match=rf"at sin, {__file__}:") as caught:
        jax2tf.export(*arguments, progress=False)
    assert caught.value.located.party is Party.LOWERING
    with pytest.raises(jax2tf.VerificationError) as caught:
        jax2tf.export(*arguments, progress=False, locate=False)
    assert caught.value.located is None
    assert "locate" not in str(caught.value)


@pytest.mark.parametrize("changes", [True, False])
def test_a_function_that_changes_at_each_trace_is_refused(changes, tmp_path):
    rng = np.random.default_rng(0)

    def noisy(params, x):
        return {"y": x @ params + (rng.normal(size=3).astype(np.float32) if changes else 0)}

    given, other = np.eye(4, 3, dtype=np.float32), 2 * np.eye(4, 3, dtype=np.float32)
    file = tmp_path / "noisy.onnx"
    jax2tf.export(noisy, given, "b, 4", file, verify=False, progress=False)
    if changes:
        words = r"^jax2tf\.locate: .* two traces differ in output 'y', .* parameters or inputs;"
        with pytest.raises(ValueError, match=words):
            jax2tf.locate(noisy, given, "b, 4", file)
        # Both sides of a graph have the same trace.
        assert jax2tf.locate(noisy, given, "b, 4", "graph").agrees
    else:
        assert jax2tf.locate(noisy, other, "b, 4", file).party is Party.FILE


def _loops(params, x):
    def step(carry, row):
        carry = jnp.tanh(carry @ params["w"][0] + row)
        return jnp.where(carry.sum() > 0, jnp.sin(carry), carry), carry.sum()

    carry, sums = lax.scan(step, x, jnp.ones((5, 8)))
    carry = lax.while_loop(lambda c: c.sum() < 40, lambda c: c + 1 + jnp.cos(c) / 2, carry)
    return lax.cond(carry.sum() > 0, lambda c: jnp.exp(-c), lambda c: c, carry), sums


@pytest.mark.parametrize(
    ("primitive", "title"),
    [("tanh", "step 0 of scan"), ("cos", "step 0 of while"), ("exp", "branch 1")],
)
def test_the_step_of_a_loop_and_the_equation_of_its_body_are_found(monkeypatch, primitive, title):
    assert jax2tf.locate(_loops, PARAMS, "1, 8", "graph").equation is None
    wrong_primitive = getattr(lax, f"{primitive}_p")
    rules = registry._RULES[wrong_primitive]
    wrong = registry.Rule(lambda ctx, x: ops.raw.Sigmoid(x=x), frozenset(), False, False)
    monkeypatch.setitem(registry._RULES, wrong_primitive, dict.fromkeys(rules, wrong))

    def own(params, x):
        return _loops(params, x * 1.0)

    found = jax2tf.locate(own, PARAMS, "1, 8", "graph")
    assert (found.party, found.primitive) == (Party.LOWERING, primitive)
    assert found.step[-1] == title
    assert f"{__file__}:" in found.source


def test_a_loop_that_carries_keys_is_followed(monkeypatch, tmp_path):
    """Its body is a file whose inputs are the data of the keys."""
    wrong = registry.Rule(lambda ctx, x: ops.raw.Sigmoid(x=x), frozenset(), False, False)
    rules = registry._RULES[lax.tanh_p]
    monkeypatch.setitem(registry._RULES, lax.tanh_p, dict.fromkeys(rules, wrong))

    def walk(x):
        def step(carry, _):
            key, x = carry
            key, own = jax.random.split(key)
            return (key, jnp.tanh(x + jax.random.normal(own, x.shape))), None

        return lax.scan(step, (jax.random.key(0), x), length=3)[0][1]

    jax2tf.export(walk, None, "4", tmp_path / "walk.onnx", verify=False)
    found = jax2tf.locate(walk, None, "4", tmp_path / "walk.onnx")
    assert (found.primitive, found.step[-1]) == ("tanh", "step 0 of scan")


@pytest.mark.parametrize("suffix", [".tflite", ".xml", ""])
def test_files_of_other_engines_tell_their_tensors(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    jax2tf.export(model, PARAMS, SPECS, path, progress=False)
    found = jax2tf.locate(model, PARAMS, SPECS, path)
    assert (found.agrees, found.equation) == (True, None)
    assert sum(line.difference is not None for line in found.lines) > 10
    first, second, third = PARAMS["w"]
    trained = {**PARAMS, "w": [first, second * 1.01, third]}
    found = jax2tf.locate(model, trained, SPECS, path)
    assert (found.party, found.primitive) == (Party.FILE, "dot_general")
    assert found.layer == "['w'][1]"
    broken = tmp_path / f"broken{suffix}"
    if suffix:
        broken.write_bytes(b"not a model")
    else:
        broken.mkdir()
        (broken / "saved_model.pb").write_bytes(b"not a model")
    with pytest.raises(jax2tf.ExportError, match="cannot be read as"):
        jax2tf.locate(model, PARAMS, SPECS, broken)


def test_a_saved_model_tells_its_calls_and_loops(tmp_path):
    def looped(params, x):
        x = lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ params["w"][0]), x)
        return {"y": x * params["scale"]}

    path = tmp_path / "saved"
    jax2tf.export(looped, PARAMS, SPECS, path, progress=False)
    assert jax2tf.locate(looped, PARAMS, SPECS, path).equation is None

    def other(params, x):
        x = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c @ params["w"][0]), x)
        return {"y": x * params["scale"]}

    found = jax2tf.locate(other, PARAMS, SPECS, path)
    assert (found.party, found.primitive) == (Party.FILE, "scan")
    assert "tanh" in found.reason or "Sin" in found.reason


def test_an_engine_whose_kernel_is_wrong_is_named(tmp_path):
    path = tmp_path / "sine.tflite"
    jax2tf.export(jnp.sin, None, "3", path, progress=False, verify=False)
    found = jax2tf.locate(jnp.sin, None, "3", path, np.float32([0.5, 1e10, 1]))
    assert (found.party, found.primitive) == (Party.ENGINE, "sin")
    assert "1e+10" in found.program or "10000000000.0" in found.program


_SMALL = [RNG.normal(size=(4, 32)).astype(np.float32) / 9 for _ in range(3)]
_LARGE = {"w": [RNG.normal(size=(32, 32)).astype(np.float32) / 4 for _ in range(3)]}


def _network(params, x):
    for w in params["w"]:
        x = x + jnp.tanh(x @ w)
    return {"y": jax.nn.softmax(x)}


@pytest.mark.parametrize(
    ("suffix", "options", "least", "most"),
    [
        (".onnx", {"quantize": "int4"}, 15, 30),
        (".tflite", {"quantize": "int8", "representative_data": _SMALL}, 25, 50),
        (".xml", {"quantize": "int8_weights"}, 35, 60),
    ],
)
def test_a_file_with_fewer_bits_has_a_table_of_its_layers(tmp_path, suffix, options, least, most):
    path = tmp_path / f"model{suffix}"
    jax2tf.export(_network, _LARGE, "b, 32", path, progress=False, **options)
    found = jax2tf.locate(_network, _LARGE, "b, 32", path, **options)
    assert (found.agrees, found.party) == (True, Party.NOBODY)
    assert [layer.name for layer in found.layers] == [f"['w'][{i}]" for i in range(3)]
    assert all(least < layer.own < most for layer in found.layers)
    assert sum(layer.share for layer in found.layers) == pytest.approx(1)
    if "representative_data" in options:
        found = jax2tf.locate(_network, _LARGE, "b, 32", path, _SMALL[0] * 30, **options)
        worst = max(found.layers, key=lambda layer: layer.share)
        assert (found.party, found.equation.index) == (Party.BITS, worst.first)
        assert found.layers[0].saturated > 0.2
    assert "signal to noise" in str(found)
    assert found.html().count('<tr class="layer ') == len(found.layers)
    assert json.loads(found.json())["layers"][0]["name"] == found.layers[0].name


def test_a_layer_that_is_wrong_beyond_its_bits_is_told(tmp_path):
    path = tmp_path / "model.onnx"
    jax2tf.export(_network, _LARGE, "b, 32", path, progress=False, quantize="int8_weights")
    proto = onnx.load(path)
    _node(proto, "Tanh", 1).op_type = "Sin"
    onnx.save(proto, path)
    found = jax2tf.locate(_network, _LARGE, "b, 32", path, quantize="int8_weights")
    assert (found.party, found.primitive) == (Party.FILE, "tanh")
    assert max(found.layers, key=lambda layer: layer.share).name == "['w'][1]"


def test_complex_equations_are_followed_to_engines_without_complex_numbers(monkeypatch, tmp_path):
    def phases(params, x):
        z = jnp.exp(lax.complex(x, jnp.tanh(x * 2)) * 0.3)
        return {"y": jnp.abs(z * lax.complex(params["scale"], params["scale"]) + 1)}

    rules = registry._RULES[lax.cos_p]
    wrong = registry.Rule(lambda ctx, x: ops.raw.Sin(x=x), frozenset(), False, False)
    monkeypatch.setitem(registry._RULES, lax.cos_p, dict.fromkeys(rules, wrong))
    with pytest.raises(jax2tf.VerificationError) as caught:
        jax2tf.export(phases, PARAMS, SPECS, tmp_path / "phases.onnx", progress=False)
    found = caught.value.located
    assert (found.party, found.primitive) == (Party.LOWERING, "exp")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(jax2tf.VerificationError):
        exec(compile(found.program, "shown.py", "exec"), {})
