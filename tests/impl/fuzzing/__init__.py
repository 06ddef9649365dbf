"""Generators for the property tests: shape specs with sizes, symbolic arithmetic, programs."""
