"""The ops that rules make, each under one name, and what rules ask of the graph that they go into.

Rules take TensorFlow's functions from here and its single ops from `ops.raw`; they import nothing
of TensorFlow. A test checks this, so that one place decides how an op is made. The names are
TensorFlow's without the module: `ops.where` is tf.where, and `ops.qr` is tf.linalg.qr. XLA's ops,
for which TensorFlow has no public name, are `ops.xla`.
"""

from __future__ import annotations

import tensorflow as tf

from jax2tf._src import compat
from jax2tf._src.ops import functions
from jax2tf._src.ops.raw_ops import raw as raw

xla = compat.xla.xla_ops

# Arrays: creation, indexing, shapes.
broadcast_to = tf.broadcast_to
concat = functions.concat
constant = functions.constant
convert_to_tensor = tf.convert_to_tensor
ensure_shape = functions.ensure_shape
expand_dims = functions.expand_dims
eye = tf.eye
fill = tf.fill
gather = functions.gather
gather_nd = tf.gather_nd
identity = functions.identity
one_hot = tf.one_hot
ones = tf.ones
ones_like = tf.ones_like
pad = tf.pad
range = tf.range
repeat = tf.repeat
reshape = functions.reshape
reverse = tf.reverse
shape = tf.shape
size = tf.size
slice = tf.slice
split = functions.split
squeeze = functions.squeeze
stack = tf.stack
strided_slice = tf.strided_slice
tile = tf.tile
transpose = functions.transpose
unstack = functions.unstack
where = functions.where
zeros = tf.zeros
zeros_like = tf.zeros_like

# Elementwise.
abs = tf.abs
add = functions.add
bitcast = functions.bitcast
cast = functions.cast
complex = tf.complex
cos = functions.cos
cosh = functions.cosh
equal = functions.equal
exp = functions.exp
floor = functions.floor
greater = functions.greater
greater_equal = functions.greater_equal
less = functions.less
logical_and = functions.logical_and
logical_or = functions.logical_or
maximum = functions.maximum
minimum = functions.minimum
not_equal = functions.not_equal
pow = tf.pow
sign = tf.sign
sin = functions.sin
sinh = functions.sinh
sqrt = functions.sqrt
square = functions.square
tanh = functions.tanh

atan2 = functions.atan2
bitwise_and = functions.bitwise_and
bitwise_or = functions.bitwise_or
bitwise_xor = functions.bitwise_xor
conj = tf.math.conj
erf = functions.erf
imag = tf.math.imag
is_finite = functions.is_finite
is_inf = functions.is_inf
is_nan = functions.is_nan
left_shift = functions.left_shift
log = functions.log
real = tf.math.real
reciprocal = tf.math.reciprocal
right_shift = functions.right_shift
squared_difference = tf.math.squared_difference

# Along dimensions.
argmax = tf.argmax
argmin = tf.argmin
cumprod = tf.math.cumprod
cumsum = tf.cumsum
cumulative_logsumexp = tf.math.cumulative_logsumexp
reduce_all = functions.reduce_all
reduce_any = functions.reduce_any
reduce_max = functions.reduce_max
reduce_min = functions.reduce_min
reduce_prod = functions.reduce_prod
reduce_sum = functions.reduce_sum
top_k = tf.math.top_k

# Matrices and transforms.
band_part = tf.linalg.band_part
cholesky = tf.linalg.cholesky
diag = tf.linalg.diag
diag_part = tf.linalg.diag_part
eigh = tf.linalg.eigh
fft = tf.signal.fft
fft2d = tf.signal.fft2d
fft3d = tf.signal.fft3d
ifft = tf.signal.ifft
ifft2d = tf.signal.ifft2d
ifft3d = tf.signal.ifft3d
irfft = tf.signal.irfft
irfft2d = tf.signal.irfft2d
irfft3d = tf.signal.irfft3d
matmul = functions.matmul
matrix_transpose = tf.linalg.matrix_transpose
matvec = tf.linalg.matvec
qr = tf.linalg.qr
rfft = tf.signal.rfft
rfft2d = tf.signal.rfft2d
rfft3d = tf.signal.rfft3d
set_diag = tf.linalg.set_diag
svd = tf.linalg.svd
triangular_solve = tf.linalg.triangular_solve

# Networks.
avg_pool2d = tf.nn.avg_pool2d
conv2d = functions.conv2d
conv2d_transpose = tf.nn.conv2d_transpose
conv3d = tf.nn.conv3d
conv3d_transpose = tf.nn.conv3d_transpose
elu = tf.nn.elu
gelu = tf.nn.gelu
leaky_relu = tf.nn.leaky_relu
log_softmax = tf.nn.log_softmax
max_pool2d = tf.nn.max_pool2d
relu = tf.nn.relu
relu6 = tf.nn.relu6
softmax = tf.nn.softmax

# Control flow, calls of Python, checks, random numbers.
assert_equal = tf.debugging.assert_equal
cond = tf.cond
numpy_function = tf.numpy_function
scan = tf.scan
switch_case = tf.switch_case
uniform = tf.random.uniform
while_loop = tf.while_loop

# The graph under construction, functions in it, and what is known of a tensor.
TensorArray = tf.TensorArray
TensorSpec = tf.TensorSpec
computation = functions.computation
control_dependencies = tf.control_dependencies
executing_eagerly = tf.executing_eagerly
function = tf.function
functions_run_eagerly = tf.config.functions_run_eagerly
get_current_name_scope = tf.get_current_name_scope
get_default_graph = tf.compat.v1.get_default_graph
get_static_value = tf.get_static_value
is_symbolic_tensor = tf.is_symbolic_tensor
is_tensor = tf.is_tensor
name_scope = tf.name_scope
