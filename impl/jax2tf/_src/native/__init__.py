"""Native serialization: lowers a function to StableHLO inside one XlaCallModule op."""
