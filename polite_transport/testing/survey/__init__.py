"""The survey: any crawler against a small site, judged by the site's own log.

``hold`` runs a crawler's command and returns a ``Survey``: one row a question, with the lines of
the log that answer it.
"""

from polite_transport.testing.survey.asked import Asked
from polite_transport.testing.survey.judge import Row, Run, Verdict, judge
from polite_transport.testing.survey.runs import Survey, hold

__all__ = ["Asked", "Row", "Run", "Survey", "Verdict", "hold", "judge"]
