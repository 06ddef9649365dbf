"""The vocabulary of the database: `define`, argument makers, dtype groups, tolerances.

A family needs nothing else:

    from harnesses.harness import FLOATS, Normal, define

    for dtype in FLOATS:
        define("sin", "", jax.lax.sin, [Normal((3, 4), dtype)], dtype=dtype)
"""

from harnesses.harness.arguments import (
    Arg,
    Bools,
    Fill,
    Integers,
    Normal,
    Uniform,
    Values,
    close_integers,
    edge_pairs,
    edge_values,
    infinite_numbers,
    without_subnormals,
)
from harnesses.harness.database import all_harnesses, harnesses_elsewhere
from harnesses.harness.definition import (
    CALL_TF,
    CONVERT,
    DEFAULT_ULPS,
    DIRECTIONS,
    EXACT_FAMILIES,
    SUBSTRATES,
    Harness,
)
from harnesses.harness.dtypes import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOATS,
    INT2,
    INT4,
    INTEGERS,
    INTS,
    NARROW,
    NUMERIC,
    REALS,
    UINTS,
    WIDE_INTEGERS,
    WITHOUT_TENSORFLOW,
    is_complex,
    is_float,
    is_integer,
)
from harnesses.harness.families import Family, define
from harnesses.harness.functions import Use, define_functions, each, public_names, use

__all__ = [
    "ALL",
    "BOOL",
    "CALL_TF",
    "COMPLEX",
    "CONVERT",
    "DEFAULT_ULPS",
    "DIRECTIONS",
    "EXACT_FAMILIES",
    "FLOAT4",
    "FLOAT8",
    "FLOATS",
    "INT2",
    "INT4",
    "INTEGERS",
    "INTS",
    "NARROW",
    "NUMERIC",
    "REALS",
    "SUBSTRATES",
    "UINTS",
    "WIDE_INTEGERS",
    "WITHOUT_TENSORFLOW",
    "Arg",
    "Bools",
    "Family",
    "Fill",
    "Harness",
    "Integers",
    "Normal",
    "Uniform",
    "Use",
    "Values",
    "all_harnesses",
    "close_integers",
    "define",
    "define_functions",
    "each",
    "edge_pairs",
    "edge_values",
    "harnesses_elsewhere",
    "infinite_numbers",
    "is_complex",
    "is_float",
    "is_integer",
    "public_names",
    "use",
    "without_subnormals",
]
