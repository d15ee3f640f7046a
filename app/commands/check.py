"""`tokensphere check`."""

from typing import Any

from tokensphere.commands.options import ConfigPath, Json, Settings, say, say_json

SHORTFALL = 1


def check(config: ConfigPath, settings: Settings = None, json: Json = False) -> int:
    """Check the theorem's hypotheses and print the rates that follow from them."""
    from tokensphere.checking import check_configuration
    from tokensphere.config import load

    answer = check_configuration(load(config, settings))
    if json:
        say_json(answer)
    else:
        for line in _lines(answer):
            say(line)
    return 0 if answer["holds"] else SHORTFALL


def _lines(answer: dict[str, Any]) -> list[str]:
    lines = [f"{entry.name}  {entry.verdict:<9}  {entry.reason}" for entry in answer["hypotheses"]]
    return lines + [f"{name}: {text}" for name, text in answer["predictions"].items()]
