"""Trying ops in engines: what is tried, what is said of it, and what a table keeps."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.__main__ import main
from harnesses.engine.consumers import EngineError
from harnesses.probes import probing
from harnesses.probes import table as tables
from harnesses.probes.catalogue import catalogue
from harnesses.probes.engines import engine_of
from harnesses.probes.probe import Of, Probe
from harnesses.probes.table import Table
from harnesses.probes.trial import Outcome, kernel_of, tried
from jax2tf._src.targets import op_tables
from jax2tf._src.targets.by_name import TARGETS
from jax2tf._src.targets.forms import NOT_IN_EVERY_ENGINE

IMPL = Path(jax2tf.__file__).parent
# What a rule names and computes nothing, or what no two kernels give the same numbers for.
NOT_TRIED = {
    "BlockLSTMV2": "jax2tf.export alone makes it, for ONNX, and writes ONNX's LSTM itself",
    "Case": "StatelessCase is the same",
    "IdentityN": "structural",
    "PlaceholderWithDefault": "structural",
    "PreventGradient": "structural",
    "StopGradient": "structural",
}
SQUARE = Probe("Square", lambda x: tf.raw_ops.Square(x=x), (Of(),), ("int32", "float32"))


def engine(model: Any) -> Any:
    """An engine whose models compute what a function of arrays says."""
    return types.SimpleNamespace(convert=lambda graph: model, NOISE=())


def test_every_op_that_a_rule_names_is_tried() -> None:
    # Our own graph writes ops under TensorFlow's names, and lowers none.
    sources = "\n".join(p.read_text() for p in IMPL.rglob("*.py") if "graph" not in p.parts)
    named = set(re.findall(r"\b(?:ops|raw|raw_ops)\.([A-Z]\w+)", sources))
    named -= {"TensorArray", "TensorSpec"}  # classes
    named |= {op for target in TARGETS.values() for op in target.lacks}
    named |= set(NOT_IN_EVERY_ENGINE)
    assert len(named) > 100
    tried_ops = {probe.op for probe in catalogue().values()}
    assert named - tried_ops == NOT_TRIED.keys()


def test_each_probe_makes_the_op_of_its_name() -> None:
    for probe in catalogue().values():
        dtype = next(d for d in probe.dtypes if kernel_of(probe, d))
        arrays = [tf.constant(a) for a in probe.arrays(dtype)]
        graph = tf.function(probe.function, autograph=False).get_concrete_function(*arrays).graph
        nodes = graph.as_graph_def()
        made = {n.op for n in nodes.node} | {
            n.op for f in nodes.library.function for n in f.node_def
        }
        assert {probe.op, probe.op.removeprefix("Stateless")} & made, probe.name


def test_arguments_are_the_same_in_each_process_and_edges_differ() -> None:
    again = Probe("Square", lambda x: x, (Of(),), ("float32",))
    np.testing.assert_array_equal(SQUARE.arrays("float32"), again.arrays("float32"))
    edges = SQUARE.edges("float32")
    assert set(edges) == {"nan", "infinity", "zeros", "large"}
    assert np.isnan(edges["nan"][0]).sum() == 1
    assert np.isposinf(edges["infinity"][0]).any()
    assert np.iinfo(np.int32).max in SQUARE.edges("int32")["large"][0]


@pytest.mark.parametrize(
    ("model", "outcome"),
    [
        (lambda arrays: [np.square(arrays[0])], Outcome("takes")),
        (lambda arrays: [arrays[0] ** 2 + 1], Outcome("differs")),
        (lambda arrays: [(arrays[0] ** 2).astype(np.float64)], Outcome("differs")),
        (lambda arrays: [arrays[0][:1] ** 2], Outcome("differs")),
        (
            lambda arrays: [np.where(np.isfinite(arrays[0]), arrays[0], 0) ** 2],
            Outcome("takes", edges=("nan", "infinity")),
        ),
    ],
)
def test_outcome_of_a_model(model: Any, outcome: Outcome) -> None:
    with np.errstate(over="ignore"):
        seen = tried(SQUARE, "float32", engine(model))
    assert seen == outcome


def test_what_an_engine_raises_is_told_in_its_words() -> None:
    def refuse(graph: Any) -> Any:
        raise NotImplementedError("no Square\nmore words")

    def fail(arrays: Sequence[np.ndarray]) -> Any:
        raise RuntimeError("kernel at 0x7fff12 in /a/b/c.cc")

    refusing = types.SimpleNamespace(convert=refuse, NOISE=())
    assert str(tried(SQUARE, "int32", refusing)) == "refuses: NotImplementedError: no Square"
    assert str(tried(SQUARE, "int32", engine(fail))).startswith("fails: RuntimeError: kernel at")
    assert "0x7" not in str(tried(SQUARE, "int32", engine(fail)))


@pytest.mark.parametrize("target", ["xla", "tensorflow"])
def test_words_are_the_same_each_time(target: str) -> None:
    """TensorFlow numbers the functions that it makes, and says so."""
    lu = Probe("Lu", lambda x: tf.raw_ops.Lu(input=x), [Of([2, 2])], dtypes=("float32",))
    own = engine_of(target)
    first, second = (tried(lu, "float32", own) for _ in range(2))
    assert first == second
    assert "__inference" not in str(first)


def test_large_integers_tell_a_float_kernel_apart() -> None:
    greater = Probe("Greater", lambda x, y: tf.raw_ops.Greater(x=x, y=y), (Of(), Of()), ("int32",))
    as_floats = engine(lambda a: [a[0].astype(np.float32) > a[1].astype(np.float32)])
    exact = engine(lambda a: [a[0] > a[1]])
    assert tried(greater, "int32", exact) == Outcome("takes")
    assert tried(greater, "int32", as_floats) == Outcome("takes", edges=("large",))


def test_a_process_that_ends_is_an_outcome(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The next use gets a new process."""
    program = tmp_path / "worker.py"
    program.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if asked['dtype'] == 'int32':\n"
        "        os._exit(3)\n"
        "    print(json.dumps({'value': 'takes'}), flush=True)\n"
    )
    monkeypatch.setattr(probing, "_command", lambda target: [probing.sys.executable, str(program)])
    asked = [("Square", dtype) for dtype in ("float32", "int32", "float64")]
    found = probing.probed("tensorflow", asked, workers=1)
    assert found.uses == {
        "Square": {"float32": "takes", "int32": "ends the process", "float64": "takes"}
    }


def test_differences_name_use_dtype_and_both_outcomes() -> None:
    known = {"Square": {"int32": "takes"}}
    assert list(tables.differences(known, {"Square": {"int32": "takes"}})) == []
    (line,) = tables.differences(known, {"Square": {"int32": "differs"}})
    assert line == "Square of int32: the table says 'takes', seen is 'differs'"
    (line,) = tables.differences(known, {"Abs": {"int32": "takes"}})
    assert "the table says 'nothing'" in line


def test_table_is_written_and_merged(tmp_path: Path) -> None:
    path = tmp_path / "tables/mine.json"
    first = Table({"mine": "1"}, {"Square": {"int32": "takes", "float32": "takes"}})
    tables.write(first, path)
    assert tables.read(path) == first
    seen = Table({"mine": "2"}, {"Square": {"int32": "differs"}})
    second = tables.merged(first.uses | {"Gone": {"int32": "takes"}}, seen, kept=["Square", "Abs"])
    assert second.uses == {"Square": {"int32": "differs", "float32": "takes"}}
    assert second.versions == {"mine": "2"}
    assert [p.name for p in path.parent.iterdir()] == ["mine.json"]


def test_command_writes_a_table_and_checks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tensorflow.json"
    words = [
        "probe",
        "tensorflow",
        "--op",
        "Square",
        "--dtype",
        "int32",
        "-n1",
        "--table",
        str(path),
    ]
    assert main(words) == 0
    assert tables.read(path).uses == {"Square": {"int32": "takes"}}
    assert main([*words, "--check"]) == 0
    tables.write(Table({}, {"Square": {"int32": "differs"}}), path)
    assert main([*words, "--check"]) == 1
    assert "Square of int32: the table says 'differs', seen is 'takes'" in capsys.readouterr().out
    assert tables.read(path).uses == {"Square": {"int32": "differs"}}


def test_unknown_op_is_refused() -> None:
    with pytest.raises(EngineError, match="--op Sqare: the catalogue"):
        probing.chosen("litert", ["Sqare"], [])
    assert main(["probe", "tensorflow", "--op", "Sqare"]) == 2


def test_lacks_are_the_uses_that_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {
        "Abs": {"int32": "takes; differs at large", "float32": "takes; differs at nan, infinity"},
        "Conv2D": {"int32": "refuses: no", "float32": "takes"},
        "Conv2D: in groups": {"float32": "fails: no"},
        "FloorDiv": {"int32": "differs", "float32": "takes"},
        "FloorDiv: of numbers of one sign": {"int32": "takes", "float32": "takes"},
        "Lu": {"float32": "ends the process"},
        "StatelessIf": {"int8": "differs", "float32": "takes"},
    }
    monkeypatch.setattr(op_tables, "uses", lambda target: seen)
    plain = {"Conv2D": ("int32",), "FloorDiv": ("int32",), "Lu": ()}
    assert op_tables.lacks("mine") == plain
    one_sign = op_tables.lacks("mine", needs=["FloorDiv: of numbers of one sign"])
    assert one_sign == {"Conv2D": ("int32",), "Lu": ()}
    assert op_tables.lacks("mine", needs=["Conv2D", "Conv2D: in groups"])["Conv2D"] == ()
    assert op_tables.lacks("mine", edges={"Abs": "infinity"}) == plain | {"Abs": ("float32",)}
