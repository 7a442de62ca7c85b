"""From a folder of finished runs to tables, figures and a page."""

from pfnts.experiments.report.writer import write_report

__all__ = ["write_report"]
