"""A model of JAX on Ray Data and Ray Serve, on a local cluster."""

from __future__ import annotations

import socket

import numpy as np

from tests.test_examples import program


def test_ray_data_and_serve(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = program("ray_data_and_serve").main
    in_jax, by_data, by_serve, by_handle = run(str(tmp_path), port)
    np.testing.assert_array_equal(by_data, in_jax)
    assert by_serve == by_handle == in_jax[:5].tolist()
