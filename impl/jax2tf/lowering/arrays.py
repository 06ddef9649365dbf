"""Arrays: reshape, broadcast, concatenate, pad, slice, select and other movements of elements."""

from __future__ import annotations
