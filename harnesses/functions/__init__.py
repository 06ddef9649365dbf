"""Public functions: one call at least of each that JAX documents, a module for each of JAX's.

What a function is made of belongs to the families of its primitives, dtypes and edge values too;
here it has to convert. A test walks JAX's public modules: a function that stands neither here nor,
with a reason, in limitations/uncovered.toml is an error.
"""

from harnesses.harness import Family

family = Family("functions")
