"""Every result is a float64."""

import jax
import numpy as np

from tests.judge.fakes import spoiled_by

convert = spoiled_by(lambda result: jax.tree.map(lambda x: x.astype(np.float64), result))
