"""Shardings over the devices of a mesh, and programs of each device with collectives."""

from harnesses.harness import Family

family = Family("sharding")
