"""Programs of each device of a mesh (shard_map, pmap) as one program over whole arrays."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import jax2tf
from tests.impl.parallel_programs import PROGRAMS, mesh_of, normal
from tests.running import MODES, assert_near

AUTO = AxisType.Auto


def nodes_of(function) -> list[str]:
    """The ops of a concrete function and of all functions that it calls."""
    graph = function.graph.as_graph_def()
    return [
        n.op for part in (graph.node, *(f.node_def for f in graph.library.function)) for n in part
    ]


def graph_of(fun, *args, **options):
    flat, tree = jax.tree.flatten(args)

    @tf.function(autograph=False)
    def run(*leaves):
        return jax.tree.leaves(jax2tf.convert(fun, **options)(*jax.tree.unflatten(tree, leaves)))

    return run.get_concrete_function(*map(tf.constant, flat))


# Eight layers one behind the other amplify the last digits of tanh: held against float64, JAX's own
# gradient is 17 away and TensorFlow's 89, on a processor with AVX-512.
GRADIENT_ULPS = {"pipeline": 256}


@pytest.mark.parametrize("name", PROGRAMS)
class TestPrograms:
    def test_gives_what_jax_gives(self, name):
        fun, args = PROGRAMS[name](8)
        expected = jax.tree.leaves(jax.jit(fun)(*args))
        leaves = jax.tree.leaves(args)
        for enable_xla in (True, False):
            graph = graph_of(fun, *args, enable_xla=enable_xla)
            assert_near([t.numpy() for t in graph(*map(tf.constant, leaves))], expected)
        eager = jax.tree.leaves(jax2tf.convert(fun)(*args))
        assert_near([t.numpy() for t in eager], expected)
        compiled = tf.function(graph, jit_compile=True, autograph=False)
        assert_near([t.numpy() for t in compiled(*map(tf.constant, leaves))], expected)

    def test_its_gradient_is_jaxs(self, name):
        fun, args = PROGRAMS[name](8)
        loss = _loss_of(fun)
        variables = jax.tree.map(tf.Variable, args)
        with tf.GradientTape() as tape:
            y = jax2tf.convert(loss)(*variables)
        gradients = jax.tree.map(np.asarray, tape.gradient(y, variables))
        expected = jax.jit(jax.grad(loss, tuple(range(len(args)))))(*args)
        assert_near(gradients, expected, GRADIENT_ULPS.get(name, 64))

    def test_one_device(self, name):
        fun, args = PROGRAMS[name](1)
        results = [t.numpy() for t in jax.tree.leaves(jax2tf.convert(fun)(*args))]
        assert_near(results, jax.tree.leaves(jax.jit(fun)(*args)))


def test_saved_programs_need_no_jax_and_no_mesh(tmp_path, without_jax):
    """One test of all: the process without JAX starts once."""
    for name, make in PROGRAMS.items():
        fun, args = make(8)
        module = tf.Module()
        module.f = _on_leaves(jax2tf.convert(fun), args)
        module.loss = _on_leaves(jax2tf.convert(_loss_of(fun)), args)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, str(tmp_path / name), options=options)
        np.savez(tmp_path / f"{name}.npz", *jax.tree.leaves(args))
    code = """
    for name in sys.argv[2:]:
        path = f"{sys.argv[1]}/{name}"
        saved, given = tf.saved_model.load(path), np.load(f"{path}.npz")
        leaves = [tf.constant(given[f"arr_{i}"]) for i in range(len(given))]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            loss = saved.loss(*leaves)[0]
        np.savez(f"{path}_results.npz", *saved.f(*leaves))
        np.savez(f"{path}_gradients.npz", *tape.gradient(loss, leaves))
    """
    assert without_jax(code, tmp_path, *PROGRAMS) == []

    def found(name, what):
        arrays = np.load(tmp_path / f"{name}_{what}.npz")
        return [arrays[f"arr_{i}"] for i in range(len(arrays))]

    for name, make in PROGRAMS.items():
        fun, args = make(8)
        assert_near(found(name, "results"), jax.tree.leaves(jax.jit(fun)(*args)))
        gradients = jax.jit(jax.grad(_loss_of(fun), tuple(range(len(args)))))(*args)
        ulps = GRADIENT_ULPS.get(name, 64)
        assert_near(found(name, "gradients"), jax.tree.leaves(gradients), ulps)


def _on_leaves(converted, args):
    """A function of the leaves of `args` that gives a list of tensors."""
    leaves, tree = jax.tree.flatten(args)

    def run(*tensors):
        return jax.tree.leaves(converted(*jax.tree.unflatten(tree, tensors)))

    specs = [tf.TensorSpec(x.shape, x.dtype) for x in leaves]
    return tf.function(run, autograph=False, input_signature=specs)


def _loss_of(fun):
    def loss(*args):
        return sum(jnp.sum(y**2) for y in jax.tree.leaves(fun(*args)))

    return loss


class TestSizeOfTheMesh:
    @staticmethod
    def of(size: int):
        mesh = AbstractMesh((size,), ("a",), axis_types=(AUTO,))

        def each(x):
            def step(carry, _):
                return lax.ppermute(carry, "a", [(i, (i + 1) % size) for i in range(size)]), None

            moved, _ = lax.scan(step, x, None, length=3)
            return lax.pmean(jnp.sin(moved), "a") + lax.axis_index("a")

        return jax.shard_map(each, mesh=mesh, in_specs=P("a"), out_specs=P("a"))

    def test_no_devices_are_needed(self):
        x = normal(512, 3)
        blocks = np.sin(np.roll(x.reshape(256, 2, 3), 3, axis=0)).mean(0)
        expected = (blocks + np.arange(256, dtype=np.float32)[:, None, None]).reshape(512, 3)
        assert_near(jax2tf.convert(self.of(256))(x).numpy(), expected)

    def test_the_graph_does_not_grow(self):
        x = normal(512, 3)
        small, large = (nodes_of(graph_of(self.of(size), x)) for size in (128, 256))
        assert sorted(small) == sorted(large)

    def test_one_device_leaves_nothing_behind(self):
        mesh = mesh_of(a=1, b=1)
        plain = graph_of(lambda x: jnp.sin(x), normal(2, 3))
        mapped = jax.shard_map(
            lambda x: lax.pcast(lax.psum(jnp.sin(x), ("a", "b")), ("a", "b"), to="varying"),
            mesh=mesh,
            in_specs=P("a", "b"),
            out_specs=P("a", "b"),
        )
        assert sorted(nodes_of(graph_of(mapped, normal(2, 3)))) == sorted(nodes_of(plain))


def test_polymorphic_batch():
    fun = jax.shard_map(
        lambda x: x - lax.pmean(x.mean(0), "a"),
        mesh=mesh_of(a=8),
        in_specs=P("a"),
        out_specs=P("a"),
    )
    converted = tf.function(
        jax2tf.convert(fun, polymorphic_shapes="8*b, _"),
        input_signature=[tf.TensorSpec([None, 3])],
        autograph=False,
    )
    for size in (8, 24):
        x = normal(size, 3)
        assert_near(converted(x).numpy(), jax.jit(fun)(x))


class TestOneByOne:
    """What JAX's vmap does otherwise than each device by itself."""

    # The device axes are one and two in turn: each kind of key and each mode has both, and each
    # kind of key has each mode once.
    @pytest.mark.parametrize(
        ("impl", "axes", "mode"),
        [
            pytest.param(impl, ({"a": 8}, {"a": 4, "b": 2})[(i + j) % 2], mode, id=f"{impl}-{name}")
            for i, impl in enumerate(["rbg", "unsafe_rbg", "threefry2x32"])
            for j, (name, mode) in enumerate(MODES.items())
        ],
    )
    def test_every_device_draws_from_its_own_key(self, impl, axes, mode):
        keys = jax.random.split(jax.random.key(0, impl=impl), 8)
        spec = P(tuple(axes))

        def each(keys, x):
            def step(key, _):
                key, *others = jax.random.split(key, 3)
                drawn = jax.random.normal(others[0], x.shape)
                return key, drawn + jax.random.gamma(others[1], 2.0, x.shape)

            return x + lax.scan(step, keys[0], None, length=2)[1].sum(0)

        def noisy(x):
            mesh = mesh_of(**axes)
            return jax.shard_map(each, mesh=mesh, in_specs=spec, out_specs=spec)(keys, x)

        x = normal(8, 4)
        expected = np.asarray(jax.jit(noisy)(x))
        assert len(np.unique((expected - x)[:, 0].round(4))) == 8
        np.testing.assert_allclose(mode(jax2tf.convert(noisy))(x), expected, rtol=1e-5, atol=1e-5)

    def test_a_key_that_is_the_same_on_some(self):
        def each(x):
            key = jax.random.fold_in(jax.random.key(0, impl="rbg"), lax.axis_index("b"))
            return x + jax.random.uniform(key, x.shape)

        f = jax.shard_map(
            each, mesh=mesh_of(a=4, b=2), in_specs=P("a"), out_specs=P("a", "b"), check_vma=False
        )
        assert_near(jax2tf.convert(f)(normal(8, 4)).numpy(), jax.jit(f)(normal(8, 4)))

    @pytest.mark.parametrize("vmap_method", [None, "broadcast_all"])
    def test_a_callback_takes_the_arrays_of_one_device(self, vmap_method):
        def on_host(x):
            assert x.shape == (1, 4)
            return np.cumsum(x, dtype=np.float32).reshape(x.shape)

        def each(x):
            described = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return jax.pure_callback(on_host, described, x, vmap_method=vmap_method)

        f = jax.shard_map(each, mesh=mesh_of(a=8), in_specs=P("a"), out_specs=P("a"))
        expected = np.cumsum(normal(8, 4), 1, dtype=np.float32)
        assert_near(jax2tf.convert(f)(normal(8, 4)).numpy(), expected)


class TestStaticArguments:
    """Of jax.pmap, whose static_broadcasted_argnums are values that a trace is made for."""

    @staticmethod
    def powers(x, n, how="plus"):
        assert isinstance(n, int)
        return x**n + lax.axis_index("i") * {"plus": 1, "minus": -1}[how]

    @pytest.mark.parametrize("static", [1, (1, 2), (2, 1)])
    def test_values(self, static, mode):
        args = (normal(8, 3), 3) if static == 1 else (normal(8, 3), 3, "minus")
        mapped = jax.pmap(self.powers, axis_name="i", static_broadcasted_argnums=static)
        converted = mode(jax2tf.convert(mapped))
        assert_near(converted(*args).numpy(), mapped(*args))
        others = (args[0], 2, *args[2:])
        assert_near(converted(*others).numpy(), mapped(*others))

    def test_in_axes(self):
        mapped = jax.pmap(
            lambda n, x, y: {"sum": x * n + lax.psum(y, "i"), "twice": y * 2},
            axis_name="i",
            in_axes=(None, 1, 0),
            out_axes={"sum": 1, "twice": 0},
            static_broadcasted_argnums=0,
        )
        args = 3, normal(2, 8), normal(8, 2)
        actual, expected = jax2tf.convert(mapped)(*args), mapped(*args)
        assert_near([t.numpy() for t in jax.tree.leaves(actual)], jax.tree.leaves(expected))

    @pytest.mark.parametrize("around", [lambda f: functools.partial(f, normal(8, 3)), jax.jit])
    def test_around_it(self, around):
        mapped = jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)
        if around is jax.jit:
            fun, args = jax.jit(mapped, static_argnums=1), (normal(8, 3), 2)
        else:
            fun, args = around(mapped), (2,)
        assert_near(jax2tf.convert(fun)(*args).numpy(), fun(*args))

    def test_gradients(self):
        mapped = jax.pmap(self.powers, axis_name="i", static_broadcasted_argnums=1)
        x = tf.Variable(normal(8, 3))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(jax2tf.convert(mapped)(x, 3))
        assert_near(tape.gradient(y, x).numpy(), 3 * normal(8, 3) ** 2)

    def test_a_tensor_has_no_value_that_can_be_static(self):
        mapped = jax.pmap(self.powers, axis_name="i", static_broadcasted_argnums=1)
        words = (
            r"argument n is static in jax\.pmap.*as a tensor.*leave it out of "
            "static_broadcasted_argnums"
        )
        with pytest.raises(TypeError, match=words):
            jax2tf.convert(mapped)(normal(8, 3), tf.constant(3))

    def test_a_file_has_arrays_alone(self, tmp_path):
        mapped = jax.pmap(self.powers, axis_name="i", static_broadcasted_argnums=1)
        words = r"n of powers is static in jax\.pmap.* a function of its other arguments that calls"
        with pytest.raises(ValueError, match=words):
            jax2tf.export(mapped, None, ("8, 3", ""), tmp_path / "model")

    def test_what_has_no_hash(self):
        mapped = jax.pmap(lambda x, n: x * n[0], static_broadcasted_argnums=1)
        with pytest.raises(ValueError, match=r"Non-hashable static arguments.*'list'"):
            jax2tf.convert(mapped)(normal(8, 3), [3])


def test_ragged_all_to_all():
    """JAX compiles it for no CPU: what its documentation says, as a loop over rows."""
    n, sizes = 4, np.array([[1, 2, 0, 1], [2, 0, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1]], np.int32)
    inputs = (np.cumsum(sizes, 1) - sizes).astype(np.int32)
    outputs = (np.cumsum(sizes, 0) - sizes).astype(np.int32)
    x, y = normal(n * 4, 2), normal(n * 6, 2, seed=1)

    def each(x, y, inputs, sent, outputs, received):
        return lax.ragged_all_to_all(
            x, y, inputs[0], sent[0], outputs[0], received[0], axis_name="a"
        )

    mesh = AbstractMesh((n,), ("a",), axis_types=(AUTO,))
    fun = jax.shard_map(each, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    expected = y.reshape(n, 6, 2).copy()
    for i in range(n):
        for j in range(n):
            rows = x.reshape(n, 4, 2)[i, inputs[i, j] : inputs[i, j] + sizes[i, j]]
            expected[j, outputs[i, j] : outputs[i, j] + sizes[i, j]] = rows
    for mode in (lambda f: f, tf.function(autograph=False)):
        result = mode(jax2tf.convert(fun))(x, y, inputs, sizes, outputs, sizes.T)
        np.testing.assert_array_equal(result, expected.reshape(-1, 2))


ROWS = P("a")


def _over_eight(fun, in_specs=ROWS, out_specs=ROWS, **options):
    def mapped(rows):
        mesh = mesh_of(a=8)
        return jax.shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)(
            rows
        )

    return mapped


class TestErrors:
    """JAX's own words, and which argument of which function they are about."""

    @staticmethod
    def refusal(fun, *args, **options):
        """What JAX says of the call, and what its conversion says."""
        with pytest.raises(Exception) as by_jax:  # noqa: PT011
            jax.jit(fun)(*args)
        with pytest.raises(by_jax.type) as refused:
            jax2tf.convert(fun, **options)(*args)
        assert str(refused.value) == str(by_jax.value)
        assert f"jax2tf.convert({fun.__name__}) called it with " in refused.value.__notes__[-1]
        return str(refused.value), refused.value.__notes__[-1]

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}])
    def test_a_mesh_that_does_not_divide(self, options):
        words, note = self.refusal(_over_eight(lambda x: x), normal(6, 3), **options)
        assert "8 does not evenly divide 6" in words
        assert "rows: float32[6, 3]" in note

    def test_a_result_that_the_mesh_does_not_divide(self):
        same = _over_eight(lambda x: x.sum(0), out_specs=P("a"))
        words, note = self.refusal(same, normal(8))
        assert "out_specs" in words
        assert "rows: float32[8]" in note

    def test_a_spec_of_another_rank(self):
        words, note = self.refusal(_over_eight(lambda x: x, P(None, "a")), normal(8))
        assert all(word in words for word in ("in_specs", "rank"))
        assert "rows: float32[8]" in note

    def test_a_batch_that_the_mesh_may_not_divide(self):
        same = jax2tf.convert(_over_eight(lambda x: x), polymorphic_shapes="b, _")
        with pytest.raises(ValueError, match="8") as refused:
            same(normal(16, 3))
        notes = "".join(refused.value.__notes__)
        assert "rows: float32[b, 3]" in notes
        assert "polymorphic_constraints=['mod(b, 8) == 0']" in notes
        assert "`8*b` in the place of `b`" in notes

    @pytest.mark.parametrize(
        "collective",
        [
            lambda x: lax.psum(x, "nowhere"),
            lambda x: lax.all_gather(x, "nowhere"),
            lambda x: lax.ppermute(x, "nowhere", [(0, 0)]),
            lambda x: x + lax.axis_index("nowhere"),
        ],
    )
    def test_a_collective_outside_of_a_mesh(self, collective):
        def outside(rows):
            return collective(rows)

        for fun in (outside, _over_eight(collective, check_vma=False)):
            words, note = self.refusal(fun, normal(8))
            assert "unbound axis name: nowhere" in words
            assert "rows: float32[8]" in note
