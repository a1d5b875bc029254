"""The review page: what waits for a person's decision, served on loopback by ``hchem review``."""
