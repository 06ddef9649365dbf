"""The other lowering: StableHLO inside one XlaCallModule op."""
