"""The converter as a command; `harnesses.engine.consumers.tfjs.converter` says what it does."""

import argparse
from pathlib import Path

from harnesses.engine.consumers.tfjs.converter import write

parser = argparse.ArgumentParser(description="writes a SavedModel as a model of TensorFlow.js")
parser.add_argument("saved_model", type=Path, help="the folder of the SavedModel")
parser.add_argument("folder", type=Path, help="where model.json and its weights go")
arguments = parser.parse_args()
write(arguments.saved_model, arguments.folder)
