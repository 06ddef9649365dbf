"""`python -m harnesses locate`: the equation at which a cell begins to differ from JAX."""

from __future__ import annotations

import pytest

from harnesses import __main__ as command
from harnesses.engine import located


def test_a_cell_is_located(capsys, tmp_path):
    page = tmp_path / "page.html"
    assert command.main(["locate", "tanh_float32-cpu-xla-graph", "--html", str(page)]) == 0
    assert "graph: no equation differs from JAX" in capsys.readouterr().out
    assert "tanh" in page.read_text()


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("none-cpu-xla-graph", "no harness 'none'"),
        ("tanh_float32-cpu-xla-grad", "modes eager, graph"),
        ("tanh_float32", "takes the lowerings"),
    ],
)
def test_what_is_no_cell_is_refused(cell, said):
    with pytest.raises(located.CellError, match=said):
        located.located(cell, "jax2tf")


def test_a_converter_without_locate_is_refused():
    with pytest.raises(located.CellError, match="has no function locate"):
        located.located("tanh_float32-cpu-xla-graph", "math")
