"""tf.image: patches, layout, sizes, colours and measures of images."""

from tf_substrates.numpy.images import (  # noqa: F401  # each registers its names
    colours,
    layout,
    measures,
    patches,
    similarity,
    sizes,
)
