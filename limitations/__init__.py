"""The ledger: what is known not to hold, as data, one TOML file a family.

Files of an engine, a device, a lowering or a direction stand in folders of their kind.

An entry declares cells that fail and how they fail. It is proved in both directions after every
run (`limitations.check`): a failure without an entry is an error, and so is an entry without its
failure.

    [[limitation]]
    primitive = "erf_inv"               # or a list; required
    dtypes = ["bfloat16", "float16"]    # conditions; one that is absent holds for every cell
    modes = ["compiled"]
    expect = "error"                    # error | mismatch | crash | timeout; required
    phase = "run"                       # of an error: trace | lower | run; required there
    exception = "InvalidArgumentError"  # of an error: its type; required there
    message = "not supported"           # a regular expression that the message contains
    reason = "TensorFlow has ..."       # for people; required
    link = "https://..."

Without `modes` it speaks of `eager`, `graph` and `compiled`; the modes of derivatives (all of them:
`gradient`) and of batches have to be named. Further conditions: `harness` (a glob of names, or a
list of them), `params` (a table, compared as text), `devices`, `lowerings`, `x64`, `jax` and
`tensorflow` (version specifiers), `processor` (features that it has or, as `!avx512_bf16`, has
not). `side = "jax"` says that JAX itself fails. A mismatch declares
`ulps`, the largest error, or a `message`; `ulps = inf` needs a `note` that says why no number
bounds it. How far results that pass may be from JAX's is in `tolerances.toml` (see there).
"""
