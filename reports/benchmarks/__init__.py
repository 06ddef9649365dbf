"""Benchmarks: programs, contenders that take turns, and the tables of what was measured."""
