"""Every result has one axis more."""

import jax

from tests.judge.fakes import spoiled_by

convert = spoiled_by(lambda result: jax.tree.map(lambda x: x[None], result))
