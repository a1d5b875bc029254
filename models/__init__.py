"""Everything that talks to a language or embedding model. Knows nothing of the other packages."""
