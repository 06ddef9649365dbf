"""Targets: the readers of graphs that `convert` makes, the ops they take, and their mistakes."""
