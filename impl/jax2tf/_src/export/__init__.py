"""Writes a function as a file of an engine, and verifies it there, in one call.

exporting.py       the public function
formats.py         the table of formats; packages.py: optional packages
checkpoints.py     parameters from a file
signatures.py      named inputs from the caller's specs; input_specs.py: one spec; constraints.py
sizes.py           sizes for open dimensions
verification.py    runs JAX and the engine; tolerances.py: how far they may differ
job.py             one export under way; program.py: its TensorFlow functions and variables
savedmodel.py, litert.py, onnx.py, openvino.py, tfjs.py   the formats
weights.py         weights of 4, 8 and 16 bits, with a module for each format
calibration.py     checks of inputs and weights for 8 bits; widening.py: float32 for bfloat16
destination.py     writes beside the path and renames; obstacles.py: paths not to be replaced
disk.py            errors of the disk
progress.py        reports slow steps
result.py          the report
command.py         the command line
"""
