"""Functions that several rules share: they make ops and register nothing."""
