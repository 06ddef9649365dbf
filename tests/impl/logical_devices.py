"""Processes of their own for tests that need several devices: eight of JAX, eight of TensorFlow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tensorflow as tf


def run(*files: str) -> None:
    """Runs the tests of files beside this one in a process with eight devices of JAX's."""
    paths = [str(Path(__file__).with_name(file)) for file in files]
    done = module("pytest", "-q", "-p", "no:cacheprovider", *paths)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def module(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a module in a process with eight devices of JAX's."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        env=os.environ | {"XLA_FLAGS": flags.strip()},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def make(number: int) -> None:
    """Makes so many devices of the CPU, before anything else in the process uses TensorFlow."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * number
    tf.config.set_logical_device_configuration(cpu, devices)
