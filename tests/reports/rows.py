"""Made-up rows of results."""


def row(harness: str = "sin_float32", **changed) -> dict:
    """A row of results: a pass, unless `changed` says otherwise."""
    primitive, _, dtype = harness.partition("_")
    return {
        "harness": harness,
        "family": "elementwise",
        "primitive": primitive,
        "dtype": dtype,
        "x64": False,
        "device": "cpu",
        "lowering": "xla",
        "mode": "eager",
        "outcome": "pass",
        "phase": None,
        "exception": None,
        "message": None,
        "ulps": 0.0,
        "tolerance": 4,
        "nodes": None,
        "seconds": 0.01,
        "params": "",
        "limitation": None,
        "verdict": "ok",
        "jax": "0.12.0",
        "tensorflow": "2.21.0",
        "python": "3.12.3",
        "impl": "jax2tf",
    } | changed


def failure(harness: str = "sin_float32", **changed) -> dict:
    """A row of an undeclared failure in the phase "run"."""
    failed = {
        "outcome": "error",
        "phase": "run",
        "exception": "NotFoundError",
        "message": "Could not find device for node\nsecond line",
        "ulps": None,
        "verdict": "red",
    }
    return row(harness, **failed | changed)
