"""Nothing is wrong."""

from tests.judge.fakes import spoiled_by

convert = spoiled_by(lambda result: result)
