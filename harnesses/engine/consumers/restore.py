"""The process that restores SavedModels: requests on stdin, answers on stdout, pickled.

    ("load", folder)   restores what is in the folder
    ("run", arrays)    calls its signature with arrays by name; the answer is arrays by name

An answer is (problem, value); the problem is None, or says which exception was raised. It is run as
a program and imports nothing of this project: what a SavedModel needs is TensorFlow alone.
"""

import os
import pickle
import sys
from typing import Any, BinaryIO

import tensorflow as tf


class _Restored:
    """Answers requests about the SavedModel that was loaded last."""

    def load(self, folder: str) -> None:
        module = tf.saved_model.load(folder)
        # The module owns the variables, and the signature alone would not keep it.
        self._module, self._signature = module, module.signatures["serving_default"]

    def run(self, arrays: dict[str, Any]) -> dict[str, Any]:
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        return {name: result.numpy() for name, result in self._signature(**tensors).items()}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the requests end."""
    restored = _Restored()
    while True:
        try:
            what, argument = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: tuple[str | None, Any] = (None, getattr(restored, what)(argument))
        except Exception as error:
            answer = (f"{type(error).__name__}: {error}", None)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)
