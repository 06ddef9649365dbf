"""The benchmark: its arithmetic, and a quick run against implementations made for the purpose."""

import json
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from packaging.version import Version

from harnesses.engine.adapter import Adapter
from reports import rendering
from reports.benchmarks import bench, files
from reports.benchmarks.bench import count_equations, count_nodes
from reports.benchmarks.timing import Quartiles, paired
from reports.benchmarks.workloads import workloads

HANDWRITTEN = "tests.reports.handwritten"


def test_a_ratio_is_taken_within_a_round():
    # Everything slows down threefold in the second round; the ratios do not.
    jax_times, tf_times = iter([1.0, 3.0, 1.0]), iter([2.0, 6.0, 4.0])
    result = paired(3, {"jax": lambda: next(jax_times), "graph": lambda: next(tf_times)})
    assert result.ratios == {"graph": Quartiles(2.0, 2.0, 3.0)}
    assert result.seconds == {"jax": Quartiles(1.0, 1.0, 2.0), "graph": Quartiles(3.0, 4.0, 5.0)}


def test_the_order_rotates_from_round_to_round():
    order = []

    def measurement(name):
        return lambda: order.append(name) or 1.0

    paired(3, {name: measurement(name) for name in ("jax", "eager", "graph")})
    assert order == [
        *("jax", "eager", "graph"),
        *("eager", "graph", "jax"),
        *("graph", "jax", "eager"),
    ]


def test_equations_of_inner_jaxprs_count_at_each_call_or_once():
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    jaxpr = jax.jit(lambda x: inner(inner(inner(x)))).trace(1.0).jaxpr
    assert count_equations(jaxpr) == 3 + 3 * 2
    assert count_equations(jaxpr, distinct=True) == 3 + 2


def test_nodes_of_the_function_library_count_once():
    @tf.function
    def inner(x):
        return tf.sin(x) * 2.0  # argument aside: sin, mul, its constant, identity

    spec = tf.TensorSpec([], tf.float32)
    one, three = (
        tf.function(f).get_concrete_function(spec).graph
        for f in (lambda x: inner(x), lambda x: inner(inner(inner(x))))
    )
    assert count_nodes(three) == count_nodes(one) + 2
    library = one.as_graph_def().library.function
    assert count_nodes(one) == len(one.as_graph_def().node) + len(library[0].node_def)


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """Folder and exit status of a quick run of a right implementation on the MLP."""
    folder = tmp_path_factory.mktemp("tables")
    return folder, _run(folder, HANDWRITTEN, "mlp")


def _run(folder, impl, *programs, part=None):
    from reports.__main__ import main

    chosen = [word for name in programs for word in ("--program", name)]
    chosen += [] if part is None else ["--part", part]
    return main(["bench", "--quick", "--impl", impl, "--into", str(folder), *chosen])


def test_a_quick_run_writes_figures_and_table(quick_run):
    folder, status = quick_run
    assert status == 0
    names = {"benchmarks.json", "benchmarks.md", "benchmarks-cpu.svg"}
    assert {path.name for path in folder.iterdir()} == names
    section = json.loads((folder / "benchmarks.json").read_text())["cpu"]
    assert section["jax"] == jax.__version__
    assert Version(section["tensorflow"]) == Version(tf.__version__)
    (mlp,) = section["programs"]
    assert mlp["program"] == "mlp"
    assert mlp["refused"] is None
    assert 10 < mlp["nodes"] < 50
    assert set(mlp["conversion"]["ratios"]) == {"graph", "limit"}
    for what in ("first_call", "steady"):
        assert set(mlp[what]["ratios"]) == {"eager", "graph", "compiled"}
    for what in ("conversion", "first_call", "steady"):
        for quartiles in (*mlp[what]["seconds"].values(), *mlp[what]["ratios"].values()):
            assert 0 < quartiles["low"] <= quartiles["median"] <= quartiles["high"]


def test_graphs_without_xla_ops_are_held_against_those_with_them(quick_run):
    folder, _ = quick_run
    without = json.loads((folder / "benchmarks.json").read_text())["cpu"]["no_xla"]
    (mlp,) = without["programs"]
    assert mlp["nodes"]["xla"] == mlp["nodes"]["no_xla"] > 10
    assert set(mlp["steady"]["ratios"]) == {"no_xla"}
    assert set(mlp["steady"]["seconds"]) == {"xla", "no_xla"}
    text = (folder / "benchmarks.md").read_text()
    assert f"| mlp | {mlp['nodes']['xla']} | {mlp['nodes']['xla']} |" in text


def test_compiled_graphs_are_held_against_the_program_of_jax(quick_run):
    folder, _ = quick_run
    native = json.loads((folder / "benchmarks.json").read_text())["cpu"]["native"]
    (mlp,) = native["programs"]
    assert set(mlp["steady"]["ratios"]) == {"xla"}
    assert set(mlp["steady"]["seconds"]) == {"native", "xla"}
    text = (folder / "benchmarks.md").read_text()
    assert "| program | a call of JAX's program | ratio |" in text


def test_programs_of_small_ops_have_a_table_of_their_own(quick_run):
    folder, _ = quick_run
    assert _run(folder, "jax2tf", "mlp", "game step", "log-signature", part="small_ops") == 0
    section = json.loads((folder / "benchmarks.json").read_text())["cpu"]["small_ops"]
    for program in section["programs"]:
        assert program["refused"] is None
        assert set(program["steady"]["ratios"]) == {"kernels", "graph", "compiled"}
    assert section["of"] == 12
    assert "| game step |" in (folder / "benchmarks.md").read_text()


def test_graphs_are_held_against_tensorflow_by_hand(quick_run):
    folder, _ = quick_run
    section = json.loads((folder / "benchmarks.json").read_text())["cpu"]["by_hand"]
    (mlp,) = section["programs"]
    assert mlp["refused"] is None
    for what in ("conversion", "steady"):
        assert set(mlp[what]["ratios"]) == {"by hand", "graph"}
    text = (folder / "benchmarks.md").read_text()
    assert f"| mlp | {mlp['nodes']['by hand']} | {mlp['nodes']['graph']} |" in text


@pytest.mark.parametrize(
    "program",
    [p for p in bench.programs("small") + workloads("small") if p.by_hand],
    ids=lambda program: program.name,
)
def test_what_is_written_by_hand_computes_the_same(program):
    args = program.make_args()
    expected = jax.jit(program.fun)(*args)
    actual = program.by_hand(*jax.tree.map(tf.constant, args))
    np.testing.assert_allclose(actual.numpy(), np.asarray(expected), 1e-5, 1e-5)


def test_batches_of_unknown_size_are_held_against_known_ones(quick_run):
    folder, _ = quick_run
    section = json.loads((folder / "benchmarks.json").read_text())["cpu"]["polymorphic"]
    (mlp,) = section["programs"]
    assert set(mlp["nodes"]) == {"static", "polymorphic"}
    for what in ("conversion", "steady"):
        assert set(mlp[what]["ratios"]) == {"polymorphic"}
    text = (folder / "benchmarks.md").read_text()
    assert f"| mlp | {mlp['nodes']['static']} | {mlp['nodes']['polymorphic']} |" in text


def test_steps_of_training_are_held_against_those_of_jax(quick_run):
    folder, _ = quick_run
    section = json.loads((folder / "benchmarks.json").read_text())["cpu"]["gradients"]
    (mlp,) = section["programs"]
    assert mlp["refused"] is None
    assert set(mlp["conversion"]["ratios"]) == {"jax", "graph", "limit"}
    assert set(mlp["steady"]["ratios"]) == {"graph", "compiled"}
    text = (folder / "benchmarks.md").read_text()
    assert "| program | trace | jax.jit | convert | limit | a step of jax.jit |" in text


def test_a_wrong_gradient_is_not_timed():
    (mlp,) = (p for p in bench.programs("small") if p.name == "mlp")

    class Wrong:
        def convert(self, fun, lowering, **options):
            right = Adapter(HANDWRITTEN).convert(fun, lowering, **options)
            return lambda *args: 2 * right(*args)

    measured = bench.measure_gradients(mlp, Wrong(), "xla", bench.QUICK)
    assert "in graph" in measured.refused


def test_a_part_that_is_measured_anew_leaves_the_other(quick_run, tmp_path):
    for path in quick_run[0].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = json.loads((tmp_path / "benchmarks.json").read_text())["cpu"]
    assert _run(tmp_path, HANDWRITTEN, "mlp", part="no_xla") == 0
    after = json.loads((tmp_path / "benchmarks.json").read_text())["cpu"]
    assert after.pop("no_xla") != before.pop("no_xla")
    assert after == before


def test_a_part_needs_figures_to_stand_beside(tmp_path, capsys):
    assert _run(tmp_path, HANDWRITTEN, "mlp", part="no_xla") == 2
    assert "has no figures of cpu to add to: leave out --part" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_table_says_what_it_was_made_on_and_what_upstream_had(quick_run):
    text = (quick_run[0] / "benchmarks.md").read_text()
    assert f"{HANDWRITTEN} (xla) on" in text
    assert f"JAX {jax.__version__}, TensorFlow {Version(tf.__version__)}" in text
    assert "A quick run on small programs" in text
    assert "| mlp | 26 (25) |" in text
    assert "1,385 equations" in text
    assert "6,141 nodes" in text


def test_a_first_call_is_slower_than_a_later_one(quick_run):
    data = json.loads((quick_run[0] / "benchmarks.json").read_text())
    mlp = data["cpu"]["programs"][0]
    assert _median(mlp, "first_call") > 10 * _median(mlp, "steady")


def _median(program, what):
    return program[what]["seconds"]["jax"]["median"]


def test_a_program_that_does_not_convert_is_named_with_the_reason(tmp_path, capsys):
    assert _run(tmp_path, HANDWRITTEN, "random-heavy") == 1
    text = (tmp_path / "benchmarks.md").read_text()
    assert "| random-heavy | 3" in text
    assert text.count("not converted: ") == 3  # beside JAX, native, and without XLA ops
    assert "random-heavy: " in capsys.readouterr().out


def test_a_wrong_result_is_not_timed():
    calls = {"jax": lambda: jnp.ones(2), "eager": lambda: tf.constant([1.0, 1.1])}
    with pytest.raises(AssertionError, match="in mode eager"):
        bench._check_agreement(calls)


def test_another_device_keeps_its_section(quick_run):
    data = json.loads((quick_run[0] / "benchmarks.json").read_text())
    text = files.benchmark_files({"gpu": data["cpu"], "cpu": data["cpu"]})["benchmarks.md"]
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert sections == ["## cpu", "## gpu", "## What stands between"]


def test_figures_are_written_in_three_digits():
    environment = rendering._environment()
    seconds, ratio = environment.filters["seconds"], environment.filters["ratio"]
    assert seconds({"median": 1.2345}) == "1.23 s"
    assert seconds({"median": 0.0123}) == "12.3 ms"
    assert seconds({"median": 0.000456}) == "456 µs"
    assert ratio({"low": 0.5, "median": 1, "high": 123.4}) == "1.00 (0.50 to 123)"


def test_the_picture_places_ratios_on_a_logarithmic_axis():
    quartiles = {"low": 1.0, "median": 10.0, "high": 100.0}
    modes = dict.fromkeys(("eager", "graph", "compiled"), quartiles)
    programs = [
        {"program": "mlp", "refused": None, "steady": {"ratios": modes}},
        {"program": "resnet18", "refused": "no rule", "steady": None},
    ]
    svg = ElementTree.fromstring(files.steady_picture("cpu", {"programs": programs}))
    namespace = {"svg": "http://www.w3.org/2000/svg"}
    words = [text.text for text in svg.findall("svg:text", namespace)]
    assert {"mlp", "eager", "1", "10", "100", "A call of a converted function, cpu"} <= set(words)
    assert "resnet18" not in words
    at = {
        text.text: float(text.get("x"))
        for text in svg.findall("svg:text", namespace)
        if text.text in ("1", "10", "100")
    }
    medians = {float(dot.get("cx")) for dot in svg.findall("svg:circle", namespace)[3:]}
    assert medians == {at["10"]}
    assert at["10"] - at["1"] == pytest.approx(at["100"] - at["10"], abs=0.2)
