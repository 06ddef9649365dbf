"""Helpers that all parts of the package use."""
