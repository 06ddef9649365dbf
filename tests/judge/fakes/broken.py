"""It cannot be imported."""

raise RuntimeError("two rules for one primitive")
