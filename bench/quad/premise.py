"""When a trial says something: the robot stood until the failure. One that did not is invalid, is counted, and is repeated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from workloads.quad.run import StartError

# A machine on which a trial is invalid so often in a row cannot show what is claimed.
ATTEMPTS = 5


@dataclass
class Repeated:
    """A trial of which the premise was met, if there is one, and why those before it say nothing."""

    what: str
    told: dict | None = None
    invalid: list[str] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        return len(self.invalid) + (self.told is not None)


def repeated(what: str, trial: Callable[[], dict], attempts: int = ATTEMPTS) -> Repeated:
    """Repeats a trial until its premise is met."""
    outcome = Repeated(what)
    for _ in range(attempts):
        try:
            told = trial()
        except StartError as error:
            outcome.invalid.append(str(error))
            continue
        why = unmet(told)
        if why is None:
            outcome.told = told
            break
        outcome.invalid.append(why)
    return outcome


def unmet(told: dict) -> str | None:
    """Why a trial says nothing; `None` where it does."""
    if told["failure"] == "none":
        return next(_of_a_run(told), None)
    fall = told["fall"]
    if told["stood"]:
        return None
    if fall["before_height_m"] is None:
        return "it ended before the failure"
    cause = (told["host"] or {}).get("cause")
    by_itself = f", after {cause}" if cause else ""
    return (
        f"before the failure the body was at {100 * fall['before_height_m']:.0f} cm and {fall['before_let_down']} of 12 "
        f"servos no longer followed{by_itself}"
    )


def _of_a_run(told: dict) -> Iterator[str]:
    """A run without a failure is one of a robot that trots to its end."""
    host = told["host"]
    if host["refused"]:
        yield f"the host refused: {host['refused']}"
    if host["cause"]:
        yield f"the host lowered the robot: {host['cause']}"
    if not told["stood"]:
        yield f"the body was at {100 * told['height_m']:.0f} cm at the end"
