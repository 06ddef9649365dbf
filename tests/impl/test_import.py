"""What `import jax2tf` imports, and what is imported when a name is first used."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import jax2tf

# What a program that converts nothing needs none of. jax.extend is as large as all the rest.
AT_FIRST_USE = [
    "dtensor",
    "keras",
    "_src.api.convert",
    "_src.api.module",
    "_src.api.shape_evaluation",
    "_src.call_tf.call",
    "_src.call_tf.functions",
    "_src.dims",
    "_src.dtensor.layouts",
    "_src.explain.survey",
    "_src.explain.timing",
    "_src.export.exporting",
    "_src.export.formats",
    "_src.export.result",
    "_src.gradients.custom_gradient",
    "_src.lowering.interpreter",
    "_src.lowering.plan",
    "_src.native.xla_call_module",
    "_src.ops",
    "_src.targets.by_name",
    "_src.targets.op_tables",
    "_src.targets.target",
    "_src.tracing.arguments",
    "_src.tracing.functions",
    "_src.tracing.jaxprs",
    "_src.tracing.primitives",
    "_src.tracing.trace",
    "_src.tracing.tracer",
    "_src.util.dtypes",
]


def printed(program: str) -> list[str]:
    """The lines that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_what_is_imported_at_first_use_alone():
    before, after = printed("""
        import sys, jax, tensorflow
        known = set(sys.modules)
        import jax2tf
        print(*sorted(set(sys.modules) - known))
        jax2tf.call_tf, jax2tf.convert, jax2tf.dtensor.mesh_of, jax2tf.explain, jax2tf.export
        jax2tf.Module, jax2tf.keras, jax2tf.profile
        print(*sorted(set(sys.modules) - known))
    """)
    lazy = {"jax.extend", *(f"jax2tf.{name}" for name in AT_FIRST_USE)}
    assert not lazy & set(before.split())
    # The names above are those of modules.
    assert lazy <= set(after.split())


# Modules that are called as a public function is, or that import such a module.
FIRST = [
    "",
    "from jax2tf._src.explain import known; import jax2tf._src.export.formats",
    "import jax2tf._src.export.exporting; from jax2tf._src.explain import survey, timing",
    "from jax2tf.keras import Layer",
    "from jax2tf._src.lowering.registry import register",
    "from jax2tf import *",
]


def test_every_public_name_is_what_it_was():
    """Whatever was imported before it is asked for; the second time it is the same object.

    JAX and TensorFlow are imported once, and each of FIRST runs in a fork of that process.
    """
    lines = printed(f"""
        import os, sys
        import jax, tensorflow
        assert "jax2tf" not in sys.modules
        for number, first in enumerate({FIRST!r}):
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0, first
                continue
            import jax2tf
            exec(first)
            for name in jax2tf.__all__:
                value = getattr(jax2tf, name)
                assert value is getattr(jax2tf, name) is vars(jax2tf)[name], name
                print(number, name, type(value).__name__, getattr(value, "__name__", None))
            sys.stdout.flush()
            os._exit(0)
    """)
    expected = []
    for name in jax2tf.__all__:
        value = getattr(jax2tf, name)
        expected.append(f"{name} {type(value).__name__} {getattr(value, '__name__', None)}")
    assert lines == [f"{n} {line}" for n in range(len(FIRST)) for line in expected]
    kinds = dict(line.split()[:2] for line in expected)
    functions = {"call_tf", "convert", "explain", "export", "install", "profile"}
    assert {kinds[name] for name in functions} == {"function"}
    assert {name for name, kind in kinds.items() if kind == "module"} == {"dtensor", "keras"}


def test_names_of_packages_that_have_the_names_of_functions():
    from jax2tf._src.call_tf.call import call_tf
    from jax2tf._src.explain.explanation import Explanation
    from jax2tf._src.explain.report import Refusal, Report
    from jax2tf._src.explain.survey import explain
    from jax2tf._src.explain.timing import Profile, profile
    from jax2tf._src.export.exporting import export
    from jax2tf._src.export.result import ExportResult

    assert call_tf is jax2tf.call_tf
    assert (explain, profile) == (jax2tf.explain, jax2tf.profile)
    assert (export, ExportResult) == (jax2tf.export, jax2tf.ExportResult)
    assert all(isinstance(kind, type) for kind in (Explanation, Profile, Refusal, Report))


def test_names_are_listed_before_they_are_used():
    (names,) = printed("import jax2tf; print(*dir(jax2tf))")
    assert set(jax2tf.__all__) <= set(names.split())
    # As in any module.
    with pytest.raises(AttributeError, match="module 'jax2tf' has no attribute 'konvert'"):
        jax2tf.konvert  # noqa: B018
    assert not hasattr(jax2tf, "__wrapped__")


@pytest.mark.parametrize("first", ["", "import jax2tf"])
def test_threads_that_use_it_first_at_once(first):
    """Each begins with another name, and so with other modules."""
    lines = printed(f"""
        import sys, threading
        import jax, numpy as np, tensorflow as tf
        {first}

        def converts(): return jax2tf.convert(jax.numpy.sin)(np.float32(0))
        def calls(): return jax2tf.call_tf(tf.math.cos)(np.float32(0))
        def explains(): return len(jax2tf.explain(jax.numpy.sin, np.float32(0)).reports)
        def holds(): return jax2tf.Module(lambda p, x: p * x, np.float32(2))(np.float32(3))
        def evaluates(): return jax2tf.eval_polymorphic_shape(jax.numpy.sin)(np.float32(0))[1]
        def finds(): return len(jax2tf.TARGETS)
        def exports(): return jax2tf.export.__name__
        def spreads(): return jax2tf.dtensor.convert.__name__

        def run(function):
            global jax2tf
            barrier.wait()
            import jax2tf
            results[function.__name__] = str(function())

        functions = [converts, calls, explains, holds, evaluates, finds, exports, spreads]
        results, barrier = {{}}, threading.Barrier(2 * len(functions))
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=run, args=[f]) for f in [*functions, *functions]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for function in functions:
            print(function.__name__, results.get(function.__name__, "failed"))
    """)
    assert lines == [
        "converts tf.Tensor(0.0, shape=(), dtype=float32)",
        "calls 1.0",
        f"explains {len(jax2tf.TARGETS)}",
        "holds tf.Tensor(6.0, shape=(), dtype=float32)",
        "evaluates ()",
        f"finds {len(jax2tf.TARGETS)}",
        "exports export",
        "spreads convert",
    ]


def test_derivative_rules_of_jax_stay_until_a_trace_has_symbolic_sizes():
    lines = printed("""
        import jax, jax.numpy as jnp, numpy as np, tensorflow as tf
        from jax.interpreters import ad

        def tables():
            return {**ad.primitive_jvps}, {**ad.primitive_transposes}

        jax.grad(lambda x: jnp.cumprod(x)[-1])(np.ones(3, np.float32))
        before = tables()
        import jax2tf
        print("import", tables() == before)

        def gradient(spec):
            converted = jax2tf.convert(lambda x: jnp.cumprod(x)[-1], polymorphic_shapes=spec)

            @tf.function(input_signature=[tf.TensorSpec([None if spec else 3], tf.float32)])
            def graph(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = converted(x)
                return tape.gradient(y, x)

            return graph(tf.constant([2.0, 3.0, 5.0])).numpy().tolist()

        print(gradient(None))
        print("known sizes", all(
            after[primitive] is rule
            for table, after in zip(before, tables())
            for primitive, rule in table.items()
        ))
        print(gradient("b"))
        print("symbolic sizes", tables()[0][jax.lax.cumprod_p] is before[0][jax.lax.cumprod_p])
    """)
    assert lines == [
        "import True",
        "[15.0, 10.0, 6.0]",
        "known sizes True",
        "[15.0, 10.0, 6.0]",
        "symbolic sizes False",
    ]
