"""Names of values in the names of tests."""

import re


def shown(value: object) -> str:
    """The value's repr on one line, without addresses: workers have to agree on names of tests."""
    return " ".join(re.sub(r" at 0x[0-9a-f]+", "", repr(value)).split())
