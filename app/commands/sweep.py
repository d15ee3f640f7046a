"""`tokensphere sweep`."""

from tokensphere.commands.options import ConfigPath


def sweep(config: ConfigPath) -> int:
    """Run a configuration over lists of values."""
    raise NotImplementedError(config)
