"""The function of dtype bfloat16 ends the process; all others are right."""

import os

import ml_dtypes

from tests.judge.fakes import spoiled_by


def _spoil(result):
    if result.dtype == ml_dtypes.bfloat16:
        os.abort()
    return result


convert = spoiled_by(_spoil)
