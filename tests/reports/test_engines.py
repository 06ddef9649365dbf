"""The committed figures of models in engines beside Keras's; tests/consumers measures them."""

import pytest

from reports import rendering
from reports.benchmarks.files import engine_files

# Without assume_finite a resize is two products, in which a NaN reaches all pixels.
GUARDED = [("UNet", "LiteRT")]


def test_the_committed_ops_are_within_the_limit():
    data = rendering.read_data("engines")
    assert not data["quick"]
    assert len({(row["model"], row["engine"]) for row in data["rows"]}) == 18
    beside = [row for row in data["rows"] if row["ops"]["keras"]]
    for contender, fatter in (("finite", []), ("jax", GUARDED)):
        too_many = [row for row in beside if row["ops"][contender] > 1.1 * row["ops"]["keras"]]
        assert [(row["model"], row["engine"]) for row in too_many] == fatter


@pytest.mark.parametrize("engine", ["LiteRT", "ONNX Runtime"])
def test_where_keras_is_refused_the_times_stand_alone(engine):
    data = rendering.read_data("engines")
    (row,) = (r for r in data["rows"] if (r["model"], r["engine"]) == ("LSTM", engine))
    assert row["ops"]["keras"] is None
    line = f"| LSTM | {engine} | refused | {row['ops']['jax']} | {row['ops']['finite']} |  | "
    assert line in engine_files(data)["engines.md"]


def test_a_step_of_decoding_stands_beside_jax():
    data = rendering.read_data("engines")
    assert [row["engine"] for row in data["decoding"]] == ["LiteRT", "ONNX Runtime", "OpenVINO"]
    assert all(row["ratios"]["engine"]["median"] > 0 for row in data["decoding"])
    assert "| engine | ops | jax.jit | engine | ratio |" in engine_files(data)["engines.md"]
