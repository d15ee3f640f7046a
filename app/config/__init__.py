"""What a run is asked to do: the TOML file as checked, frozen tables, and the objects built from them."""

from tokensphere.config.reading import apply_settings, load, parse, read
from tokensphere.config.tables import Config
from tokensphere.config.writing import to_toml

__all__ = ["Config", "apply_settings", "load", "parse", "read", "to_toml"]
