"""The database of the third direction: programs written against TensorFlow, without TensorFlow.

One module for each part of TensorFlow. A harness here is named after the function
("tf.math.sin_float32"); its result on NumPy and on JAX is held against TensorFlow's own
(harnesses/engine/substrates.py).
"""

from harnesses.harness import Family

family = Family("substrates")
