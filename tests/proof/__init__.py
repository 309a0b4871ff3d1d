"""The proofs of the foundation: faults, placed on purpose, and what must hold after each of them."""
