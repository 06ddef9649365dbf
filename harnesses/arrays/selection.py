"""`select_n`: of one to seven cases, by scalars, and by selectors beyond both ends."""

import numpy as np
from jax import lax

from harnesses.arrays import family
from harnesses.arrays.normal import SOME, define_normal
from harnesses.harness import Bools, Integers, Values


@family.builder
def selections() -> None:
    """`select_n` of one to seven cases, by scalars, and of operands of special shapes."""
    for dtype in SOME:
        _selections_of_each_count(dtype)
        _selections_by_bools(dtype)
        _selections_of_special_shapes(dtype)


def _selections_of_each_count(dtype: np.dtype) -> None:
    for count in (1, 2, 4, 7):
        define_normal(
            "select_n",
            f"of_{count}",
            lax.select_n,
            # Selectors beyond both ends take the first and the last case.
            Integers((4, 5), np.int32, -2, count + 2),
            *[(4, 5)] * count,
            dtype=dtype,
            params={"cases": count},
        )
        define_normal(
            "select_n",
            f"of_{count}_by_scalar",
            lax.select_n,
            Values(count - 1, np.int32),
            *[(2, 3)] * count,
            dtype=dtype,
            params={"cases": count},
        )


def _selections_by_bools(dtype: np.dtype) -> None:
    for predicate in (False, True):
        define_normal(
            "select_n",
            f"by_{predicate}".lower(),
            lax.select_n,
            Values(predicate, bool),
            (2, 3),
            (2, 3),
            dtype=dtype,
        )


def _selections_of_special_shapes(dtype: np.dtype) -> None:
    define_normal("select_n", "scalars", lax.select_n, Bools(()), (), (), dtype=dtype)
    define_normal("select_n", "empty", lax.select_n, Bools((0, 2)), (0, 2), (0, 2), dtype=dtype)
    define_normal(
        "select_n",
        "rank_9",
        lax.select_n,
        Bools((1, 2) * 4 + (1,)),
        *[(1, 2) * 4 + (1,)] * 2,
        dtype=dtype,
    )


@family.builder
def selections_with_one_dtype() -> None:
    """`select_n` of a single case, and of cases with NaN that are not selected."""
    define_normal(
        "select_n", "of_one_by_bool", lax.select_n, Bools((3,)), (3,), params={"cases": 1}
    )
    define_normal(
        "select_n",
        "keeps_nan_out",
        lambda p, x: lax.select_n(p, x / 0, x),
        Bools((6,)),
        (6,),
    )
