"""Convolutions: conv_general_dilated."""

from __future__ import annotations
