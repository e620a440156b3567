"""What all processes of the system have in common."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .. import times

BUSES = ("dds", "zenoh", "shm", "ros2")


@dataclass(frozen=True)
class Options:
    bus: str = "dds"
    domain: int = 0
    reliability: str = "reliable"
    depth: int | None = None
    """Of a topic's queue; None: each topic's own; 0: all messages are kept."""
    priority: str = "normal"
    listen: int = 0
    throttle: str = "none"
    seed: int = 1
    stall_limit: float = 0.02
    """Seconds."""

    def arguments(self) -> list[str]:
        """The command line that says the same."""
        words = ["--bus", self.bus, "--domain", str(self.domain), "--reliability", self.reliability]
        words += ["--priority", self.priority, "--listen", str(self.listen), "--throttle", self.throttle]
        words += ["--seed", str(self.seed), "--stall-limit", f"{self.stall_limit * 1e9:.0f}ns"]
        return words if self.depth is None else [*words, "--depth", str(self.depth) if self.depth else "all"]

    def parameters(self) -> dict[str, str | int | float]:
        """The same as parameters of a ROS 2 node, whose domain is its environment's; a depth of -1 is each topic's own."""
        depth = -1 if self.depth is None else self.depth
        of_text: dict[str, str | int | float] = {"reliability": self.reliability, "priority": self.priority}
        return of_text | {"depth": depth, "listen": self.listen, "seed": self.seed, "stall_limit": self.stall_limit}

    def with_parameters(self, given: dict[str, Any]) -> "Options":
        return replace(self, **given | {"depth": None if given["depth"] < 0 else given["depth"]})

    @classmethod
    def of_environment(cls) -> "Options":
        parser = argparse.ArgumentParser()
        add(parser)
        return chosen(parser.parse_args([]))


def add(parser: argparse.ArgumentParser) -> None:
    """Each can also be given as an environment variable, `REACH_DEPTH` for `--depth`."""
    group = parser.add_argument_group("the same for all processes of a system (or REACH_BUS=… and so on)")

    def option(name: str, default: str | None, **how: Any) -> None:
        given = os.environ.get(f"REACH_{name.upper().replace('-', '_')}", default)
        group.add_argument(f"--{name}", default=given, **how)

    option(
        "bus",
        "dds",
        type=_one_of(*BUSES),
        metavar="|".join(BUSES),
        help="CycloneDDS, zenoh, iceoryx2's shared memory, or nodes of ROS 2",
    )
    option(
        "domain", os.environ.get("ROS_DOMAIN_ID", "0"), type=_domain, metavar="N", help="0 to 232 (ROS_DOMAIN_ID, or 0)"
    )
    option(
        "reliability",
        "reliable",
        type=_one_of("reliable", "best_effort"),
        metavar="reliable|best_effort",
        help="of topics",
    )
    option("depth", None, type=_depth, metavar="N|all", help="of topics' queues (10; tf 100)")
    option("priority", "normal", type=_one_of("normal", "fifo"), metavar="normal|fifo", help="of the controller")
    option("listen", "0", type=_count, metavar="N", help="the planner takes rt/flood_topic_1 to _N (0)")
    option("throttle", "none", type=_one_of("none", "adaptive"), metavar="none|adaptive", help="how it takes them")
    option("seed", "1", type=int, metavar="N", help="of the planner's random numbers (1)")
    option(
        "stall-limit",
        "20ms",
        type=times.within(60),
        metavar="TIME",
        help="the controller gives up when that late, the arm after as many missing commands as it has ms (20ms)",
    )


def chosen(parsed: argparse.Namespace) -> Options:
    return Options(**{name: getattr(parsed, name) for name in Options.__dataclass_fields__})


def _one_of(*words: str) -> Callable[[str], str]:
    def word(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(words)}")
        return text

    return word


def _domain(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 232):
        raise argparse.ArgumentTypeError(f"{text} is not a DDS domain, 0 to 232")
    return int(text)


def _depth(text: str) -> int:
    if text != "all" and not (text.isdecimal() and 1 <= int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text} is neither `all` nor 1 to 100000 messages")
    return 0 if text == "all" else int(text)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 64):
        raise argparse.ArgumentTypeError(f"{text} is not within 0 to 64 topics")
    return int(text)
