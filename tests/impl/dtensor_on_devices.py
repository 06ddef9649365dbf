"""DTensor on eight devices of a CPU: test_dtensor.py runs this in a process that has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import jax2tf
from jax2tf import dtensor
from tests.impl import logical_devices
from tests.impl.parallel_programs import normal
from tests.running import assert_near

logical_devices.make(8)

P, OPEN = PartitionSpec, PartitionSpec.UNCONSTRAINED
X, W = normal(8, 4), normal(4, 6)


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def specs_of(tensor) -> list[str]:
    return tf.experimental.dtensor.fetch_layout(tensor).sharding_specs


def check(fun, mesh, *args, **shardings):
    """The function on the mesh gives what JAX gives; its results."""
    results = dtensor.convert(fun, mesh, **shardings)(*args)
    assert_near(dtensor.values(results), jax.tree.map(np.asarray, jax.jit(fun)(*args)))
    return results


class TestPlaces:
    @pytest.mark.parametrize(
        ("spec", "found"),
        [
            (P("data", "model"), ["data", "model"]),
            (P(None, "model"), ["unsharded", "model"]),
            (P(("data",)), ["data", "unsharded"]),
            (None, ["unsharded", "unsharded"]),
        ],
    )
    def test_arrays(self, mesh, spec, found):
        placed = dtensor.place({"x": X}, spec, mesh)
        assert specs_of(placed["x"]) == found
        np.testing.assert_array_equal(dtensor.values(placed)["x"], X)

    def test_they_can_be_moved(self, mesh):
        placed = dtensor.place(dtensor.place(X, P("data"), mesh), P(None, "data"), mesh)
        assert specs_of(placed) == ["unsharded", "data"]
        np.testing.assert_array_equal(dtensor.values(placed), X)

    def test_devices_are_those_of_jax(self):
        turned = jax.sharding.Mesh(np.array(jax.devices())[::-1], ("data",))
        placed = dtensor.place(X, P("data"), turned)
        parts = tf.experimental.dtensor.unpack(placed)
        assert parts[0].device.endswith("CPU:7")
        np.testing.assert_array_equal(parts[0], X[:1])

    def test_keys(self, mesh):
        keys = jax.random.split(jax.random.key(0), 8)
        placed = dtensor.place(keys, P("data"), mesh)
        assert specs_of(placed) == ["data", "unsharded"]
        np.testing.assert_array_equal(dtensor.values(placed), jax.random.key_data(keys))

    def test_several_axes_for_one_dimension(self, mesh):
        with pytest.raises(jax2tf.LayoutError) as refused:
            dtensor.place({"x": X}, P(("data", "model")), mesh)
        words = ("place: x: ", "axes data, model", "one axis of 8 devices in their place")
        assert all(word in str(refused.value) for word in words)

    def test_a_dimension_that_does_not_go_into_parts(self, mesh):
        words = r"x: dimension 0 of shape \(7, 4\) does not go into 4 equal parts.*pad it"
        with pytest.raises(jax2tf.LayoutError, match=words):
            dtensor.place({"x": X[:7]}, P("data"), mesh)


class TestShardings:
    def test_of_jit(self, mesh):
        data, model = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))
        f = jax.jit(lambda w, x: jnp.tanh(x @ w), in_shardings=(model, data), out_shardings=data)
        result = check(f, mesh, W, X)
        assert specs_of(result) == ["data", "unsharded"]

    def test_given_beside_the_function(self, mesh):
        shardings = {
            "in_shardings": ({"w": P(None, "model")}, P("data")),
            "out_shardings": P("data", "model"),
        }
        result = check(lambda p, x: x @ p["w"], mesh, {"w": W}, X, **shardings)
        assert specs_of(result) == ["data", "model"]

    def test_whole_results(self, mesh):
        result = check(jnp.sin, mesh, X, in_shardings=(P("data"),), out_shardings=P())
        assert specs_of(result) == ["unsharded", "unsharded"]

    def test_not_twice(self, mesh):
        with pytest.raises(ValueError, match=r"give them to its jax\.jit"):
            dtensor.convert(jax.jit(jnp.sum, static_argnums=1), mesh, in_shardings=P("data"))

    def test_a_mesh_of_devices_that_are_not_jaxs(self):
        abstract = AbstractMesh((8,), ("data",), axis_types=(AxisType.Auto,))
        assert specs_of(check(jnp.sin, abstract, X, in_shardings=P("data"))) == [
            "data",
            "unsharded",
        ]

    def test_arguments_are_named(self, mesh):
        f = dtensor.convert(lambda p: p["w"], mesh, in_shardings=({"w": P(("data", "model"))},))
        words = r"argument p\['w'\]: the sharding spreads one dimension over the axes"
        with pytest.raises(jax2tf.LayoutError, match=words):
            f({"w": X})

    @pytest.mark.parametrize(
        ("spec", "found"),
        [
            (P(None, "model"), ["unsharded", "model"]),
            (P(), ["unsharded", "unsharded"]),
            (P(None, OPEN), ["unsharded", "unsharded"]),
            (P(OPEN, None), ["data", "unsharded"]),
            (P(OPEN, OPEN), ["data", "unsharded"]),
            (P(OPEN, "data"), ["unsharded", "data"]),
        ],
    )
    def test_constraints(self, mesh, spec, found):
        def f(x):
            return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, spec))

        assert specs_of(check(f, mesh, X, in_shardings=(P("data"),))) == found

    def test_constraints_of_other_meshes(self, mesh):
        other = AbstractMesh((2,), ("data",), axis_types=(AxisType.Auto,))
        f = dtensor.convert(
            lambda x: lax.with_sharding_constraint(x, NamedSharding(other, P("data"))), mesh
        )
        with pytest.raises(jax2tf.LayoutError, match=r"inside of the function: .*same axes"):
            f(X)

    def test_reshard_on_an_explicit_mesh(self):
        explicit = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
        f = dtensor.convert(lambda x: jax.reshard(x, NamedSharding(explicit, P("data"))), explicit)
        assert specs_of(f(X)) == ["data", "unsharded"]


# What DTensor gets wrong in one op or another, and these are lowered to others.
PROGRAMS = {
    "rows of a scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(4), x),
    "a scan backwards": lambda x: lax.scan(lambda c, y: (c + y, c), jnp.zeros(4), x, reverse=True),
    "gradient of a scan": jax.grad(
        lambda x: lax.scan(lambda c, y: (jnp.tanh(c) * y, c * y), jnp.ones(4), x)[1].sum()
    ),
    "loops that end apart": jax.vmap(
        lambda r: lax.while_loop(lambda c: c.sum() < 100, lambda c: jnp.abs(c) * 2 + 1, r)
    ),
    "reverse": lambda x: x[::-1, ::-1],
    "a roll": lambda x: jnp.roll(x, 1, 0) + x,
    "unpacked": lambda x: (lambda a, b: a * b)(*x.reshape(4, 2, 4).swapaxes(0, 1)),
    "a choice by a scalar": lambda x: jnp.where(x.sum() > 1e9, -x, x),
    "a complex quotient by a scalar": lambda x: lax.complex(x, x + 1) / 3,
    "a shift by a scalar": lambda x: jax.vmap(jnp.right_shift, (0, None))(
        (x * 100).astype(jnp.uint32), (x.size + x[0, 0] * 0).astype(jnp.uint32)
    ),
    "a scatter": lambda x: x.at[jnp.array([1, 3, 1])].add(1.0),
    "rows by index": lambda x: x[jnp.array([7, 0, 3, 3])],
    "a sort": lambda x: jnp.sort(x, 0),
    "sums of booleans": lambda x: (jnp.any(x > 0, 0), jnp.all(x > -9), (x > 0).sum(1)),
    "random numbers": lambda x: x + jax.random.normal(jax.random.key(0), (8, 4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("spec", [P("data", "model"), P(None, "data")])
def test_programs(mesh, name, spec):
    check(PROGRAMS[name], mesh, X, in_shardings=(spec,))


class TestGradients:
    def test_of_a_convolution(self, mesh):
        def loss(x):
            images, kernel = x.reshape(8, 1, 2, 2), jnp.ones((3, 1, 2, 2))
            return (lax.conv_general_dilated(images, kernel, (1, 1), "SAME") ** 2).sum()

        check(jax.grad(loss), mesh, X, in_shardings=(P("data"),))

    def test_of_variables(self, mesh):
        params = dtensor.variables({"w": W}, {"w": P(None, "model")}, mesh)
        loss = dtensor.convert(lambda p, x: (jnp.tanh(x @ p["w"]) ** 2).sum(), mesh)
        with tf.GradientTape() as tape:
            value = loss(params, dtensor.place(X, P("data"), mesh))
        gradient = tape.gradient(value, params["w"])
        expected = jax.grad(lambda w: (jnp.tanh(X @ w) ** 2).sum())(W)
        assert specs_of(gradient) == ["unsharded", "model"]
        assert_near(dtensor.values(gradient), np.asarray(expected), 64)

    def test_of_what_is_not_on_the_mesh(self, mesh):
        loss = dtensor.convert(lambda x: x.sum(), mesh)
        variable = tf.Variable(X)
        with tf.GradientTape(), pytest.raises(jax2tf.ConversionError, match="argument x, which"):
            loss(variable)


class TestCheckpoints:
    def module(self, mesh, spec, value):
        module = tf.Module()
        module.params = dtensor.variables(
            {"w": value, "step": np.int32(7)}, {"w": spec, "step": None}, mesh
        )
        return module

    def test_other_layouts_and_no_mesh_read_them(self, mesh, tmp_path):
        saved = self.module(mesh, P("data", "model"), X)
        assert [v.name for v in saved.trainable_variables] == ["w:0"]
        path = tf.train.Checkpoint(m=saved).write(str(tmp_path / "checkpoint"))
        other = self.module(mesh, P(None, "data"), np.zeros_like(X))
        tf.train.Checkpoint(m=other).read(path).assert_consumed()
        assert specs_of(other.params["w"].read_value()) == ["unsharded", "data"]
        np.testing.assert_array_equal(dtensor.values(other.params)["w"], X)
        plain = tf.Module()
        plain.params = {"w": tf.Variable(np.zeros_like(X)), "step": tf.Variable(0)}
        tf.train.Checkpoint(m=plain).read(path).assert_consumed()
        np.testing.assert_array_equal(plain.params["w"], X)


def test_what_dtensor_refuses_when_it_runs_has_a_remedy(mesh):
    f = dtensor.convert(lambda x: jnp.pad(x, ((1, 1), (0, 0))), mesh, in_shardings=(P("data"),))
    with pytest.raises(tf.errors.OpError) as refused:
        f(X)
    assert "with_sharding_constraint(x, PartitionSpec())" in refused.value.__notes__[0]
