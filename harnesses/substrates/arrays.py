"""What makes, moves, joins and picks: tf itself, and tf.nest's arrays of shapes."""

from harnesses.harness import Normal
from harnesses.substrates import family
from harnesses.substrates.asking import (
    EVERY,
    FLOAT64,
    KINDS,
    NO_DERIVATIVES,
    SHAPE,
    ask,
    ask_raises,
    call,
    indices,
    normal,
)

ONE = normal(SHAPE)
CUBE = normal((2, 3, 4))


@family.builder
def rearrangements() -> None:
    """Shapes changed; values moved, repeated and padded."""
    ask("reshape", ONE, shape=[2, -1], dtypes=EVERY)
    ask("transpose", ONE, dtypes=EVERY)
    ask("transpose", CUBE, perm=[2, 0, 1], case="perm", dtypes=KINDS)
    ask("expand_dims", ONE, axis=1, dtypes=KINDS)
    ask("squeeze", normal((1, 3, 1)), axis=[0], dtypes=KINDS)
    ask("tile", ONE, multiples=[2, 1], dtypes=KINDS)
    ask("broadcast_to", normal((3, 1)), shape=[2, 3, 4], dtypes=KINDS)
    ask("roll", ONE, shift=[1, -2], axis=[0, 1], dtypes=KINDS)
    ask("reverse", ONE, axis=[1], dtypes=EVERY)
    ask("repeat", ONE, repeats=[1, 0, 2], axis=0, dtypes=KINDS)
    ask("pad", ONE, paddings=[[1, 0], [0, 2]], dtypes=KINDS[:-1])
    for mode in ("REFLECT", "SYMMETRIC"):
        ask("pad", ONE, paddings=[[1, 0], [0, 2]], mode=mode, case=mode.lower(), dtypes=FLOAT64)


@family.builder
def identities() -> None:
    """What passes values on as they are."""
    ask("identity", ONE, dtypes=EVERY)
    ask("identity_n", ONE, lambda tf, x: tf.identity_n([x, x]), dtypes=FLOAT64)
    ask("ensure_shape", ONE, shape=[3, None], dtypes=KINDS)
    ask("stop_gradient", ONE, dtypes=FLOAT64)
    ask("grad_pass_through", ONE, lambda tf, x: tf.grad_pass_through(tf.floor)(x), dtypes=FLOAT64,
        tags=("not_round_trip",))  # fmt: skip


@family.builder
def shapes_and_sizes() -> None:
    """The shape, the size and the rank of a tensor, and shapes that broadcast."""
    ask("shape", CUBE, dtypes=FLOAT64, tags=NO_DERIVATIVES)
    ask("shape", CUBE, out_type="int64", case="int64", tags=NO_DERIVATIVES)
    ask("shape_n", CUBE, lambda tf, x: tf.shape_n([x, x[0]]), tags=NO_DERIVATIVES)
    ask("size", CUBE, tags=NO_DERIVATIVES)
    ask("rank", CUBE, tags=NO_DERIVATIVES)
    ask("broadcast_dynamic_shape", [indices([3, 1]), indices([1, 4])], dtypes=["int32"],
        tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
    ask("broadcast_static_shape", [], lambda tf: tf.broadcast_static_shape(
        tf.TensorShape([3, 1]), tf.TensorShape([4])).as_list())  # fmt: skip


@family.builder
def masks_and_grids() -> None:
    """Masks of sequences, and grids of coordinates."""
    ask("sequence_mask", [indices([1, 3, 0])], dtypes=["int32"], maxlen=4)
    ask("meshgrid", normal((3,), (4,)), dtypes=KINDS)
    ask("meshgrid", normal((3,), (4,)), case="ij", indexing="ij", dtypes=FLOAT64)


@family.builder
def filled_tensors() -> None:
    """Tensors of zeros, of ones and of one given value."""
    for op in ("zeros_like", "ones_like"):
        ask(op, ONE, dtypes=EVERY)
        ask(op, ONE, case="to_int32", dtype="int32", dtypes=FLOAT64, tags=NO_DERIVATIVES)
    for op in ("zeros", "ones"):
        for dtype in EVERY:
            ask(op, [], call(op, [2, 3], dtype), dtypes=[dtype])
    ask("fill", normal(()), lambda tf, x: tf.fill([2, 3], x), dtypes=KINDS)


@family.builder
def ranges_and_one_hot_vectors() -> None:
    """Identity matrices, ranges and one-hot vectors."""
    for dtype in ("float32", "float64", "int32", "complex64"):
        ask("eye", [], call("eye", 3, 4, [2], dtype), dtypes=[dtype])
    for dtype in ("float32", "float64", "int32", "int64"):
        ask("range", [], call("range", 1, 9, 2, dtype), dtypes=[dtype])
    for dtype in FLOAT64:
        ask("linspace", normal((), ()), lambda tf, a, b: tf.linspace(a, b, 5), dtypes=[dtype])
    ask("one_hot", [indices([[0, 2], [-1, 3]])], depth=3, dtypes=["int32"])
    ask("one_hot", [indices([0, 2])], case="values", depth=3, on_value=5, off_value=-1, axis=0,
        dtypes=["int32"])  # fmt: skip


@family.builder
def constants() -> None:
    """Tensors made of numbers and of lists of Python."""
    for value, name in (
        (1, "int"),
        (1.5, "float"),
        (True, "bool"),
        (2j, "complex"),
        ([1, 2], "list"),
    ):
        ask("constant", [], call("constant", value), case=name)
        ask("convert_to_tensor", [], call("convert_to_tensor", value), case=name)


@family.builder
def joins_and_splits() -> None:
    """What joins tensors, and what takes them apart."""
    ask("concat", normal(SHAPE, (2, 4)), lambda tf, x, y: tf.concat([x, y], 0), dtypes=EVERY)
    ask("concat", normal(SHAPE, (3, 2)), lambda tf, x, y: tf.concat([x, y], -1), case="last",
        dtypes=FLOAT64)  # fmt: skip
    ask("stack", normal(SHAPE, SHAPE), lambda tf, x, y: tf.stack([x, y], 1), dtypes=EVERY)
    ask("unstack", ONE, axis=1, dtypes=KINDS)
    ask("split", ONE, num_or_size_splits=2, axis=1, dtypes=KINDS)
    ask("split", ONE, case="sizes", num_or_size_splits=[1, 3], axis=1, dtypes=FLOAT64)
    ask("tuple", ONE, lambda tf, x: tf.tuple([x, x + x]), dtypes=FLOAT64)
    ask("dynamic_stitch", ONE, lambda tf, x: tf.dynamic_stitch([[2, 0], [1]], [x[:2], x[2:]]),
        dtypes=FLOAT64)  # fmt: skip
    ask(
        "dynamic_partition",
        ONE,
        lambda tf, x: tf.dynamic_partition(x, [1, 0, 1], 2),
        dtypes=FLOAT64,
    )


@family.builder
def slices_and_gathers() -> None:
    """Slices, strided slices and gathers."""
    ask("slice", ONE, begin=[1, 0], size=[2, -1], dtypes=KINDS)
    ask("strided_slice", ONE, begin=[2, 0], end=[0, 4], strides=[-1, 2], dtypes=KINDS)
    ask("gather", lambda d: [Normal(SHAPE, d), indices([2, 0, 2])], dtypes=EVERY)
    ask("gather", lambda d: [Normal((2, 3, 4), d), indices([[2, 0], [1, 1]])], batch_dims=1, axis=1,
        case="batch", dtypes=FLOAT64)  # fmt: skip
    ask(
        "gather",
        lambda d: [Normal(SHAPE, d), indices([3, 0])],
        case="axis",
        axis=-1,
        dtypes=FLOAT64,
    )
    ask("gather_nd", lambda d: [Normal(SHAPE, d), indices([[2, 1], [0, 3]])], dtypes=KINDS)
    ask("gather_nd", lambda d: [Normal((2, 3, 4), d), indices([[2], [1]])], case="batch",
        batch_dims=1, dtypes=FLOAT64)  # fmt: skip


@family.builder
def selections() -> None:
    """Masks, `where`, reversed parts of sequences, and indices of several axes."""
    ask("boolean_mask", ONE, lambda tf, x: tf.boolean_mask(x, [True, False, True]), dtypes=KINDS)
    ask(
        "where",
        normal(SHAPE, SHAPE),
        lambda tf, x, y: tf.where(x == y, x, y),
        dtypes=("int32", "bool"),
    )
    ask("where", normal(SHAPE, SHAPE), lambda tf, x, y: tf.where(x > y, x, y), case="larger",
        dtypes=("float32", "float64", "bfloat16", "int32"))  # fmt: skip
    ask("where", normal(SHAPE), lambda tf, x: tf.where(x > 0), case="indices", tags=NO_DERIVATIVES)
    ask("reverse_sequence", ONE, seq_lengths=[2, 1, 4], seq_axis=1, dtypes=FLOAT64)
    ask("unravel_index", [indices([5, 11])], dims=[3, 4], dtypes=["int32"])


@family.builder
def scatters() -> None:
    """Scatters into zeros, and updates of a tensor at indices."""
    ask("scatter_nd", lambda d: [Normal(SHAPE, d)],
        lambda tf, x: tf.scatter_nd([[2], [0], [2]], x, [4, 4]),
        dtypes=("float32", "float64", "int32", "complex64"))  # fmt: skip
    for kind, at in {
        "update": [[2], [0]],
        "add": [[2], [2]],
        "sub": [[2], [0]],
        "max": [[2], [0]],
        "min": [[2], [0]],
    }.items():
        ask(f"tensor_scatter_nd_{kind}", normal(SHAPE, (2, 4)),
            lambda tf, x, u, kind=kind, at=at:
                getattr(tf, f"tensor_scatter_nd_{kind}")(x, at, u),
            dtypes=("float32", "float64", "int32"))  # fmt: skip


@family.builder
def blocks_of_space() -> None:
    """Blocks of space that become batch, and the way back."""
    ask("space_to_batch", normal((1, 4, 4, 2)), call("space_to_batch", [2, 2], [[0, 0], [0, 0]]),
        dtypes=FLOAT64)  # fmt: skip
    ask("space_to_batch_nd", normal((1, 4, 4, 2)),
        call("space_to_batch_nd", [2, 2], [[0, 0], [2, 0]]), dtypes=FLOAT64)  # fmt: skip
    ask("nn.space_to_batch", normal((1, 4, 4, 2)),
        call("nn.space_to_batch", [2, 2], [[0, 0], [0, 0]]), dtypes=FLOAT64)  # fmt: skip
    ask("batch_to_space", normal((4, 2, 2, 2)), call("batch_to_space", [2, 2], [[0, 0], [1, 0]]),
        dtypes=FLOAT64)  # fmt: skip


_REFUSED = (
    ("reshape", "size", lambda tf: tf.reshape(tf.ones([6]), [4, 2])),
    ("reshape", "two_open", lambda tf: tf.reshape(tf.ones([6]), [-1, -1])),
    ("transpose", "perm", lambda tf: tf.transpose(tf.ones([2, 3]), [0])),
    ("concat", "shapes", lambda tf: tf.concat([tf.ones([2, 3]), tf.ones([3, 2])], 0)),
    ("concat", "axis", lambda tf: tf.concat([tf.ones([2]), tf.ones([2])], 1)),
    ("concat", "dtypes", lambda tf: tf.concat([tf.ones([2]), tf.ones([2], tf.float64)], 0)),
    ("stack", "shapes", lambda tf: tf.stack([tf.ones([2]), tf.ones([3])])),
    ("split", "uneven", lambda tf: tf.split(tf.ones([5]), 2)),
    ("split", "sizes", lambda tf: tf.split(tf.ones([5]), [2, 2])),
    ("unstack", "number", lambda tf: tf.unstack(tf.ones([3]), num=2)),
    ("gather", "range", lambda tf: tf.gather(tf.constant([1, 2]), [2])),
    ("gather_nd", "range", lambda tf: tf.gather_nd(tf.constant([1, 2]), [[2]])),
    ("squeeze", "size", lambda tf: tf.squeeze(tf.ones([2, 1]), [0])),
    ("expand_dims", "axis", lambda tf: tf.expand_dims(tf.ones([2]), 3)),
    ("tile", "length", lambda tf: tf.tile(tf.ones([2]), [1, 2])),
    ("broadcast_to", "shapes", lambda tf: tf.broadcast_to(tf.ones([2]), [3])),
    ("slice", "range", lambda tf: tf.slice(tf.ones([2]), [1], [2])),
    ("pad", "length", lambda tf: tf.pad(tf.ones([2]), [[0, 0], [0, 0]])),
    ("pad", "reflect", lambda tf: tf.pad(tf.ones([2]), [[2, 0]], "REFLECT")),
    ("reverse", "axis", lambda tf: tf.reverse(tf.ones([2]), [1])),
    ("ensure_shape", "shape", lambda tf: tf.ensure_shape(tf.ones([2]), [3])),
    ("one_hot", "floats", lambda tf: tf.one_hot(tf.ones([2]), 3)),
    ("fill", "negative", lambda tf: tf.fill([-1], 1.0)),
    ("range", "zero", lambda tf: tf.range(0, 3, 0)),
    ("constant", "ragged", lambda tf: tf.constant([[1], [1, 2]])),
    ("constant", "shape", lambda tf: tf.constant([1, 2], shape=[3])),
    ("constant", "float_to_int", lambda tf: tf.constant(1.5, tf.int32)),
    ("constant", "none", lambda tf: tf.constant(None)),
    ("convert_to_tensor", "dtype", lambda tf: tf.convert_to_tensor(tf.ones([1]), tf.int32)),
    ("scatter_nd", "range", lambda tf: tf.scatter_nd([[3]], [1], [2])),
    ("tensor_scatter_nd_update", "shapes",
     lambda tf: tf.tensor_scatter_nd_update(tf.ones([3]), [[0]], tf.ones([2]))),
    ("where", "shapes", lambda tf: tf.where([True, False], tf.ones([3]), tf.ones([3]))),
    ("boolean_mask", "shape", lambda tf: tf.boolean_mask(tf.ones([3]), [True])),
    ("meshgrid", "indexing", lambda tf: tf.meshgrid([1], [2], indexing="no")),
    ("unravel_index", "range", lambda tf: tf.unravel_index([12], [3, 4])),
)  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with shapes, indices or dtypes that do not fit."""
    for op, case, program in _REFUSED:
        ask_raises(op, case, program)
