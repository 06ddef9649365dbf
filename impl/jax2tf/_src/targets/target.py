"""Target: what reads the graphs that `convert` makes, and which ops it takes, as data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import jax

from jax2tf._src.targets import forms, quirks
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.option_checks import shown

# The two sets of rules: with TensorFlow's XLA ops, and with its standard ops only.
OpSet: TypeAlias = Literal["xla", "no_xla"]
XLA: OpSet = "xla"
NO_XLA: OpSet = "no_xla"
OP_SETS: tuple[OpSet, ...] = (XLA, NO_XLA)


# The remedy for what only XLA runs.
FOR_XLA = "convert with enable_xla=True"

# The input whose dtype says which kernel an op is, where that is not the first.
KEY_INPUTS: Mapping[str, int] = {
    "Conv2DBackpropInput": 1,
    "Conv3DBackpropInputV2": 1,
    "Fill": 1,
    "OneHot": 2,
    "ScatterNd": 1,
    "SelectV2": 1,
    "Split": 1,
}


class Placement(Protocol):
    """Says where in a mesh a value of a graph is."""

    def placed(
        self, tensor: tf.Tensor, sharding: jax.sharding.Sharding, open_dims: Iterable[int] = ()
    ) -> tf.Tensor:
        """The tensor, spread as a jax.sharding.Sharding says, and in open dimensions in any way."""

    def whole(self, tensor: tf.Tensor) -> tf.Tensor:
        """The tensor, whole on every device."""


# The fields of a target that hold names, and those that hold something by name.
_SETS = (
    *("idioms", "finite_idioms", "integer_idioms"),
    *("lacks_dtypes", "quirks", "optimizations"),
)
_MAPPINGS = ("ops", "lacks", "own_ops", "computes_in", "most_dimensions_of")


@dataclasses.dataclass(frozen=True)
class Target:
    """What reads a graph, and which ops it takes.

    >>> tiny = Target("tiny", ops={"AddV2": ("float32",), "Mul": ("float32", "int32")})
    >>> tiny.takes("Mul", "int32"), tiny.takes("AddV2", "int32"), tiny.takes("Sin")
    (True, False, False)
    >>> from jax2tf import TARGETS
    >>> sorted(TARGETS["litert"].idioms - TARGETS["litert"].without_idioms("gelu", "mean").idioms)
    ['gelu', 'mean']

    Attributes:
      name: what messages call it.
      op_set: the rules that lower for it: "xla", or "no_xla" for TensorFlow's standard ops only.
      idioms: the names of the idioms (lowering/passes/idioms) that it has ops for. The op of an
        engine may differ from JAX in the last bits, and TensorFlow's own kernel of it from the
        engine's where a number is NaN: see docs/guides/engines.md.
      finite_idioms: those whose ops lose a NaN or an infinity in the engine: they are used where
        `assume_finite` is set.
      integer_idioms: those that keep numbers in a range that integers of 8 bits can tell apart:
        `for_integers` gives a target that has them.
      ops: the ops of TensorFlow that it takes, by type, each with the dtypes of its first input
        (of that which KEY_INPUTS says, and of the first output, for an op without inputs). None
        where every op is taken.
      lacks: the ops that it does not take, by type, each with those of these dtypes for which it
        does not; all of them where none is named. An op of constants only is taken where
        the engine's converter computes it (quirk "no_folding").
      own_ops: ops of forms.NOT_IN_EVERY_ENGINE that it takes, and graphs for it hold: by type, each
        with the dtypes.
      lacks_dtypes: those of which it has no arrays. An array of one that `computes_in` names is
        computed in the dtype that stands in, and crosses no boundary of a function, a branch or
        the body of a loop; one of the others is refused.
      most_dimensions: how many its arrays have at most. None where there is no limit.
      computes_in: the dtypes that it does not compute with, each with the one that stands in: int32
        holds the bits of uint32, and the numbers of narrower integers. A complex number is two of
        that dtype, its real and its imaginary part.
      most_dimensions_of: by type of an op, how many dimensions the array has at most that it takes:
        those of others are merged, or taken one by one. Where the op set is "no_xla", those of
        forms.MOST_DIMENSIONS_IN_EVERY_ENGINE are added.
      quirks: the names, among Quirk, of what the engine gets wrong. Those of
        quirks.AVOIDED_WITHOUT_XLA are added where the op set is "no_xla".
      optimizations: the names, among Optimization, of what makes its graphs faster.
      assume_finite: whether guards of NaN and infinity are left out.
      shares_repeats: whether equations that repeat, as the layers of a Python loop do, become calls
        of one function.
      placement: what shardings become. None makes them XlaSharding ops, where it takes XLA ops.
    """

    name: str
    op_set: OpSet = NO_XLA
    idioms: frozenset[str] = frozenset()
    finite_idioms: frozenset[str] = frozenset()
    integer_idioms: frozenset[str] = frozenset()
    ops: Mapping[str, Sequence[str]] | None = dataclasses.field(default=None, hash=False)
    lacks: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict, hash=False)
    own_ops: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict, hash=False)
    lacks_dtypes: frozenset[str] = frozenset()
    most_dimensions: int | None = None
    computes_in: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    quirks: frozenset[str] = frozenset()
    optimizations: frozenset[str] = forms.FOR_EVERY_READER
    assume_finite: bool = False
    shares_repeats: bool = True
    placement: Placement | None = None
    most_dimensions_of: Mapping[str, int] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # A target is a key of caches, so any collection of names becomes one that can be hashed.
        where = f"jax2tf.Target({self.name!r})"
        if not isinstance(self.name, str):
            raise TypeError(f"jax2tf.Target: name should be a text, got {shown(self.name)}")
        option_checks.switches(
            where, assume_finite=self.assume_finite, shares_repeats=self.shares_repeats
        )
        for field in _MAPPINGS:
            value = getattr(self, field)
            if not (isinstance(value, Mapping) or (value is None and field == "ops")):
                raise TypeError(f"{where}: {field} should be a dict by name, got {shown(value)}")
        if self.most_dimensions is not None:
            remedy = "None is any number"
            option_checks.whole_number(self.most_dimensions, f"{where}: most_dimensions", 0, remedy)
        for field in _SETS:
            argument = f"{where}: {field}"
            names = option_checks.sequence(getattr(self, field), argument, "names", "{'gelu'}")
            if not all(isinstance(name, str) for name in names):
                raise TypeError(f"{argument} should be a set of names, got {shown(names)}")
            object.__setattr__(self, field, frozenset(names))
        option_checks.one_of(self.op_set, f"{where}: op_set", OP_SETS)
        object.__setattr__(self, "quirks", _members(where, "quirks", self.quirks, Quirk))
        of_target = _members(where, "optimizations", self.optimizations, Optimization)
        object.__setattr__(self, "optimizations", of_target)
        if self.op_set == NO_XLA:
            object.__setattr__(self, "quirks", self.quirks | quirks.AVOIDED_WITHOUT_XLA)
            most = {**forms.MOST_DIMENSIONS_IN_EVERY_ENGINE, **self.most_dimensions_of}
            object.__setattr__(self, "most_dimensions_of", most)

    @property
    def enable_xla(self) -> bool:
        """Whether XLA ops may be used."""
        return self.op_set == XLA

    @property
    def takes_all(self) -> bool:
        """Whether nothing is refused for it: it takes every op, and arrays of every dtype."""
        has_limits = self.lacks or self.lacks_dtypes or self.most_dimensions is not None
        return self.ops is None and not has_limits

    @functools.cached_property
    def refused_dtypes(self) -> frozenset[str]:
        """The dtypes of which it has no arrays, and for which no other stands in."""
        return self.lacks_dtypes - self.computes_in.keys()

    def takes(self, op: str, dtype: str | None = None) -> bool:
        """Whether it runs an op of a dtype, or of some dtype where none is named."""
        if self.ops is not None and (
            op not in self.ops or (dtype is not None and dtype not in self.ops[op])
        ):
            return False
        if dtype is None:
            return op not in self.lacks or bool(self.lacks[op])
        return not _is_listed(self.lacks, op, dtype)

    def takes_arrays(self, dtype: str) -> bool:
        """Whether an array of a dtype may cross the boundary of a function, a branch or a loop."""
        return dtype not in self.lacks_dtypes

    def takes_rank(self, op: str, rank: int) -> bool:
        """Whether an op that it runs takes an array of so many dimensions."""
        most = self.most_dimensions_of.get(op)
        return most is None or rank <= most

    def wants(self, form: str, dtype: str | None = None) -> bool:
        """Whether graphs for it are to have a form: an Optimization, an idiom, or an op of a dtype.

        It wants an op that it takes, and in the set of standard ops only one that every engine
        takes, or that is among its `own_ops`. Where no dtype is named: an op that it takes with
        any, and every engine with all.
        """
        # Only ops begin with a capital letter.
        if form[0].isupper():
            return self._wants_op(form, dtype)
        has_idiom = form in self.idioms or (self.assume_finite and form in self.finite_idioms)
        return has_idiom or form in self.optimizations

    def _wants_op(self, op: str, dtype: str | None) -> bool:
        is_spared = op.startswith("Xla") or _is_listed(forms.NOT_IN_EVERY_ENGINE, op, dtype)
        if self.op_set == NO_XLA and is_spared and not _is_listed(self.own_ops, op, dtype):
            return False
        return self.takes(op, dtype)

    def has(self, quirk: Quirk) -> bool:
        """Whether graphs for it are to avoid what a quirk says."""
        return quirk in self.quirks

    def without_idioms(self, *names: str) -> Target:
        """The target with these idioms switched off, or all of them where none is named.

        Raises:
          ValueError: the target has no idiom of that name.
        """
        has = self.idioms | self.finite_idioms
        left_out = frozenset(names) if names else has
        unknown = left_out - has
        if unknown:
            raise ValueError(
                f"jax2tf.Target({self.name!r}): it has no idiom {', '.join(sorted(unknown))}; it "
                f"has {', '.join(sorted(has))}"
            )
        return dataclasses.replace(
            self, idioms=self.idioms - left_out, finite_idioms=self.finite_idioms - left_out
        )

    def for_integers(self) -> Target:
        """The target for graphs whose numbers become integers of 8 bits, which are finite."""
        return dataclasses.replace(
            self, idioms=self.idioms | self.integer_idioms, assume_finite=True
        )

    def without_optimizations(self, *names: str) -> Target:
        """The target with these optimisations switched off, or all of them where none is named.

        Raises:
          ValueError: the target has no optimisation of that name.
        """
        left_out = frozenset(names) if names else self.optimizations
        unknown = left_out - self.optimizations
        if unknown:
            raise ValueError(
                f"jax2tf.Target({self.name!r}): it has no optimisation "
                f"{', '.join(sorted(unknown))}; it has {', '.join(sorted(self.optimizations))}"
            )
        return dataclasses.replace(self, optimizations=self.optimizations - left_out)


# Names that users may give for quirks and that are lacks, each with the fields that say so.
_LACKS: Mapping[str, str] = {
    "few_dimensions_in_pads": "most_dimensions_of={'PadV2': 5}",
    "few_dimensions_in_reductions": "most_dimensions_of={'Max': 6, 'Min': 6, 'Sum': 6}",
    "no_bitcast": "lacks={'Bitcast': ()}",
    "no_complex_numbers": "computes_in={'complex64': 'float32', 'complex128': 'float64'}",
    "no_reverse": "lacks={'ReverseV2': ()}",
    "no_tensor_lists": "lacks={'TensorListReserve': ()}",
    "no_uint32": "lacks_dtypes={'uint32'}, computes_in={'uint32': 'int32'}",
}


def _members(
    where: str, field: str, names: Iterable[str], known: type[Quirk] | type[Optimization]
) -> frozenset[str]:
    """The members of an enum with these names.

    Raises:
      ValueError: it has no member of that name; or a quirk is a lack.
    """
    for name in _LACKS.keys() & set(names):
        raise ValueError(
            f"{where}: {field} should say what the reader gets wrong, got {name!r}, which it "
            f"lacks: leave it out and give {_LACKS[name]}"
        )
    unknown = set(names) - set(known)
    if unknown:
        raise ValueError(
            f"{where}: {field} should be among {', '.join(known)}, got {', '.join(sorted(unknown))}"
        )
    return frozenset(map(known, names))


def _is_listed(table: Mapping[str, Sequence[str]], op: str, dtype: str | None) -> bool:
    """Whether a table names an op with a dtype, or, where no dtype is asked for, with any."""
    return op in table and (not table[op] or dtype is None or dtype in table[op])
