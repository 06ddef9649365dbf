"""Graphs, games and search: Jraph, MCTX, RLax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, Fails, integers, normal, program

KEY = jax.random.PRNGKey(0)


def _graph():
    import jraph

    return jraph.GraphsTuple(
        nodes=normal(6, 4),
        edges=normal(8, 3),
        senders=integers(6, 8),
        receivers=integers(6, 8, seed=1),
        n_node=np.array([4, 2], np.int32),
        n_edge=np.array([5, 3], np.int32),
        globals=normal(2, 2),
    )


@program("jraph")
def graph_network() -> Built:
    import jraph

    weights = {"edge": normal(13, 5), "node": normal(16, 4), "global": normal(11, 2)}

    def apply(params, graph):
        def update(name):
            return jraph.concatenated_args(lambda x: jax.nn.relu(x @ params[name]))

        network = jraph.GraphNetwork(update("edge"), update("node"), update("global"))
        return network(graph)

    return apply, (weights, _graph())


@program("jraph")
def graph_attention_of_padded_graphs() -> Built:
    import jraph

    def apply(weight, graph):
        network = jraph.GAT(
            lambda nodes: nodes @ weight,
            lambda sent, received, edges: jnp.sum(sent * received, -1, keepdims=True),
            lambda nodes: jax.nn.elu(nodes),
        )
        out = network(graph._replace(edges=None))
        mask = jraph.get_node_padding_mask(graph)
        return jnp.where(mask[:, None], out.nodes, 0)

    return apply, (normal(4, 5), jraph.pad_with_graphs(_graph(), 8, 10, 3))


@program(
    "mctx",
    fails={"gradient": Fails("jax", "ValueError", "Reverse-mode differentiation does not work")},
)
def tree_search() -> Built:
    import mctx

    def dynamics(params, key, action, embedding):
        embedding = jnp.tanh(embedding @ params["w"] + action[:, None])
        return (
            mctx.RecurrentFnOutput(
                reward=embedding[:, 0],
                discount=jnp.full(embedding.shape[:1], 0.9),
                prior_logits=embedding @ params["policy"],
                value=embedding[:, 1],
            ),
            embedding,
        )

    def search(params, key, state):
        root = mctx.RootFnOutput(
            prior_logits=state @ params["policy"], value=state[:, 1], embedding=state
        )
        output = mctx.gumbel_muzero_policy(
            params, key, root, dynamics, num_simulations=8, max_num_considered_actions=3
        )
        return output.action, output.action_weights

    params = {"w": normal(4, 4), "policy": normal(4, 3)}
    return search, (params, KEY, normal(2, 4))


@program("rlax", batch=(None, "b, ...", "b"))
def returns_and_losses() -> Built:
    import rlax

    def loss(weight, observations, actions):
        def one(observations, action):
            values = observations @ weight
            targets = rlax.vtrace_td_error_and_advantage(
                values[:-1, 0], values[1:, 0], values[1:, 1], jnp.full(4, 0.9), jnp.ones(4)
            )
            q = rlax.q_learning(values[0], action, values[1, 0], 0.9, values[1])
            returns = rlax.lambda_returns(values[1:, 1], jnp.full(4, 0.9), values[1:, 0], 0.8)
            return jnp.mean(targets.errors**2) + q**2 + rlax.huber_loss(returns).sum()

        return jnp.mean(jax.vmap(one)(observations, actions))

    return loss, (normal(4, 3), normal(2, 5, 4), integers(3, 2))
