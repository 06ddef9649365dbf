"""A distribution with a sampler of its own and a derivative of its own."""

import tensorflow as tf

from tf_substrates import authors
from tf_substrates.authors import prefer_static as ps
from tf_substrates.authors import samplers


def _softplus_fwd(x):
    # log(1 + exp(x)), which does not overflow.
    return tf.maximum(x, 0) + tf.math.log1p(tf.exp(-tf.abs(x))), x


def _softplus_bwd(x, upstream):
    return upstream * tf.sigmoid(x)


def _softplus_jvp(primals, tangents):
    result, x = _softplus_fwd(*primals)
    return result, tangents[0] * tf.sigmoid(x)


@authors.custom_gradient(vjp_fwd=_softplus_fwd, vjp_bwd=_softplus_bwd, jvp_fn=_softplus_jvp)
def softplus(x):
    """log(1 + exp(x)). Its derivative at 0 is 1/2, which that of max(x, 0) is not."""
    return _softplus_fwd(x)[0]


class Logistic:
    """The distribution of `loc + scale * log(u / (1 - u))`, where `u` is uniform.

    Args:
      loc: the mean, of floats.
      scale: positive, of the dtype of `loc`.
    """

    def __init__(self, loc, scale):
        self.loc = tf.convert_to_tensor(loc)
        self.scale = tf.convert_to_tensor(scale, self.loc.dtype)

    def batch_shape(self):
        """The shape of the parameters: an array where it is known, else a tensor."""
        return ps.broadcast_shape(ps.shape(self.loc), ps.shape(self.scale))

    def log_prob(self, x):
        z = (tf.convert_to_tensor(x, self.loc.dtype) - self.loc) / self.scale
        return -z - 2 * softplus(-z) - tf.math.log(self.scale)

    def sample(self, sample_shape, seed):
        """Samples of shape `sample_shape + batch_shape`, which a seed determines."""
        shape = ps.concat(
            [authors.convert_to_shape_tensor(sample_shape), self.batch_shape()], axis=0
        )
        seed = samplers.sanitize_seed(seed, salt="logistic")
        u = samplers.uniform(shape, seed=seed, dtype=self.loc.dtype)
        # u may be 0, and nothing is lost if it is moved by half of a step.
        u = u * (1 - 2.0**-20) + 2.0**-21
        return self.loc + self.scale * (tf.math.log(u) - tf.math.log1p(-u))

    def score(self, x):
        """The gradient of the sum of `log_prob` in `loc` and `scale`."""

        def total(loc, scale):
            return tf.reduce_sum(Logistic(loc, scale).log_prob(x))

        return authors.value_and_gradient(total, self.loc, self.scale)[1]
