"""Finds the equation at which a file, or a graph, begins to differ from JAX.

locating.py   the public function; answer.py: its result; page.py: the result as HTML
program.py    the function as one flat list of equations, run by JAX
exporting.py  the same program as a file of the same kind, also with each result as an output
tensors.py    the tensors inside a file, by name; matching.py: which result of JAX each is
finding.py    the first wrong equation; exactness.py: how far off a result may be
parties.py    who is wrong
"""
