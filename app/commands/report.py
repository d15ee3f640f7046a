"""`tokensphere report`."""

from tokensphere.commands.options import Json, RunPath, say, say_json


def report(run: RunPath, json: Json = False) -> int:
    """Draw the figures of a run anew and write report.html."""
    from tokensphere.report import write_report

    path = write_report(run)
    if json:
        say_json({"report": str(path)})
    else:
        say(f"see {path}")
    return 0
