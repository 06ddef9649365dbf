"""The database of the other direction: TensorFlow functions that JAX calls through call_tf.

One module for each part of TensorFlow. A harness here is named after the function
("tf.math.sin_float32"); its result is held against TensorFlow's own, op by op, compiled,
differentiated in reverse and forward, and mapped (harnesses/engine/call_tf.py).
"""

from harnesses.harness import Family

family = Family("call_tf")
