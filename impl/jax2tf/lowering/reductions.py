"""Reductions over whole axes."""

from __future__ import annotations
