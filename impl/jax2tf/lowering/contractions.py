"""Contractions: dot_general and ragged_dot_general."""

from __future__ import annotations
