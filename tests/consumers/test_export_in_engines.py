"""Tests of `jax2tf.export` that tests/impl runs for the formats of TensorFlow, for all engines."""

from __future__ import annotations

from tests.impl.export_programs import FILES
from tests.impl.test_call_tf_export import test_captured_variables_are_written
from tests.impl.test_export_errors import (
    SUFFIXES,
    folder,
    test_a_disk_that_is_full,
    test_a_library_that_cannot_save_its_file,
    test_names_of_parameters,
)

__all__ = [
    "folder",
    "test_a_disk_that_is_full",
    "test_a_library_that_cannot_save_its_file",
    "test_captured_variables_are_written",
    "test_names_of_parameters",
]


def test_all_engines_are_here():
    assert set(FILES) == {"savedmodel", "litert", "onnx", "openvino"}
    assert set(SUFFIXES) == {".tflite", ".onnx", ".xml", ""}
