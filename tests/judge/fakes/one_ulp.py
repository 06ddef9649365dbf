"""Every number is the next larger one."""

import jax
import numpy as np

from tests.judge.fakes import spoiled_by

convert = spoiled_by(lambda result: jax.tree.map(lambda x: np.nextafter(x, np.inf), result))
