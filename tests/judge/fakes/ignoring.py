"""Takes enable_xla=False, and lowers with XLA's ops all the same."""

import jax2tf


def convert(fun, *, enable_xla, **options):
    return jax2tf.convert(fun, **options)
