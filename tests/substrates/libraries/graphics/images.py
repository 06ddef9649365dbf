"""Programs of tensorflow_graphics.image and nn: colours, mattes, losses and metrics."""

from __future__ import annotations

import numpy as np

from tests.substrates.libraries.graphics.calling import EVERYWHERE, VALUES, add_calls, module
from tests.substrates.libraries.programs import Program, adder

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, EVERYWHERE)

_COLOURS = np.array([[0.2, 0.9, 0.01], [0.5, 0.03, 0.7]])
_SETS = np.sin(np.arange(24.0)).reshape(2, 4, 3), np.cos(np.arange(30.0)).reshape(2, 5, 3)

for _path, _calls in {
    "image.color_space.linear_rgb": {"from_srgb": (_COLOURS,)},
    "image.color_space.srgb": {"from_linear_rgb": (_COLOURS,)},
    "nn.loss.chamfer_distance": {"evaluate": _SETS},
    "nn.loss.hausdorff_distance": {"evaluate": _SETS},
}.items():
    add_calls(PROGRAMS, _path, _calls)

_TRUTH = np.array([[0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0]])
_GUESS = np.array([[0.2, 0.9, 0.4, 0.7, 0.8], [0.6, 0.9, 0.1, 0.3, 0.2]])
for _metric in ("fscore", "precision", "recall"):

    @program(f"nn.metric.{_metric}.evaluate", places=VALUES)
    def _(tf, graphics, _metric=_metric):
        evaluate = module(graphics, f"nn.metric.{_metric}").evaluate
        return evaluate(tf.constant(_TRUTH), tf.round(tf.constant(_GUESS)))


@program("nn.metric.intersection_over_union.evaluate", places=VALUES)
def _(tf, graphics):
    evaluate = module(graphics, "nn.metric.intersection_over_union").evaluate
    truth, guess = tf.constant(_TRUTH[..., None]), tf.round(tf.constant(_GUESS[..., None]))
    return evaluate(truth, guess)
