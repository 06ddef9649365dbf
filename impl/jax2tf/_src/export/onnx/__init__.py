"""ONNX files: the engine of `export`, the writer of the graph, and weights in fewer bits.

engine.py        the format of `export`; functions.py: TensorFlow functions for the writer
writer.py        writes a graph by rules (registry.py, rules/); lstm.py: an op that ONNX has
passes.py        passes over the written model; transposes.py: those around convolutions
weights.py       weights in fewer bits
"""
