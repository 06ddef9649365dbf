"""The ops that rules make, each under one name, and what rules ask of the graph that they go into.

Rules take TensorFlow's functions from here and its single ops from `ops.raw`; they import nothing
of TensorFlow. A test checks this, so that one place decides how an op is made. The names are
TensorFlow's without the module: `ops.where` is tf.where, and `ops.qr` is tf.linalg.qr. XLA's ops,
for which TensorFlow has no public name, are `ops.xla`.
"""

from __future__ import annotations

from jax2tf._src import compat
from jax2tf._src.ops import functions
from jax2tf._src.ops.functions import by_tensorflow
from jax2tf._src.ops.raw_ops import raw as raw

xla = compat.xla.xla_ops

# Arrays: creation, indexing, shapes.
broadcast_to = by_tensorflow("broadcast_to")
concat = functions.concat
constant = functions.constant
convert_to_tensor = by_tensorflow("convert_to_tensor")
dynamic_update_slice = functions.dynamic_update_slice
ensure_shape = functions.ensure_shape
expand_dims = functions.expand_dims
fill = by_tensorflow("fill")
gather = functions.gather
gather_nd = by_tensorflow("gather_nd")
identity = functions.identity
one_hot = by_tensorflow("one_hot")
ones = by_tensorflow("ones")
ones_like = by_tensorflow("ones_like")
pad = by_tensorflow("pad")
range = by_tensorflow("range")
repeat = by_tensorflow("repeat")
reshape = functions.reshape
reverse = by_tensorflow("reverse")
shape = by_tensorflow("shape")
size = by_tensorflow("size")
slice = by_tensorflow("slice")
split = functions.split
squeeze = functions.squeeze
stack = by_tensorflow("stack")
strided_slice = by_tensorflow("strided_slice")
tile = by_tensorflow("tile")
transpose = functions.transpose
unstack = functions.unstack
where = functions.where
zeros = by_tensorflow("zeros")
zeros_like = by_tensorflow("zeros_like")

# Elementwise.
abs = by_tensorflow("abs")
add = functions.add
bitcast = functions.bitcast
cast = functions.cast
complex = by_tensorflow("complex")
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
pow = by_tensorflow("pow")
sign = by_tensorflow("sign")
sin = functions.sin
sinh = functions.sinh
sqrt = functions.sqrt
square = functions.square
tanh = functions.tanh

atan2 = functions.atan2
bitwise_and = functions.bitwise_and
bitwise_or = functions.bitwise_or
bitwise_xor = functions.bitwise_xor
conj = by_tensorflow("math.conj")
erf = functions.erf
imag = by_tensorflow("math.imag")
is_finite = functions.is_finite
is_inf = functions.is_inf
is_nan = functions.is_nan
left_shift = functions.left_shift
log = functions.log
real = by_tensorflow("math.real")
reciprocal = by_tensorflow("math.reciprocal")
right_shift = functions.right_shift
squared_difference = by_tensorflow("math.squared_difference")

# Along dimensions.
argmax = by_tensorflow("argmax")
argmin = by_tensorflow("argmin")
cumprod = by_tensorflow("math.cumprod")
cumsum = by_tensorflow("cumsum")
cumulative_logsumexp = by_tensorflow("math.cumulative_logsumexp")
reduce_all = functions.reduce_all
reduce_any = functions.reduce_any
reduce_max = functions.reduce_max
reduce_min = functions.reduce_min
reduce_prod = functions.reduce_prod
reduce_sum = functions.reduce_sum
top_k = by_tensorflow("math.top_k")

# Matrices and transforms.
band_part = by_tensorflow("linalg.band_part")
cholesky = by_tensorflow("linalg.cholesky")
diag_part = by_tensorflow("linalg.diag_part")
eigh = by_tensorflow("linalg.eigh")
fft = by_tensorflow("signal.fft")
fft2d = by_tensorflow("signal.fft2d")
fft3d = by_tensorflow("signal.fft3d")
ifft = by_tensorflow("signal.ifft")
ifft2d = by_tensorflow("signal.ifft2d")
ifft3d = by_tensorflow("signal.ifft3d")
irfft = by_tensorflow("signal.irfft")
irfft2d = by_tensorflow("signal.irfft2d")
irfft3d = by_tensorflow("signal.irfft3d")
matmul = functions.matmul
matrix_transpose = by_tensorflow("linalg.matrix_transpose")
qr = by_tensorflow("linalg.qr")
rfft = by_tensorflow("signal.rfft")
rfft2d = by_tensorflow("signal.rfft2d")
rfft3d = by_tensorflow("signal.rfft3d")
set_diag = by_tensorflow("linalg.set_diag")
svd = by_tensorflow("linalg.svd")
triangular_solve = by_tensorflow("linalg.triangular_solve")

# Networks.
avg_pool2d = by_tensorflow("nn.avg_pool2d")
conv2d = functions.conv2d
conv2d_transpose = by_tensorflow("nn.conv2d_transpose")
conv3d = by_tensorflow("nn.conv3d")
conv3d_transpose = by_tensorflow("nn.conv3d_transpose")
elu = by_tensorflow("nn.elu")
gelu = by_tensorflow("nn.gelu")
leaky_relu = by_tensorflow("nn.leaky_relu")
log_softmax = by_tensorflow("nn.log_softmax")
max_pool2d = by_tensorflow("nn.max_pool2d")
relu = by_tensorflow("nn.relu")
relu6 = by_tensorflow("nn.relu6")
softmax = by_tensorflow("nn.softmax")

# Control flow, calls of Python, checks, random numbers.
assert_equal = by_tensorflow("debugging.assert_equal")
cond = by_tensorflow("cond")
numpy_function = by_tensorflow("numpy_function")
switch_case = by_tensorflow("switch_case")
uniform = by_tensorflow("random.uniform")
while_loop = by_tensorflow("while_loop")

# The graph under construction, functions in it, and what is known of a tensor.
TensorArray = by_tensorflow("TensorArray")
TensorSpec = by_tensorflow("TensorSpec")
computation = functions.computation
control_dependencies = by_tensorflow("control_dependencies")
executing_eagerly = by_tensorflow("executing_eagerly")
function = by_tensorflow("function")
functions_run_eagerly = by_tensorflow("config.functions_run_eagerly")
get_current_name_scope = by_tensorflow("get_current_name_scope")
get_default_graph = by_tensorflow("compat.v1.get_default_graph")
get_static_value = by_tensorflow("get_static_value")
is_symbolic_tensor = by_tensorflow("is_symbolic_tensor")
is_tensor = by_tensorflow("is_tensor")
name_scope = by_tensorflow("name_scope")
