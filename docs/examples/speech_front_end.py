"""The front end of a speech recogniser in ONNX: samples in, log mel spectrogram out.

    python docs/examples/speech_front_end.py [FOLDER]

It needs the extra `onnx`.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import jax2tf

RATE, FRAME, HOP, BANDS = 8000, 256, 128, 20


def filters():
    """The mel filterbank, [FRAME // 2 + 1, BANDS]: triangles, even in mel, over the frequencies."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, highest, BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(FRAME, 1 / RATE)[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies - low) / (middle - low)
    falling = (high - frequencies) / (high - middle)
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def log_mel(params, samples):
    """Log mel energies [b, frames, BANDS] of samples [b, n]."""
    starts = np.arange(0, samples.shape[1] - FRAME + 1, HOP)
    frames = samples[:, starts[:, None] + np.arange(FRAME)]
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(FRAME) / FRAME)
    power = jnp.abs(jnp.fft.rfft(frames * window)) ** 2
    return jnp.log(power @ params["filters"] + 1e-6)


def tones(frequencies):
    """A second of a tone for each frequency, [b, RATE]."""
    time = np.arange(RATE) / RATE
    return np.sin(2 * np.pi * np.asarray(frequencies)[:, None] * time).astype(np.float32)


def main(folder=None):
    """Exports for every batch and runs the file in ONNX Runtime; gives the loudest bands."""
    import onnxruntime

    path = pathlib.Path(folder or tempfile.mkdtemp(), "speech_front_end.onnx")
    params = {"filters": filters()}
    result = jax2tf.export(
        log_mel, params, f"b, {RATE}", path, verify=[tones([300, 440]), tones([1000])]
    )
    print(result)

    session = onnxruntime.InferenceSession(str(path))
    samples = tones([200, 1000, 3000])
    (energies,) = session.run(None, {"samples": samples})
    difference = float(np.abs(energies - jax.jit(log_mel)(params, samples)).max())
    bands = energies.mean(axis=1).argmax(axis=1)
    print(f"bands {bands} are the loudest; largest difference to JAX {difference:.1e}")
    return difference, list(bands)


if __name__ == "__main__":
    main(*sys.argv[1:])
