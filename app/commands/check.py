"""`tokensphere check`."""

from typing import Annotated

import typer

from tokensphere.commands.options import ConfigPath, Json, Settings, say, say_json

SHORTFALL = 1
Refine = Annotated[
    bool, typer.Option("--refine", help="Also run twice, here and one level coarser: every number with its error.")
]


def check(config: ConfigPath, settings: Settings = None, json: Json = False, refine: Refine = False) -> int:
    """Check the theorem's hypotheses and print the rates that follow from them."""
    from tokensphere.checking import check_configuration
    from tokensphere.config import load

    loaded = load(config, settings)
    answer = check_configuration(loaded)
    refined = None
    if refine:
        from tokensphere.refining import lines, refined_numbers

        refined = refined_numbers(loaded)
    if json:
        document = answer.as_dict()
        say_json(document if refined is None else {**document, "refined": refined})
    else:
        for hypothesis in answer.hypotheses:
            say(f"{hypothesis.name}  {hypothesis.verdict:<9}  {hypothesis.reason}")
        for name, sentence in answer.predictions.items():
            say(f"{name}: {sentence}")
        for line in lines(refined) if refined is not None else []:
            say(line)
    return 0 if answer.holds else SHORTFALL
