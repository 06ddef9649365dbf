"""The names that cells are told apart by: devices, lowerings and modes."""

from collections.abc import Mapping

# What a run judges without `--impl`, and whose the ledger is.
DEFAULT_IMPLEMENTATION = "jax2tf"

# A lowering is a way through `convert`.
LOWERINGS: Mapping[str, Mapping[str, bool]] = {
    "xla": {"enable_xla": True, "native_serialization": False},
    "no_xla": {"enable_xla": False, "native_serialization": False},
    "native": {"enable_xla": True, "native_serialization": True},
}
# What a run takes without `--lowering`.
DEFAULT_LOWERINGS = ("xla",)
# Those of substrates: the package of TensorFlow's API that a program runs on.
ON_NUMPY, ON_JAX = "on_numpy", "on_jax"

DEVICES = ("cpu", "gpu", "tpu")
MODE_NAMES = ("eager", "graph", "compiled")
# Modes that a run has only when it asks for them; see `harnesses.engine.transformed`. Runs and
# limitations say "gradient" for those of derivatives; the round trip through a SavedModel, which
# is slow, a run has to name.
GRADIENT, SAVED_GRADIENT = "gradient", "gradient_saved"
GRADIENT_MODES = ("gradient_eager", "gradient_graph", "gradient_compiled")
POLY = "poly"
# And those of harnesses under a transformation of JAX (`harnesses.engine.transformations`); "under"
# stands for all of them.
UNDER = "under"
UNDER_MODES = (
    "under_jit",
    "under_vmap",
    "under_in_axes",
    "under_jvp",
    "under_vjp",
    "under_jacobian",
    "under_remat",
    "under_scan",
    "under_cond",
)
TRANSFORMED_MODES = (*GRADIENT_MODES, SAVED_GRADIENT, POLY, *UNDER_MODES)
# Modes that a name stands for, in a run.
GROUPS: Mapping[str, tuple[str, ...]] = {GRADIENT: GRADIENT_MODES, UNDER: UNDER_MODES}
# So are engines that read TensorFlow graphs; see `harnesses.engine.consumers`.
SAVEDMODEL = "savedmodel"
CONSUMER_MODES = (SAVEDMODEL, "litert", "onnx", "openvino", "tfjs")
# And programs of meshes; see `harnesses.engine.meshes`. Each has a lowering of its own.
DTENSOR, PARTITIONED_NATIVE = "dtensor", "partitioned_native"
MESH_LOWERINGS = {DTENSOR: "no_xla", PARTITIONED_NATIVE: "native"}
MESH_MODES = tuple(MESH_LOWERINGS)
MESH_FAMILY = "sharding"
ASKED_MODES = TRANSFORMED_MODES + CONSUMER_MODES + MESH_MODES
# How JAX runs a TensorFlow function; all but the first inside jax.jit. Such a cell has the lowering
# "call_tf".
CALL_TF_MODES = ("op_by_op", "jit", "grad", "jvp", "vmap")
DERIVATIVES = frozenset({"grad", "jvp"})
# How a program written against TensorFlow runs on a substrate, which is the lowering of such a
# cell; on NumPy in the first of them alone.
EAGER, ROUND_TRIP = "eager", "round_trip"
SUBSTRATE_MODES = (EAGER, "jit", "grad", "jvp", "vmap", ROUND_TRIP)
SUBSTRATE_LOWERINGS = (ON_NUMPY, ON_JAX)
# The tag of a harness that is about the exception that TensorFlow raises, in eager mode.
RAISES = "raises"
# What a cell of JAX's own side has for a lowering and a mode.
JAX_SIDE = "jax"
# And one of a converter that does not end in TensorFlow; see `harnesses.engine.converters`.
DIRECT = "direct"
