"""Recognises scans that compute an LSTM, for engines that have one op for it.

    i, f, g, o = split(x @ w + h @ u + b)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)

A step of the scan has to compute this, in any order and with any number of products. The gates may
be parts of one product or have separate products; x and h may be concatenated or multiplied
separately. The weights may be computed from values that are the same in all steps. Only h may be
read from each step.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.passes.idioms.view import Frame, Path, Value, find
from jax2tf._src.ops import raw
from jax2tf._src.tracing.jaxprs import Scan, variables
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Atom, Param, aval_of

OP = "BlockLSTMV2"

# The op's order of the gates: input, forget, cell, output.
_GATES = "ifgo"


# Returns the tensor of a variable that is the same in all steps, or of a number.
Read: TypeAlias = Callable[[jex_core.Var | np.ndarray], Tensor]


@dataclasses.dataclass(frozen=True)
class Part:
    """A matrix `[rows, columns]` or a row `[columns]`, a slice of a value equal in all steps.

    Attributes:
      atom: a variable of the step's jaxpr, or a number.
      is_transposed: whether the atom has the columns first.
      rows: the start and the end of the range of rows; None for all rows, and for a row.
      columns: the start and the end of the range of columns; None for all columns.
    """

    atom: jex_core.Var | np.ndarray
    is_transposed: bool = False
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None

    def cut(self, columns: tuple[int, int]) -> Part:
        """Returns a range of these columns."""
        first = self.columns[0] if self.columns else 0
        return dataclasses.replace(self, columns=(first + columns[0], first + columns[1]))

    def tensor(self, read: Read) -> Tensor:
        """Returns the matrix or the row as a tensor; a number stays a scalar."""
        x = read(self.atom)
        if not x.shape.rank:
            return x
        if self.is_transposed:
            x = ops.transpose(x, [1, 0])
        if self.rows is not None:
            x = x[slice(*self.rows)]
        return x if self.columns is None else x[..., slice(*self.columns)]


@dataclasses.dataclass(frozen=True)
class Affine:
    """`x @ of_x + h @ of_h + bias`, where each of the three is a sum of parts."""

    of_x: tuple[Part, ...] = ()
    of_h: tuple[Part, ...] = ()
    bias: tuple[Part, ...] = ()

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.of_x + other.of_x, self.of_h + other.of_h, self.bias + other.bias)

    def cut(self, columns: tuple[int, int]) -> Affine:
        """Returns a range of the columns."""
        sums = (self.of_x, self.of_h, self.bias)
        return Affine(*(tuple(part.cut(columns) for part in parts) for parts in sums))


@dataclasses.dataclass(frozen=True)
class Cell:
    """The step of an LSTM.

    Attributes:
      hidden: the index of the carry that is h. The other carry is c.
      gates: the operand of the sigmoid or tanh of each gate.
      invariant: the equations whose results are the same in all steps.
    """

    hidden: int
    gates: Mapping[str, Affine]
    invariant: list[jex_core.JaxprEqn]


def lstm(ctx: Context, *operands: Tensor, cell: Cell) -> list[Tensor]:
    """The rule of a scan that computes an LSTM."""
    scan = Scan.of(ctx.eqn)
    consts, carry, (x,) = scan.split(operands)
    weights, bias = _weights(ctx, cell, consts)
    h, c = carry[cell.hidden], carry[1 - cell.hidden]
    if scan.reverse:
        x = ops.reverse(x, [0])
    unused = ops.zeros([bias.shape[0] // 4], x.dtype)
    states = raw.BlockLSTMV2(
        seq_len_max=ops.cast(ops.shape(x)[0], dtypes.int64),
        x=x,
        cs_prev=c,
        h_prev=h,
        w=weights,
        wci=unused,
        wcf=unused,
        wco=unused,
        b=bias,
        cell_clip=0.0,
        use_peephole=False,
    )
    last = [states.cs[-1], states.cs[-1]]
    last[cell.hidden] = states.h[-1]
    steps = ops.reverse(states.h, [0]) if scan.reverse else states.h
    return [*last, *[steps] * (len(ctx.eqn.outvars) - scan.n_carry)]


def _weights(ctx: Context, cell: Cell, consts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Returns the matrix of x above the matrix of h, and the bias; the gates are side by side."""
    gates = [cell.gates[name] for name in _GATES]
    read = _reader(ctx, cell, consts)
    of_x, of_h = ([_sum(getattr(g, name), read) for g in gates] for name in ("of_x", "of_h"))
    weights = ops.concat([ops.concat(of_x, 1), ops.concat(of_h, 1)], 0)
    none = ops.zeros([weights.shape[1] // len(gates)], weights.dtype)
    bias = [ops.reshape(_sum(gate.bias, read, none), none.shape) for gate in gates]
    return weights, ops.concat(bias, 0)


def _reader(ctx: Context, cell: Cell, consts: Sequence[Tensor]) -> Read:
    """Computes the values that are the same in all steps; they are computed once."""
    closed = Scan.of(ctx.eqn).body
    body = closed.jaxpr
    parts = [part for g in cell.gates.values() for part in (*g.of_x, *g.of_h, *g.bias)]
    variables = [part.atom for part in parts if isinstance(part.atom, jex_core.Var)]
    given = body.invars[: len(consts)]
    same = jex_core.Jaxpr(
        body.constvars, given, variables, cell.invariant, debug_info=body.debug_info
    )
    values = ctx.inline(jex_core.ClosedJaxpr(same, closed.consts), *consts)
    known = dict(zip(variables, values, strict=True))
    return lambda atom: ctx.constant(atom) if isinstance(atom, np.ndarray) else known[atom]


def _sum(parts: Sequence[Part], read: Read, *more: Tensor) -> Tensor:
    return functools.reduce(lambda x, y: x + y, [*(part.tensor(read) for part in parts), *more])


def cell_of(eqn: jex_core.JaxprEqn) -> Cell | None:
    """Returns the LSTM that a scan computes, or None."""
    scan = Scan.of(eqn)
    body = scan.body.jaxpr
    given = body.invars[scan.n_consts :]
    if scan.n_carry != 2 or len(given) != 3 or not _are_rows(given):
        return None
    if dims.may_be_zero(scan.length) or eqn.effects:
        return None
    for hidden in (0, 1):
        step = _Step(body, scan.n_consts, hidden)
        gates = step.gates()
        if gates is not None and all(gate.of_x and gate.of_h for gate in gates.values()):
            return Cell(hidden, gates, step.invariant)
    return None


def _are_rows(variables: Sequence[jex_core.Var]) -> bool:
    """Whether all are float32 matrices with equally many rows and known numbers of columns."""
    avals = [aval_of(v) for v in variables]
    return (
        all(len(aval.shape) == 2 and aval.dtype == "float32" for aval in avals)
        and len({aval.shape[0] for aval in avals}) == 1
        and all(dims.is_static(aval.shape[1:]) for aval in avals)
    )


class _Step:
    """Searches the jaxpr of a step for an LSTM whose carries have one of the two orders."""

    def __init__(self, body: jex_core.Jaxpr, n_consts: int, hidden: int) -> None:
        self._frame = Frame(body, None, None)
        carries, self._x = body.invars[n_consts:-1], body.invars[-1]
        self._h, self._c = carries[hidden], carries[1 - hidden]
        self._results = body.outvars[hidden], body.outvars[1 - hidden], body.outvars[2:]
        self._varying: set[Atom] = {*carries, self._x}
        self.invariant: list[jex_core.JaxprEqn] = []
        for eqn in body.eqns:
            if self._varying.isdisjoint(variables(eqn.invars)):
                self.invariant.append(eqn)
            else:
                self._varying.update(eqn.outvars)

    def gates(self) -> dict[str, Affine] | None:
        """Returns the operand of each gate's sigmoid or tanh; None if the step is not an LSTM."""
        h, c, steps = self._results
        hidden, cell = find(h, self._frame), find(c, self._frame)
        if any(find(step, self._frame).value != hidden.value for step in steps):
            return None
        paths = self._paths(hidden, cell)
        gates = {name: self._affine(path) for name, path in paths.items()}
        known = {name: gate for name, gate in gates.items() if gate is not None}
        return known if len(known) == len(_GATES) else None

    def _paths(self, hidden: Path, cell: Path) -> dict[str, Path]:
        """Returns the operand of the sigmoid or tanh of each gate that is found, by its name."""
        paths: dict[str, Path | None] = {}
        for gate, shown in _orders(hidden, lax.mul_p):
            of_cell = _argument(shown, lax.tanh_p)
            if of_cell is not None and of_cell.value == cell.value:
                paths["o"] = _argument(gate, lax.logistic_p)
        for kept, new in _orders(cell, lax.add_p):
            for forgotten, old in _orders(kept, lax.mul_p):
                if _is(old, self._c):
                    paths["f"] = _argument(forgotten, lax.logistic_p)
            for written, candidate in _orders(new, lax.mul_p):
                if paths.get("f") is not None and _argument(candidate, lax.tanh_p) is not None:
                    paths["i"] = _argument(written, lax.logistic_p)
                    paths["g"] = _argument(candidate, lax.tanh_p)
        return {name: path for name, path in paths.items() if path is not None}

    def _affine(self, path: Path) -> Affine | None:
        """Returns a value `[batch, columns]` as an affine function of x and h, or None."""
        row = self._row(path)
        if row is not None:
            return Affine(bias=(row,))
        eqn = path.value.eqn
        if eqn is None:
            return None
        if eqn.primitive is lax.dot_general_p:
            return self._product(eqn.params, *_operands(path))
        columns = _columns(path.value)
        if eqn.primitive is not lax.add_p and columns is None:
            return None
        terms = [self._affine(operand) for operand in _operands(path)]
        known = [term for term in terms if term is not None]
        if len(known) < len(terms):
            return None
        return functools.reduce(Affine.__add__, known) if columns is None else known[0].cut(columns)

    def _row(self, path: Path) -> Part | None:
        """Returns the row that all rows of a value equal in all steps, or None."""
        value = path.value
        if value.literal is not None:
            return None if value.literal.shape else Part(value.literal)
        shape = value.aval.shape
        if value.eqn is not None and _keeps_columns(value.eqn):
            operand = _operands(path)[0]
            given = operand.value.aval.shape
            if given == () or (given[-1:] == shape[-1:] and all(d == 1 for d in given[:-1])):
                return self._row(operand)
        is_row = len(shape) < 2 or (len(shape) == 2 and shape[0] == 1)
        same = self._same(path)
        return Part(same) if is_row and same is not None else None

    def _same(self, path: Path) -> jex_core.Var | None:
        """Returns the variable of a value if it is the same in all steps, or None."""
        var = path.carrier
        return var if isinstance(var, jex_core.Var) and var not in self._varying else None

    def _product(self, params: Mapping[str, Param], x: Path, weights: Path) -> Affine | None:
        """Returns the product of x, of h, or of both concatenated, with a matrix, or None."""
        (contracted, batch) = params["dimension_numbers"]
        if contracted not in (((1,), (0,)), ((1,), (1,))) or any(batch):
            return None
        aval, same = weights.value.aval, self._same(weights)
        is_matrix = len(aval.shape) == 2 and aval.dtype == "float32" and dims.is_static(aval.shape)
        if same is None or not is_matrix:
            return None
        part = Part(same, is_transposed=contracted[1] == (1,))
        if self._is_given(x):
            return self._given(x, part)
        made = x.value.eqn
        if made is None or made.primitive is not lax.concatenate_p or made.params["dimension"] != 1:
            return None
        beside = _operands(x)
        if not all(map(self._is_given, beside)):
            return None
        ends = itertools.accumulate(each.value.aval.shape[1] for each in beside)
        ranges = itertools.pairwise([0, *ends])
        terms = [
            self._given(each, dataclasses.replace(part, rows=rows))
            for each, rows in zip(beside, ranges, strict=True)
        ]
        return functools.reduce(Affine.__add__, terms)

    def _is_given(self, path: Path) -> bool:
        return _is(path, self._x) or _is(path, self._h)

    def _given(self, path: Path, part: Part) -> Affine:
        return Affine(of_x=(part,)) if _is(path, self._x) else Affine(of_h=(part,))


def _is(path: Path, var: jex_core.Var) -> bool:
    return path.value.eqn is None and path.value.atom is var


def _operands(path: Path) -> list[Path]:
    eqn = path.value.eqn
    assert eqn is not None
    return [find(atom, path.value.frame) for atom in eqn.invars]


def _argument(path: Path, primitive: jex_core.Primitive) -> Path | None:
    """Returns the first operand of `primitive`; None if another primitive computes the value."""
    eqn = path.value.eqn
    return _operands(path)[0] if eqn is not None and eqn.primitive is primitive else None


def _orders(path: Path, primitive: jex_core.Primitive) -> list[tuple[Path, Path]]:
    """Returns the operands of a commutative primitive in both orders; [] for other primitives."""
    if path.value.eqn is None or path.value.eqn.primitive is not primitive:
        return []
    one, other = _operands(path)
    return [(one, other), (other, one)]


def _keeps_columns(eqn: jex_core.JaxprEqn) -> bool:
    """Whether a broadcast keeps the last dimension in the last place; True for every reshape."""
    if eqn.primitive is lax.broadcast_in_dim_p:
        dimensions = tuple(eqn.params["broadcast_dimensions"])
        return dimensions[-1:] in ((), (len(aval_of(eqn.outvars[0]).shape) - 1,))
    return eqn.primitive is lax.reshape_p


def _columns(value: Value) -> tuple[int, int] | None:
    """Returns the range of columns that a value takes from its operand, or None."""
    eqn = value.eqn
    assert eqn is not None
    if len(value.aval.shape) != 2:
        return None
    if eqn.primitive is lax.split_p and eqn.params["axis"] == 1:
        ends = list(itertools.accumulate(eqn.params["sizes"]))
        first = ends[value.index - 1] if value.index else 0
        return first, ends[value.index]
    if eqn.primitive is lax.slice_p and set(eqn.params["strides"] or (1,)) == {1}:
        (row, first), (end_row, end) = eqn.params["start_indices"], eqn.params["limit_indices"]
        is_whole = row == 0 and end_row == aval_of(eqn.invars[0]).shape[0]
        return (first, end) if is_whole else None
    return None
