"""Shardings over the devices of a mesh, and programs of each device with collectives."""
