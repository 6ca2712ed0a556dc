"""What a site asks of robots: its robots.txt, parsed and answered (RFC 9309)."""

from polite_transport.robots.pace import VisitTime
from polite_transport.robots.parse import Robots, parse_robots
from polite_transport.robots.records import Record
from polite_transport.robots.user_agent import product_token
from polite_transport.robots.verdict import Group, Rule, Verdict, Why

__all__ = [
    "Group",
    "Record",
    "Robots",
    "Rule",
    "Verdict",
    "VisitTime",
    "Why",
    "parse_robots",
    "product_token",
]
