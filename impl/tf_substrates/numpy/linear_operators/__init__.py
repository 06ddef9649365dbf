"""tf.linalg.LinearOperator: matrices that know their structure, in batches.

- `base`: what every operator has, computed from its dense matrix where nothing better is known.
- `dense`: full and lower triangular matrices.
- `diagonal`: diagonals, identities and their multiples.
- `composed`: adjoints, inverses and products of other operators.
- `blocks`: Kronecker products, blocks of operators, low-rank updates.
"""

from __future__ import annotations

from tf_substrates.numpy.linear_operators import (  # noqa: F401
    base,
    blocks,
    composed,
    dense,
    diagonal,
    special_matrices,
)
