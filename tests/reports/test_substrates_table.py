"""The table of TensorFlow's symbols on the substrates."""

import argparse

import numpy as np
import pytest
from rich.console import Console

from harnesses.harness import SUBSTRATES, Normal, all_harnesses
from harnesses.harness.definition import Harness
from limitations.ledger import LedgerError, Limitation, SymbolReason, load_symbol_reasons
from reports import rendering, substrates
from reports.results import ResultsError
from reports.substrates import ABSENT


def harness(symbol, dtype="float32", tags=()):
    args = [Normal((3,), dtype)]
    fields = (SUBSTRATES, symbol, f"{symbol}_{dtype}", None, args, np.dtype(dtype), {}, 4, "array")
    return Harness(*fields, True, frozenset(tags), None, "here:1")


def limitation(symbol, lowering, mode, side="tensorflow"):
    where = {"lowerings": (lowering,), "modes": (mode,), "side": side}
    return Limitation("substrates#1", (symbol,), "error", "because it is so", **where)


SYMBOLS = {"tf.exp": np.exp, "tf.math.exp": np.exp, "tf.Graph": ABSENT, "tf.int32": "int32"}
REASONS = [
    SymbolReason("absent", ("tf.G*",), "of graphs"),
    SymbolReason("unasked", ("tf.int32",), "a constant"),
]


def text(ledger=(), harnesses=None, reasons=REASONS, symbols=SYMBOLS):
    database = [harness("tf.exp"), harness("tf.exp", "float64")] if harnesses is None else harnesses
    return substrates.table_files(database, ledger, reasons, symbols)[substrates.TABLE]


def test_every_name_of_a_function_has_a_row():
    row = "| yes | float32, float64 | yes | yes | yes | yes | yes | yes | yes |"
    assert f"| tf.exp {row}" in text()
    assert f"| tf.math.exp {row}" in text()


def test_a_limitation_makes_a_symbol_work_partly():
    ledger = [limitation("tf.exp", "on_jax", "jvp", "jax"), limitation("tf.exp", "on_jax", "vmap")]
    words = "yes | yes | yes | yes | TensorFlow has none | no | yes |"
    assert f"| tf.exp | partly | float32, float64 | {words}" in text(ledger)
    assert "| JAX vmap | 0 (0.0%) | 2 |" in text(ledger)
    assert "| JAX jvp | 0 (-) | 0 |" in text(ledger)
    assert "| tf.exp | on_jax | vmap | all | error | because it is so |" in text(ledger)


def test_what_is_not_there_or_not_asked_has_a_reason():
    assert "### Of graphs\n\ntf.Graph\n" in text()
    assert "| tf.int32 | a constant |" in text()


@pytest.mark.parametrize(
    ("reasons", "problem"),
    [
        (REASONS[1:], "tf.Graph is absent and has no reason"),
        (REASONS[:1], "tf.int32 is unasked and has no reason"),
        ([*REASONS, SymbolReason("absent", ("tf.exp",), "x")], "absent tf.exp: no symbol is left"),
    ],
)
def test_reasons_and_symbols_prove_each_other(reasons, problem):
    with pytest.raises(ResultsError, match=problem):
        text(reasons=reasons)


def test_a_reason_that_is_empty_is_refused(tmp_path):
    (tmp_path / "symbols.toml").write_text('[[absent]]\nsymbols = ["tf.*"]\nreason = ""\n')
    with pytest.raises(LedgerError, match=r"symbols\.toml: entry 1: 'reason' is missing or empty"):
        load_symbol_reasons(tmp_path)
    (tmp_path / "symbols.toml").write_text('[[lacking]]\nsymbols = ["tf.*"]\n')
    with pytest.raises(
        LedgerError, match=r"a file holds \[\[absent\]\] and \[\[unasked\]\] tables"
    ):
        load_symbol_reasons(tmp_path)


def test_the_committed_table_is_current(tmp_path, capsys):
    options = argparse.Namespace(check=True, into=rendering.TABLES)
    assert substrates.main(options, Console()) == 0
    assert substrates.main(argparse.Namespace(check=True, into=tmp_path), Console()) == 1
    assert "python -m reports substrates" in capsys.readouterr().out


def test_the_database_asks_about_what_the_substrates_have():
    found = substrates.symbols()
    database = all_harnesses(direction=SUBSTRATES)
    assert len(database) >= 2000
    assert not [h.name for h in database if found.get(h.primitive, ABSENT) is ABSENT]
    assert len([1 for symbol in found.values() if symbol is not ABSENT]) >= 500
