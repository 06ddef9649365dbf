"""The benchmark of growth: its arithmetic, a quick run, and its picture."""

import json
from xml.etree import ElementTree

import pytest

from reports.__main__ import main
from reports.benchmarks import growth
from reports.benchmarks.files import growth_files


def test_an_exponent_is_the_slope_on_logarithmic_axes():
    points = [
        {"size": n, "seconds": {"a": {"median": 3.0 * n}, "b": {"median": 0.5 * n**2}}}
        for n in (1, 10, 100)
    ]
    assert growth.exponents(points) == {"a": pytest.approx(1), "b": pytest.approx(2)}


def test_a_chain_has_as_many_equations_as_asked_for():
    import jax

    fun, args = growth.chain(50)
    assert len(jax.make_jaxpr(fun)(*args).eqns) == 50


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growth")
    assert main(["growth", "--quick", "--into", str(folder)]) == 0
    return folder


def test_a_quick_run_writes_figures_table_and_picture(quick_run):
    assert {p.name for p in quick_run.iterdir()} == {"growth.json", "growth.md", "growth.svg"}
    data = json.loads((quick_run / "growth.json").read_text())
    assert [axis["name"] for axis in data["axes"]] == ["equations", "layers", "length", "batch"]
    for axis in data["axes"]:
        names = {"conversion": {"jax.jit", "graph"}, "call": {"jax.jit", "graph", "compiled"}}
        assert set(axis["exponents"]) == names[axis["times"]]
        assert all(q["median"] > 0 for p in axis["points"] for q in p["seconds"].values())
    text = (quick_run / "growth.md").read_text()
    assert "A quick run on small programs" in text
    assert "## Conversion by equations\n\n| equations | jax.jit | graph | ratio |" in text
    assert text.count("| exponent |") == 4
    for name in ("growth.md", "growth.svg"):
        assert growth_files(data)[name] == (quick_run / name).read_text()


def test_a_panel_places_sizes_and_seconds_on_logarithmic_axes():
    seconds = {name: {"median": 1.0} for name in ("jax.jit", "graph")}
    points = [{"size": n, "seconds": seconds, "ratios": {}} for n in (1, 10, 100)]
    points[1] = points[1] | {"seconds": seconds | {"graph": {"median": 0.01}}}
    axis = {"name": "layers", "times": "conversion", "points": points, "exponents": {}}
    data = {"axes": [axis], "jax": "1", "tensorflow": "2", "python": "3", "load": 0, "cores": 2}
    quartile = {"low": 1.0, "median": 1.0, "high": 1.0}
    for point in points:
        point["ratios"] = {"graph": quartile}
    axis["exponents"] = {"jax.jit": 0.0, "graph": 0.0}
    svg = ElementTree.fromstring(growth_files(data | {"quick": False})["growth.svg"])
    space = {"svg": "http://www.w3.org/2000/svg"}
    words = [text.text for text in svg.findall(".//svg:text", space)]
    assert {"conversion by layers", "1", "10", "100", "10 ms", "1 s", "jax.jit"} <= set(words)
    bent, flat = (
        [tuple(map(float, p.split(","))) for p in line.get("points").split()]
        for line in svg.findall(".//svg:polyline", space)
    )
    assert len({y for _, y in flat}) == 1
    assert flat[1][0] - flat[0][0] == pytest.approx(flat[2][0] - flat[1][0], abs=0.2)
    assert bent[1][1] > bent[0][1] == bent[2][1]
