"""The pages of support/: what a made-up ledger and made-up rows say, and when they are stale."""

import json
import shutil

import pytest

from harnesses.harness import Harness
from limitations.ledger import Limitation
from reports import check, support
from tests.reports.test_tables import harness

RUN = {"jax": "0.12.0", "tensorflow": "2.21.0", "python": "3.12.1", "impl": "jax2tf"}
RUN |= {"date": "2026-11-28", "commit": "7d40e7c", "device": "cpu", "lowering": "xla"}
PROVED = {"runs": [RUN | {"harnesses": 2, "cells": 6}]}
VERSIONS = {key: RUN[key] for key in ("jax", "tensorflow", "python", "date", "commit")}


def database() -> list[Harness]:
    return [
        harness("cumsum", "float32", family="cumulative"),
        harness("cumsum", "float32", "reverse", family="cumulative"),
        harness("cumsum", "int32", family="cumulative"),
        harness("cumsum", "bfloat16", family="cumulative"),
    ]


def limitation(**conditions) -> Limitation:
    return Limitation("cumulative#1", ("cumsum",), "mismatch", "because", **conditions)


def words(data, dtype: str) -> dict[str, str]:
    return dict(zip(support.COLUMNS, data["uses"]["cumsum"][dtype].split(), strict=True))


def test_the_ledger_and_the_rows_are_counted():
    kept = {
        "versions": {"litert": VERSIONS},
        "cells": {"cumsum_float32": ".p...", "cumsum_reverse_float32": ".m...", "x": ".p..."},
    }
    ledger = [
        limitation(harness=("cumsum_reverse_float32",), modes=("compiled",)),
        limitation(dtypes=("int32",), side="jax"),
    ]
    data = support.gather(database(), ledger, PROVED, kept)
    of_float32 = words(data, "float32")
    assert {k: of_float32[k] for k in ("eager", "compiled", "litert", "onnx", "gradient")} == {
        "eager": "2",
        "compiled": "1/2",
        "litert": "1/2",
        "onnx": ".",
        "gradient": ".",
    }
    assert words(data, "int32")["eager"] == "j"
    assert words(data, "int32")["gradient"] == "-"
    assert words(data, "bfloat16")["onnx"] == "x"
    assert data["seen"]["eager"]["since"] == 2
    assert data["seen"]["tensorflow"] == {}


def test_rows_that_are_not_there_are_counted():
    kept = {"versions": {"litert": VERSIONS}, "cells": {"cumsum_float32": ".p..."}}
    data = support.gather(database(), [], PROVED, kept)
    assert words(data, "float32")["litert"] == "1/1/2"
    page = support.pages(data)["cumulative.md"]
    assert "in part: float32 1 of 1 and 1 not run" in page


@pytest.mark.parametrize(("ran", "word"), [(2, "2"), (1, ".")])
def test_a_family_of_which_less_than_half_ran_is_not_run(ran, word):
    run = RUN | {"harnesses": ran, "of": 4, "families": {"cumulative": {"harnesses": ran}}}
    data = support.gather(database(), [], {"gradients": [run]}, {})
    assert words(data, "float32")["gradient"] == word


def test_a_page_says_dtypes_and_when_they_were_seen():
    ledger = [limitation(dtypes=("int32",)), limitation(harness=("cumsum_reverse_float32",))]
    page = support.pages(support.gather(database(), ledger, PROVED, {}))["cumulative.md"]
    assert "| cumsum | bfloat16; in part: float32 1 of 2; no: int32 |" in page
    on = "| eager | 0.12.0 | 2.21.0 | 3.12.1 | 2026-11-28 | 7d40e7c | 2 (+2 since) |"
    assert on in page
    assert "| LiteRT | | | | never | unknown | none |" in page


def test_the_data_have_a_line_for_each_primitive():
    data = support.gather(database(), [], PROVED, {})
    text = support.text_of(data)
    assert json.loads(text)["uses"] == data["uses"]
    assert text.count('\n"cumsum": ') == 1


def test_each_page_goes_stale_with_one_digit(tmp_path):
    texts = support.files()
    folder = tmp_path / "support"
    shutil.copytree(support.FOLDER, folder)
    assert check.stale(texts, folder, "support") == []
    for name, text in texts.items():
        at = next(i for i in range(len(text) - 1, 0, -1) if text[i].isdigit())
        (folder / name).write_text(text[:at] + str(9 - int(text[at])) + text[at + 1 :])
    assert len(check.stale(texts, folder, "support")) == len(texts)
    assert sorted(path.name for path in folder.iterdir()) == sorted(texts)
