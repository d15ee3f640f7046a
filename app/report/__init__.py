"""report.html: one offline page that shows and judges a run.

Reading a run and predicting its curve are quick to import; drawing, which needs matplotlib, waits until it is asked.
"""

from pathlib import Path

from tokensphere.report.loading import RunData, load_run

__all__ = ["RunData", "load_run", "write_report"]


def write_report(folder: str | Path) -> Path:
    """Draw the figures of a run folder anew and write its report.html; returns the path of the page.

    Works on unfinished runs too: what is not there is not shown. Raises InputError where the folder holds no
    configuration or no solution.
    """
    from tokensphere.report.writing import draw_and_write

    return draw_and_write(folder)
