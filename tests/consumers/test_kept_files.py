"""The kept files of TensorFlow.js give, in the installed version, the numbers that they gave."""

from __future__ import annotations

import types

import pytest

from jax2tf._src.export import tfjs
from tests import files


@pytest.mark.parametrize(
    "file", sorted(files.FOLDER.glob("*/model.tfjs")), ids=lambda file: file.parent.name
)
def test_tfjs_gives_its_numbers(file):
    values = files.values(file.parent)
    signature = types.SimpleNamespace(name="serving_default")
    outputs = {"serving_default": list(values["model"])}
    run = tfjs.load(file, types.SimpleNamespace(signatures=[signature], outputs=outputs))
    files.assert_gives(lambda x: run("serving_default", x), values["inputs"], values["model"])
