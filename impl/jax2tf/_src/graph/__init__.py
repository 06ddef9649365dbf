"""A graph of our own: ops and tensors without TensorFlow.

graph.py            nodes, tensors, graphs
make.py             makes a graph node by node; ops/ has the functions that rules call
from_tensorflow.py  reads TensorFlow's graph
inlining.py         one graph of all functions: calls, loops, branches
inference.py        dtypes and shapes, by the functions of shapes/
simplifying.py      computes what is known: folding.py, values.py; pruning.py removes the rest
"""
