"""Where modules are on a substrate.

What an import by the hook needs where bytecode is kept stands here and in `hook` alone: they import
nothing that takes time, and the rules are read when a file is rewritten.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The modules that are TensorFlow's API; that of TensorFlow 1 is its `compat.v1`.
TENSORFLOW = ("tensorflow.compat.v2", "tensorflow")


class Substrate:
    """A substrate, and where rewritten modules are.

    Attributes:
      name: "numpy" or "jax".
      modules: where each rewritten module is: {"package": "tf_substrates.on_jax.package"}.
        Names below it follow it.
      exact: the same for one module and nothing below it, by the name that it is bound to:
        {("numpy", "xp"): "jax.numpy"} replaces `import numpy as xp` alone.
      omitted: modules that the substrate leaves out, as the package names them.
      as_tensorflow: modules in which `JAX_MODE = False` and `NUMPY_MODE = False` stay.
      imports: modules that import others too, which an omitted one would have imported for them.
      extended: by module, the function that is called with its names when it has run.
      members: whether attributes that TensorFlow's shapes, dtypes and tensors have are read of
        what has them.
    """

    def __init__(
        self,
        name: str,
        modules: Mapping[str, str],
        exact: Mapping[tuple[str, str], str] | None = None,
        omitted: frozenset[str] = frozenset(),
        as_tensorflow: frozenset[str] = frozenset(),
        imports: Mapping[str, tuple[str, ...]] | None = None,
        extended: Mapping[str, str] | None = None,
        members: bool = True,
    ):
        if name not in ("numpy", "jax"):
            raise ValueError(f"Substrate: there is 'numpy' and 'jax', not {name!r}.")
        self.name = name
        self.modules = modules
        self.exact = exact or {}
        self.omitted = omitted
        self.as_tensorflow = as_tensorflow
        self.imports = imports or {}
        self.extended = extended or {}
        self.members = members

    def identity(self) -> tuple:
        """All that decides what it rewrites, in one order in every process."""
        return (
            self.name,
            sorted(self.modules.items()),
            sorted(self.exact.items()),
            sorted(self.omitted),
            sorted(self.as_tensorflow),
            sorted(self.imports.items()),
            sorted(self.extended.items()),
            self.members,
        )

    def of(self, module: str) -> str | None:
        """Where a module is on this substrate; None where it stays."""
        for known in TENSORFLOW:
            if module == known or module.startswith(known + "."):
                rest = module[len(known) :]
                return f"tf_substrates.{self.name}.tf{rest}"
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            found = self.modules.get(".".join(parts[:length]))
            if found is not None:
                return ".".join([found, *parts[length:]])
        return None

    def omits(self, module: str) -> bool:
        return any(module == name or module.startswith(name + ".") for name in self.omitted)
