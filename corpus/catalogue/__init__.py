"""The catalogue: one database that is the state; everything else is a projection."""

from corpus.catalogue.database import Catalogue

__all__ = ["Catalogue"]
