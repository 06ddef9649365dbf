"""The modes dtensor and partitioned_native: what they accept, object to, and leave alone."""

import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from harnesses.engine.partitioned_text import read
from harnesses.engine.selection import Selection

PARTITIONED = "partitioned_native"
X = np.arange(32, dtype=np.float32).reshape(8, 4)
SAMPLE = (
    "psum_rows_float32",
    "all_to_all_groups_int32",
    "ppermute_vjp_float32",
    "psum_scatter_jvp_float32",
    "shard_map_nested_float32",
    "shard_map_specs_of_three_bool",
    "pmap_step_float32",
)


def run(matrix, fake, name, *arguments):
    made = matrix(fake, f"--name={name}", f"--mode={PARTITIONED}", *arguments)
    (cell,) = made.cells.values()
    row, problem = made.run(cell)
    made.rows.append(row)
    return row, problem, made


@pytest.fixture
def gspmd():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


class TestPartitionedNative:
    @pytest.mark.parametrize("name", SAMPLE)
    def test_right_implementation_passes(self, matrix, name):
        row, problem, made = run(matrix, "right", name, "--impl=jax2tf")
        assert (row["outcome"], row["lowering"], problem) == ("pass", "native", None)
        assert row["nodes"] > 0
        assert made.finish() == []

    @pytest.mark.parametrize("name", ["psum_rows_float32", "shard_map_two_arguments_float32"])
    def test_under_gspmd(self, matrix, gspmd, name):
        row, problem, _ = run(matrix, "right", name, "--impl=jax2tf")
        assert (row["outcome"], problem) == ("pass", None)

    @pytest.mark.parametrize(
        "name", ["sharding_constraint_float32", "psum_one_device_float32", "reshard_int32"]
    )
    def test_one_device(self, matrix, name):
        row, problem, made = run(matrix, "right", name, "--impl=jax2tf")
        assert (row["outcome"], row["verdict"], problem) == ("inapplicable", "ok", None)
        assert "its values are on one device" in row["message"]
        assert made.finish() == []

    def test_a_module_for_one_device(self, matrix):
        row, problem, _ = run(matrix, "whole", "psum_rows_float32")
        assert (row["outcome"], row["verdict"]) == ("mismatch", "red")
        assert "use_shardy_partitioner=False, but the shardings are shardy's" in problem

    def test_a_module_for_one_device_under_gspmd(self, matrix, gspmd):
        row, problem, _ = run(matrix, "whole", "psum_rows_float32")
        assert row["outcome"] == "mismatch"
        assert "partitions: 1, not 8" in problem

    def test_swapped_specs(self, matrix):
        row, problem, _ = run(matrix, "swapped", "ppermute_both_float32")
        assert (row["outcome"], row["verdict"]) == ("mismatch", "red")
        assert "sdy.manual_computation" in problem

    def test_without_a_module(self, matrix):
        row, problem, _ = run(matrix, "lowering", "psum_rows_float32")
        assert (row["outcome"], row["phase"]) == ("error", "lower"), problem


def text_of(fun, *args, **shardings):
    exported = jax.export.export(jax.jit(fun, **shardings), platforms=["tpu"])(*args)
    return read(exported.mlir_module_serialized, range(len(args)))


@pytest.fixture
def on():
    mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
    return lambda *spec: NamedSharding(mesh, P(*spec))


@pytest.fixture(params=["shardy", "gspmd"])
def partitioner(request):
    if request.param == "gspmd":
        request.getfixturevalue("gspmd")
    return request.param


class TestText:
    """What is read of a module, of which each part tells two programs apart."""

    def test_what_is_read(self, on, partitioner):
        text = text_of(lambda x: x + 1, X, in_shardings=on("a"), out_shardings=on(None, "b"))
        assert (text.partitions, text.partitioner) == (8, partitioner)
        assert {"shardy": '[{"a"}, {}]', "gspmd": "[4,1,2]"}[partitioner] in text.arguments[0]
        assert text.arguments != text.results
        assert text.difference(text) is None

    def test_two_arguments_that_are_swapped(self, on, partitioner):
        def added(x, y):
            return x + y

        one = text_of(added, X, X, in_shardings=(on("a"), on(None, "b")))
        other = text_of(added, X, X, in_shardings=(on(None, "b"), on("a")))
        assert one.difference(other).startswith("arguments[0]: ")
        assert sorted(one.arguments) == sorted(other.arguments)

    def test_two_constraints_that_are_swapped(self, on, partitioner):
        def constrained(first, second):
            def fun(x):
                y = lax.with_sharding_constraint(x * 2, first)
                return lax.with_sharding_constraint(y + 1, second)

            return text_of(fun, X)

        one, other = constrained(on("a"), on("b")), constrained(on("b"), on("a"))
        assert one.difference(other).startswith("operations[")
        assert sorted(one.operations) == sorted(other.operations)

    def test_one_that_is_missing(self, on, partitioner):
        def fun(x):
            return lax.with_sharding_constraint(x * 2, on("a"))

        one = text_of(lambda x: fun(fun(x)), X)
        other = text_of(fun, X)
        assert other.difference(one).endswith(
            f"there are {len(other.operations)}, not {len(one.operations)}"
        )

    def test_a_sum_is_no_maximum(self, on, partitioner):
        def over(collective):
            return text_of(
                jax.shard_map(
                    lambda x: collective(x, "a"), mesh=on().mesh, in_specs=P("a"), out_specs=P()
                ),
                X,
            )

        assert "stablehlo.maximum" in over(lax.psum).difference(over(lax.pmax))

    def test_the_number_of_partitions(self, on):
        text = text_of(lambda x: x, X, in_shardings=on("a"))
        assert dataclasses.replace(text, partitions=4).difference(text) == "partitions: 4, not 8"


DTENSOR = ["--mode", "dtensor"]


def rows_of_a_run(tmp_path, *arguments):
    """The rows of a run in a process of its own, where TensorFlow has made eight devices."""
    file = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "harnesses", "run", *DTENSOR, f"--results={file}", *arguments]
    done = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, check=False, timeout=540
    )
    assert file.exists(), done.stdout + done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {row["harness"]: row for row in rows}, done.returncode


class TestDTensor:
    def test_right_implementation_passes(self, tmp_path):
        rows, status = rows_of_a_run(tmp_path, *(f"--name={name}" for name in SAMPLE))
        assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(SAMPLE, "pass")
        assert {row["lowering"] for row in rows.values()} == {"no_xla"}
        assert status == 0

    def test_without_a_mesh(self, tmp_path):
        rows, status = rows_of_a_run(tmp_path, "--name=jit_shardings_float32")
        (row,) = rows.values()
        assert (row["outcome"], status) == ("inapplicable", 0)
        assert "no program of the devices of a mesh" in row["message"]

    def test_a_value_that_differs_on_the_mesh(self, tmp_path):
        fake = "--impl=tests.judge.fakes.on_mesh"
        rows, status = rows_of_a_run(tmp_path, fake, "--name=psum_rows_float32")
        (row,) = rows.values()
        assert (row["outcome"], row["verdict"], status) == ("mismatch", "red", 1)
        assert "ULPs of float32 away" in row["message"]


class TestSelection:
    @pytest.mark.parametrize(("mode", "lowering"), [("dtensor", "no_xla"), (PARTITIONED, "native")])
    def test_a_mode_has_its_lowering(self, mode, lowering):
        chosen = {"name": ("psum_rows_*", "sin_float32"), "mode": (mode,)}
        cells = Selection(**chosen).cells()
        assert {(cell.lowering, cell.mode) for cell in cells} == {(lowering, mode)}
        assert {cell.harness.family for cell in cells} == {"sharding"}
        assert Selection(**chosen, lowering=(lowering,)).cells() == cells
        assert Selection(**chosen, lowering=("xla",)).cells() == []

    def test_only_asked_for(self):
        modes = {cell.mode for cell in Selection(name=("psum_rows_float32",)).cells()}
        assert modes == {"eager", "graph", "compiled"}
