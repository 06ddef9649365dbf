"""The committed figures of models in engines beside Keras's; tests/consumers measures them."""

from reports import rendering
from reports.benchmarks.files import engine_files

# tf2onnx makes ONNX's LSTM of the loop that Keras writes; of others it makes a Loop.
FATTER = [("LSTM", "ONNX Runtime")]


def test_the_committed_ops_are_within_the_limit():
    data = rendering.read_data("engines")
    assert not data["quick"]
    assert len({(row["model"], row["engine"]) for row in data["rows"]}) == 18
    beside = [row for row in data["rows"] if row["ops"]["keras"]]
    too_many = [row for row in beside if row["ops"]["finite"] > 1.1 * row["ops"]["keras"]]
    assert [(row["model"], row["engine"]) for row in too_many] == FATTER


def test_where_keras_is_refused_the_times_stand_alone():
    data = rendering.read_data("engines")
    (row,) = (r for r in data["rows"] if (r["model"], r["engine"]) == ("LSTM", "LiteRT"))
    assert row["ops"]["keras"] is None
    line = f"| LSTM | LiteRT | refused | {row['ops']['jax']} | {row['ops']['finite']} |  | "
    assert line in engine_files(data)["engines.md"]
