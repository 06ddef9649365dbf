"""Which cells a selection takes."""

import ast
import os
from pathlib import Path

import pytest

import harnesses
from harnesses.cell.rows import row_of
from harnesses.engine import devices
from harnesses.engine.judge import Judge
from harnesses.engine.selection import Selection
from harnesses.harness import all_harnesses

ALL_NAMES = [harness.name for harness in all_harnesses()]


def _names(**selection):
    return [harness.name for harness in Selection(**selection).harnesses()]


def test_everything_by_default():
    cells = Selection().cells()
    assert [cell.harness.name for cell in cells[::3]] == ALL_NAMES
    assert [str(cell) for cell in cells[:2]] == [
        f"{ALL_NAMES[0]}-cpu-xla-{m}" for m in ("eager", "graph")
    ]
    assert Selection().is_full
    assert Selection(lowering=("no_xla",)).is_full
    assert not Selection(mode=("eager",)).is_full
    assert not Selection(sample=5).is_full


def test_the_place_of_a_harness_is_its_builder():
    (harness,) = Selection(name=("abs_float32",)).harnesses()
    file, _, line = harness.where.partition(":")
    assert (harness.family, file) == ("elementwise", "elementwise/functions.py")
    builder = (Path(harnesses.__file__).parent / file).read_text().splitlines()[int(line) - 1 :]
    assert builder[0] == "@family.builder"
    assert 'unary("abs", ' in "\n".join(builder).partition("\n\n\n")[0]


def test_filters():
    assert set(_names(primitive=("remat2",), dtype=("float16",))) == {
        "remat2_float16",
        "remat2_gradient_float16",
    }
    assert _names(name=("jit_f?oat32", "jit_int8")) == ["jit_float32", "jit_int8"]
    assert {h.family for h in Selection(family=("calls",)).harnesses()} == {"calls"}
    (cell,) = Selection(
        name=("jit_int8",), lowering=("no_xla",), mode=("compiled",), device=("tpu",)
    ).cells()
    assert str(cell) == "jit_int8-tpu-no_xla-compiled"
    (cell,) = Selection(name=("jit_int8",), side="jax").cells()
    assert str(cell) == "jit_int8-cpu-jax-jax"


def test_samples_are_the_same_every_time_and_grow():
    small, large = _names(sample=10), _names(sample=30)
    assert small == _names(sample=10)
    assert (len(small), len(large)) == (10, 30)
    assert set(small) < set(large)


def test_shards_divide_the_harnesses():
    shards = [_names(shard=f"{index}/3") for index in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(ALL_NAMES)
    # In the order of the database, as cells that are alike follow each other.
    assert all(shard == [name for name in ALL_NAMES if name in set(shard)] for shard in shards)


def test_cells_of_a_harness_follow_each_other():
    names = [cell.harness.name for cell in Selection(device=("cpu", "gpu")).cells()]
    assert names == [name for name in ALL_NAMES for _ in range(6)]


def test_a_row_says_what_the_cell_is():
    cell = Selection(name=("remat2_policy_float32",), mode=("graph",)).cells()[0]
    row = row_of(cell, {"jax": "0.12"}, outcome="pass")
    assert row["params"] == "policy=save_only_these_names"
    assert (row["family"], row["primitive"], row["mode"]) == ("calls", "remat2", "graph")
    assert (row["x64"], row["jax"], row["phase"]) == (False, "0.12", None)


def test_a_device_that_is_missing():
    devices.prepare(("cpu",))
    with pytest.raises(devices.DeviceError, match="--device tpu: JAX finds none here: "):
        devices.prepare(("tpu",))


@pytest.mark.parametrize("given", ["", "--xla_dump_to=here"])
def test_a_gpu_computes_in_float32(given, monkeypatch):
    monkeypatch.setattr(devices, "_require", lambda device: None)
    monkeypatch.setenv("XLA_FLAGS", given)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "")
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE")
    devices.prepare(("cpu",))
    assert os.environ["XLA_FLAGS"] == given
    assert "NVIDIA_TF32_OVERRIDE" not in os.environ
    for _ in range(2):
        devices.prepare(("gpu",))
        flags = os.environ["XLA_FLAGS"].split()
        assert flags == [*given.split(), "--xla_gpu_enable_triton_gemm=false"]
        assert os.environ["NVIDIA_TF32_OVERRIDE"] == "0"


def test_a_gpu_is_not_asked_in_which_order_it_writes():
    (cell,) = Selection(name=("scatter_rows_fill_int32",), device=("gpu",), side="jax").cells()
    row = Judge(None).run(cell)
    assert row["outcome"] == "inapplicable"
    assert "no defined order" in row["message"]
    assert "ordered" not in Selection(name=("scatter-max_rows_fill_int32",)).harnesses()[0].tags
    assert "ordered" not in Selection(name=("scatter-add_rows_fill_int32",)).harnesses()[0].tags
    assert "ordered" in Selection(name=("scatter-add_rows_fill_float32",)).harnesses()[0].tags


@pytest.mark.parametrize(
    ("folder", "above"),
    [
        ("harnesses/harness", ("harnesses.engine", "harnesses.cell", "limitations", "reports")),
        ("harnesses/cell", ("harnesses.engine", "limitations", "reports")),
        ("limitations", ("harnesses.engine", "reports")),
    ],
)
def test_layers_import_none_above_them(folder, above):
    root = Path(harnesses.__file__).parents[1]
    modules = sorted((root / folder).glob("*.py"))
    assert modules
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not f"{node.module}.".startswith(tuple(f"{a}." for a in above)), module
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                assert not set(names) & set(above), module
            if isinstance(node, ast.Import):
                assert not any(a.name.startswith(above) for a in node.names), module
