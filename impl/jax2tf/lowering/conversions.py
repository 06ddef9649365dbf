"""Conversions between dtypes: convert_element_type, bitcast_convert_type, reduce_precision."""

from __future__ import annotations
