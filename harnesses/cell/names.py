"""The names that cells are told apart by: devices, lowerings and modes."""

from collections.abc import Mapping

from harnesses.cell import modes

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
# Modes by group, of the table in `harnesses.cell.modes`. A run has those beyond MODE_NAMES only if
# it asks for them.
MODE_NAMES = modes.names_of(modes.PLAIN)
GRADIENT, SAVED_GRADIENT = modes.GRADIENT, modes.SAVED_GRADIENT
GRADIENT_MODES = modes.names_of(GRADIENT)
POLY = modes.POLY
# Files of jax.export, loaded; see `harnesses.engine.stablehlo`.
STABLEHLO = modes.STABLEHLO
UNDER = modes.UNDER
UNDER_MODES = modes.names_of(UNDER)
TRANSFORMED_MODES = (*GRADIENT_MODES, SAVED_GRADIENT, POLY, *UNDER_MODES)
# Derivatives that programs of substrates take themselves, by tapes; see `harnesses.engine.tapes`.
TAPES = modes.TAPES
TAPE_MODES = modes.names_of(TAPES, direction="substrates")
# Modes that a name stands for, in a run.
GROUPS: Mapping[str, tuple[str, ...]] = {
    GRADIENT: GRADIENT_MODES,
    UNDER: UNDER_MODES,
    TAPES: TAPE_MODES,
}
# Engines that read TensorFlow graphs; see `harnesses.engine.consumers`.
SAVEDMODEL = "savedmodel"
CONSUMER_MODES = modes.names_of(modes.ENGINE)
# Programs of meshes; see `harnesses.engine.meshes`. Each has a lowering of its own.
DTENSOR, PARTITIONED_NATIVE = MESH_MODES = modes.names_of(modes.MESH)
MESH_LOWERINGS = {name: modes.MODES["convert", name].lowering or "" for name in MESH_MODES}
MESH_FAMILY = "sharding"
ASKED_MODES = (*TRANSFORMED_MODES, STABLEHLO, *CONSUMER_MODES, *MESH_MODES)
# How JAX runs a TensorFlow function; all but the first inside jax.jit. Such a cell has the lowering
# "call_tf".
CALL_TF_MODES = modes.names_of(modes.PLAIN, direction="call_tf")
DERIVATIVES = frozenset({"grad", "jvp"})
# How a program written against TensorFlow runs on a substrate, which is the lowering of such a
# cell; on NumPy in the first of them alone.
EAGER, ROUND_TRIP = "eager", "round_trip"
SUBSTRATE_MODES = modes.names_of(modes.PLAIN, direction="substrates")
SUBSTRATE_LOWERINGS = (ON_NUMPY, ON_JAX)
# The tag of a harness that is about the exception that TensorFlow raises, in eager mode.
RAISES = "raises"
# What a cell of JAX's own side, and one of a converter that does not end in TensorFlow, has for a
# lowering and a mode.
JAX_SIDE, DIRECT = modes.names_of(modes.SIDE)
