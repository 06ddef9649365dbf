"""A graph of our own: ops and tensors without TensorFlow.

graph.py            nodes, tensors, graphs
from_tensorflow.py  reads TensorFlow's graph
inlining.py         one graph of all functions: calls, loops, branches
simplifying.py      computes what is known: shapes.py and folding.py; pruning.py removes the rest
"""
