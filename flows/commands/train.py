"""``hchem train``: the same command as ``python -m flows.train``, which ``torchrun`` needs."""

from flows.train import app

__all__ = ["app"]
