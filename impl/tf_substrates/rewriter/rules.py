"""What the rewriter replaces in a file, and by what.

`edits_of` looks at imports wherever they stand, `JAX_MODE = False` and `NUMPY_MODE = False`,
strings that are the name of a rewritten module, and what an omitted module leaves in an `__init__`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from tf_substrates.rewriter import given_derivatives
from tf_substrates.rewriter.edits import Change, Edit, Ending, Import, Wrap
from tf_substrates.rewriter.places import TENSORFLOW, Substrate


def edits_of(
    source: str, substrate: Substrate, package: str = "", filename: str = "", module: str = ""
) -> list[Change]:
    """The edits that bring a file to a substrate.

    Args:
      source: the file's text.
      package: the package that the file belongs to, as `__package__` says it, for relative imports.
      filename: for the message of a SyntaxError.
      module: the file's own name, for what a substrate says of single modules.
    """
    tree = ast.parse(source, filename or "<unknown>")
    nodes = list(ast.walk(tree))
    found: list[Change] = list(_walk(tree, nodes, substrate, package, module))
    wraps = list(_members(nodes)) if substrate.members else []
    if substrate.members and substrate.name == "jax":
        taken = {id(wrap.node) for wrap in wraps}
        wraps += [wrap for wrap in _numbers(tree, nodes) if id(wrap.node) not in taken]
        wraps += given_derivatives.wraps(nodes)
    used = {wrap.function for wrap in wraps if isinstance(wrap, Wrap)}
    used |= {_AS_TENSORFLOW} if any(isinstance(wrap, Edit) for wrap in wraps) else set()
    if used:
        names = ", ".join(f"{name[1:]} as {name}" for name in sorted(used))
        where = f"tf_substrates.{substrate.name}.tensor_attributes"
        found += [*wraps, Import(f"from {where} import {names}")]
    found += [Import(f"import {substrate.of(name)}") for name in substrate.imports.get(module, ())]
    if module in substrate.extended:
        where, _, function = substrate.extended[module].rpartition(".")
        found += [Ending(f"from {where} import {function} as _extend; _extend(globals())")]
    return found


def _walk(
    tree: ast.Module, nodes: Sequence[ast.AST], substrate: Substrate, package: str, module: str
) -> Iterator[Edit]:
    modes_stay = module in substrate.as_tensorflow
    dropped: set[str] = set()
    documentation = _docstrings(nodes)
    for node in nodes:
        text = None
        if isinstance(node, ast.Import):
            text = _import(node, substrate)
        elif isinstance(node, ast.ImportFrom):
            text = _import_from(node, substrate, package, dropped)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            text = None if modes_stay else _mode(node, substrate)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            moved = None if id(node) in documentation else _module_string(node.value, substrate)
            text = None if moved is None else repr(moved)
        if text is not None:
            assert isinstance(node, (ast.stmt, ast.expr))
            yield Edit(node, text)
    if dropped:
        yield from _without_names(tree, dropped)


# What TensorFlow's shapes, dtypes and tensors have, and what stands for them here does not.
_MEMBERS = frozenset(
    {
        "as_list",
        "is_fully_defined",
        "num_elements",
        "concatenate",
        "merge_with",
        "with_rank",
        "with_rank_at_least",
        "assert_has_rank",
        "assert_is_compatible_with",
        "assert_is_fully_defined",
        "is_compatible_with",
        "as_numpy_dtype",
        "base_dtype",
        "real_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numeric",
        "is_unsigned",
        "numpy",
        "get_shape",
        "set_shape",
        "ref",
        "OVERLOADABLE_OPERATORS",
    }
)
# Names that other things have as well: of `x.shape` and of a name that says it is one.
_OF_SHAPES = frozenset({"rank", "ndims", "dims"})
_OF_DTYPES = frozenset({"limits", "max", "min", "size"})
_AS_TENSORFLOW = "_as_tensorflow"
_AS_SHAPE = "_as_shape"
_AS_INDEX = "_as_index"
_AS_CLASSES = "_as_classes"
_AS_RESHAPE = "_as_reshape"


def _members(nodes: Sequence[ast.AST]) -> Iterator[Edit | Wrap]:
    """Wraps around what TensorFlow's attributes are read of, but for modules and `self`."""
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    # Whether lists of slices may be indices.
    has_slices = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "slice"
        for node in nodes
    )
    inside_texts: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            inner = [n for n in ast.walk(node) if _is_member(n, modules)]
            inside_texts.update(map(id, inner))
            inside_texts.update(id(n) for n in ast.walk(node) if n is not node)
            if inner and id(node) not in inside_texts:
                # Before Python 3.12 what is inside has no positions: the whole text is replaced.
                yield Edit(node, ast.unparse(_Wrapping(modules).visit(node)))
        elif _is_member(node, modules) and id(node) not in inside_texts:
            assert isinstance(node, ast.Attribute)
            yield Wrap(node.value, _AS_TENSORFLOW)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            # tf.TensorShape takes a list beside it, a tuple does not.
            for side, other in ((node.left, node.right), (node.right, node.left)):
                beside_list = isinstance(other, ast.List) and isinstance(
                    side, (ast.Name, ast.Attribute)
                )
                if (beside_list or _is_shape(side)) and id(side) not in inside_texts:
                    yield Wrap(side, _AS_SHAPE)
        elif (
            isinstance(node, ast.Call)
            and any(keyword.arg == "newshape" for keyword in node.keywords)
            and id(node) not in inside_texts
        ):
            yield Wrap(node.func, _AS_RESHAPE)
        elif _is_isinstance(node):
            for part in ast.walk(node.args[1]):
                if isinstance(part, ast.Attribute) and part.attr in ("Tensor", "ndarray"):
                    yield Wrap(part, _AS_CLASSES)
        elif (
            isinstance(node, ast.Subscript)
            and has_slices
            and id(node) not in inside_texts
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.slice, ast.Name)
        ):
            yield Wrap(node.slice, _AS_INDEX)


class _Wrapping(ast.NodeTransformer):
    def __init__(self, modules: set[str]):
        self.modules = modules

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_member = _is_member(node, self.modules)
        self.generic_visit(node)
        if is_member:
            node.value = ast.Call(ast.Name(_AS_TENSORFLOW, ast.Load()), [node.value], [])
        return node


_AS_NUMBER = "_as_number"
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


def _numbers(tree: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[Wrap]:
    """Wraps around numbers of NumPy's that an operator has beside something else.

    TensorFlow gives them the tensor's dtype; JAX gives the tensor theirs.
    """
    of_numpy = _Numbers(tree, nodes)
    if not of_numpy.modules:
        return
    # Before Python 3.12 what is inside a formatted string has no positions.
    in_texts = {
        id(inner) for node in nodes if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)
    }
    for node in nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, _ARITHMETIC)
            and id(node) not in in_texts
        ):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if of_numpy.holds(side) and not of_numpy.may_be(other):
                    yield Wrap(side, _AS_NUMBER)


class _Numbers:
    """Which expressions of a file are made by NumPy."""

    def __init__(self, tree: ast.Module, nodes: Sequence[ast.AST]):
        self.modules = {
            alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "numpy"
        }
        # By the identity of each name: the functions around it, the innermost first.
        self.scopes: dict[int, tuple[ast.AST, ...]] = {}
        self.assigned: dict[tuple[ast.AST, str], list[ast.expr | None]] = {}
        self.names: set[tuple[ast.AST, str]] = set()
        if self.modules:
            self._enter(tree, (tree,))
        for name, values in self.assigned.items():
            if all(value is not None and self.holds(value) for value in values):
                self.names.add(name)

    def _enter(self, node: ast.AST, scopes: tuple[ast.AST, ...]) -> None:
        """Notes the names below a node, and what is assigned to each; arguments are anything."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            scopes = (node, *scopes)
        if isinstance(node, ast.Name):
            self.scopes[id(node)] = scopes
        elif isinstance(node, ast.arg):
            self.assigned.setdefault((scopes[0], node.arg), []).append(None)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.assigned.setdefault((scopes[0], target.id), []).append(node.value)
        for below in ast.iter_child_nodes(node):
            self._enter(below, scopes)

    def holds(self, node: ast.expr) -> bool:
        """Whether NumPy makes it.

        That is `np.sqrt(2.0)`, arithmetic on it, elements of it, and a name that only these are
        given to.
        """
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            return any(map(self.holds, sides)) and all(map(self.may_be, sides))
        if isinstance(node, ast.UnaryOp):
            return self.holds(node.operand)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.Name):
            known = ((scope, node.id) for scope in self.scopes.get(id(node), ()))
            return next((name in self.names for name in known if name in self.assigned), False)
        while isinstance(node, (ast.Attribute, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
            if isinstance(node, ast.Name):
                return node.id in self.modules
        return False

    def may_be(self, node: ast.expr) -> bool:
        """The same, or a number of Python's."""
        if isinstance(node, ast.UnaryOp):
            return self.may_be(node.operand)
        if isinstance(node, ast.BinOp):
            return self.may_be(node.left) and self.may_be(node.right)
        return isinstance(node, ast.Constant) or self.holds(node)


def _is_isinstance(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
    )


def _is_shape(node: ast.expr) -> bool:
    """`x.shape`, or `x.shape[1:]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_shape(node.value)
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_member(node: ast.AST, modules: set[str]) -> bool:
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    of = node.value
    if isinstance(of, ast.Name) and (of.id in modules or of.id in ("self", "cls")):
        return False
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    if node.attr in _OF_SHAPES:
        return name.endswith("shape") or name.startswith("shape_") or _is_shape(of)
    if node.attr in _OF_DTYPES:
        return name.endswith("dtype")
    return node.attr in _MEMBERS


def _docstrings(nodes: Sequence[ast.AST]) -> set[int]:
    """Strings that stand alone, which document and name nothing."""
    return {id(n.value) for n in nodes if isinstance(n, ast.Expr)}


def _import(node: ast.Import, substrate: Substrate) -> str | None:
    statements = []
    changed = False
    for alias in node.names:
        exact = substrate.exact.get((alias.name, alias.asname or alias.name))
        moved = exact or substrate.of(alias.name)
        if substrate.omits(alias.name):
            changed = True
        elif moved is None:
            statements.append(_imported("import ", alias))
        elif alias.asname is not None:
            changed = True
            statements.append(f"import {moved} as {alias.asname}")
        else:
            # `import a.b` binds `a`: what replaces it is imported, and `a` bound to its own root.
            changed = True
            root = alias.name.partition(".")[0]
            new_root = substrate.of(root)
            if new_root is None:
                new_root = moved.removesuffix(alias.name[len(root) :])
            if alias.name != root:
                statements.append(f"import {moved}")
            statements.append(f"import {new_root} as {root}")
    if not changed:
        return None
    return "; ".join(statements) or "pass"


def _imported(prefix: str, alias: ast.alias) -> str:
    return prefix + alias.name + (f" as {alias.asname}" if alias.asname else "")


def _import_from(
    node: ast.ImportFrom, substrate: Substrate, package: str, dropped: set[str]
) -> str | None:
    module = _absolute(node, package)
    kept, statements = [], []
    for alias in node.names:
        name = f"{module}.{alias.name}"
        if substrate.omits(name) or substrate.omits(module):
            dropped.add(alias.asname or alias.name)
        elif (moved := _member(name, substrate)) is not None:
            parent, _, last = moved.rpartition(".")
            statements.append((parent, ast.alias(last, alias.asname or _unless(alias.name, last))))
        else:
            kept.append(alias)
    moved_module = substrate.of(module) if node.level == 0 else None
    if len(kept) == len(node.names) and moved_module is None:
        return None
    parts = []
    if kept:
        where = "." * node.level + (moved_module or node.module or "")
        parts.append(f"from {where} import " + ", ".join(_imported("", a) for a in kept))
    parts += [f"from {where} import {_imported('', alias)}" for where, alias in statements]
    return "; ".join(parts) or "pass"


def _unless(name: str, same: str) -> str | None:
    return None if name == same else name


def _member(name: str, substrate: Substrate) -> str | None:
    """Where `from a import b` finds b, if a.b is itself a module that has moved elsewhere."""
    if name in substrate.modules:
        return substrate.modules[name]
    if name in TENSORFLOW:
        return substrate.of(name)
    return None


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _mode(node: ast.Assign | ast.AnnAssign, substrate: Substrate) -> str | None:
    """`JAX_MODE = False` is True on JAX, and `NUMPY_MODE = False` on NumPy."""
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    flags = {"JAX_MODE": "jax", "NUMPY_MODE": "numpy"}
    if not isinstance(target, ast.Name) or target.id not in flags:
        return None
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, bool):
        return None
    return f"{target.id} = {flags[target.id] == substrate.name}"


def _module_string(value: str, substrate: Substrate) -> str | None:
    """A string that is the dotted name of a rewritten module, as lazy loaders take them.

    It may end in a place for a name: `"some_package.{}"`.
    """
    head, dot, place = value.partition(".{")
    if not dot:
        head, dot, place = value.partition(".%")
    if dot and head.replace(".", "").isidentifier():
        moved = substrate.of(head)
        return None if moved is None else moved + dot + place
    if not value.replace(".", "").isidentifier() or value.startswith("."):
        return None
    if "." not in value or value.rpartition(".")[2] in _FILES:
        return None
    return substrate.of(value)


# How names of files end that packages lay beside their modules.
_FILES = frozenset({"csv", "json", "lark", "md", "toml", "txt", "yaml", "yml"})


def _without_names(tree: ast.Module, dropped: set[str]) -> Iterator[Edit]:
    """`__all__` without the names whose imports are left out."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value
            if (
                isinstance(target, ast.Name)
                and target.id == "__all__"
                and isinstance(value, (ast.List, ast.Tuple))
            ):
                names = [e.value for e in value.elts if isinstance(e, ast.Constant)]
                if len(names) == len(value.elts) and dropped & set(names):
                    yield Edit(value, repr([name for name in names if name not in dropped]))
