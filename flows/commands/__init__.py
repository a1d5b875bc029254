"""One module per command or noun group; each exposes a Typer named ``app``."""
