"""Asking a shared store that is away for the moment, as steps."""

import random
from typing import TypeVar

from polite_transport.policy import Policy
from polite_transport.steps import Flow, Sleep, StoreStep
from polite_transport.stores.base import StoreFault

T = TypeVar("T")

FIRST_PAUSE = 0.05  # seconds, doubling
LONGEST_PAUSE = 1.0


def ask_again(step: StoreStep[T], fault: StoreFault, policy: Policy) -> Flow[T]:
    """Ask again until the store answers, or its patience or the policy's max_wait is over.

    fault: what it said the first time.
    Raises StoreFault.
    """
    patience = fault.patience
    if policy.max_wait is not None:
        patience = min(patience, policy.max_wait)
    waited = fault.spent
    pause = FIRST_PAUSE
    while fault.passing and waited < patience:
        # At random, so that a fleet does not come back all at once.
        nap = min(pause * random.uniform(0.5, 1.0), patience - waited)  # noqa: S311
        waited += yield from Sleep(nap)
        pause = min(2 * pause, LONGEST_PAUSE)
        try:
            return (yield from step)
        except StoreFault as again:
            fault = again
            waited += fault.spent
    raise fault
