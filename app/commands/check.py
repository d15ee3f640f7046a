"""`tokensphere check`."""

from tokensphere.commands.options import ConfigPath, Json, Settings, say, say_json

SHORTFALL = 1


def check(config: ConfigPath, settings: Settings = None, json: Json = False) -> int:
    """Check the theorem's hypotheses and print the rates that follow from them."""
    from tokensphere.checking import check_configuration
    from tokensphere.config import load

    answer = check_configuration(load(config, settings))
    if json:
        say_json(answer.as_dict())
    else:
        for hypothesis in answer.hypotheses:
            say(f"{hypothesis.name}  {hypothesis.verdict:<9}  {hypothesis.reason}")
        for name, sentence in answer.predictions.items():
            say(f"{name}: {sentence}")
    return 0 if answer.holds else SHORTFALL
