"""LiteRT files from a graph of our own, without TensorFlow.

model.py         what a file holds: values, ops, graphs
writer.py        writes a graph by rules (registry.py, rules/)
idioms.py        ops of the graph that are one op of LiteRT
passes.py        passes over the written model: redundant.py and identities.py, fusions.py (biases,
                 activations), moves.py (loops); uses.py: what they share
packing.py       the file, in LiteRT's schema; versions.py: the versions of its ops
own_graphs.py    the graph of a signature
"""
