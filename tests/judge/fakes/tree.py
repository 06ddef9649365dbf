"""Every result is in a list."""

from tests.judge.fakes import spoiled_by

convert = spoiled_by(lambda result: [result])
