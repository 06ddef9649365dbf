"""Export in one call, in the order of a call:

exporting.py     the public function
formats.py       which format is meant, and what it needs (packages.py)
checkpoints.py   parameters that stand in a file
signatures.py    what the caller wrote about inputs; sizes.py: sizes for open dimensions
verification.py  what JAX gives, and what the engine does; measures.py: how near is near enough
job.py           what a format is given to write; program.py: functions over their variables
savedmodel.py, litert.py, onnx.py, openvino.py, tfjs.py   the formats
calibration.py   what has no range for 8 bits
placing.py       written beside and renamed
standing.py      what may be replaced there
progress.py      what is under way
result.py        what came of it
command.py       the command line
"""
