"""`python -m taut.fleet`: answers as JSON on stdout. `taut fleet` runs this and makes tables and pages of it."""

import argparse
import json
import sys
from typing import Any

import ibis

from taut.fleet import engines, merge
from taut.fleet.engines import ENGINES, NoFleet
from taut.fleet.expressions import QUANTILES
from taut.fleet.questions import checked_day, open


def main() -> int:
    arguments = parser().parse_args()
    # That in which Ibis reckons with answers of engines, too.
    ibis.set_backend(engines.connected())
    try:
        answer = answered(arguments)
    except NoFleet as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # What an engine says of itself is a page; its first line tells.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = lines[0] if lines else "no reason"
        say(f"{without_password(arguments.place)}: {type(error).__name__}: {why}")
        return 2
    json.dump(answer, sys.stdout, ensure_ascii=False)
    print()
    for file in answer["set_aside"]:
        say(f"warning: {file['file']}: cannot be read and is left out: {file['why']}")
    return 0


def say(text: str) -> None:
    """One line, whatever the names of files in it hold."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    print(f"taut: {shown}", file=sys.stderr)


def answered(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.verb == "merge":
        for day in (arguments.since, arguments.until):
            if day is not None:
                checked_day(day)
        return merge.merge(arguments.place, arguments.into, arguments.by, arguments.since, arguments.until)
    fleet = open(
        arguments.place,
        engine=arguments.engine,
        since=arguments.since,
        until=arguments.until,
        chain=arguments.chain,
        revision=getattr(arguments, "revision", None),
    )
    if arguments.verb == "report":
        return fleet.report()
    if arguments.verb == "worst":
        return fleet.worst(hop=arguments.hop, cause=arguments.cause, figure=arguments.figure, limit=arguments.limit)
    return fleet.compare(arguments.a, arguments.b, by=arguments.by)


def without_password(place: str) -> str:
    return f"{place.split('://')[0]}://{place.rsplit('@', 1)[1]}" if "://" in place and "@" in place else place


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m taut.fleet", description="Ask a fleet; the answer is JSON.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("place", help="a folder that `taut fleet add` filled, or clickhouse://HOST:8123/DATABASE/TABLE")
    place.add_argument("--since", help="first day, like 2026-11-22")
    place.add_argument("--until", help="last day")
    asked = argparse.ArgumentParser(add_help=False, parents=[place])
    asked.add_argument("--engine", choices=ENGINES, default="duckdb")
    asked.add_argument("--chain")
    one = argparse.ArgumentParser(add_help=False, parents=[asked])
    one.add_argument("--revision")
    verbs.add_parser("report", parents=[one])
    worst = verbs.add_parser("worst", parents=[one])
    worst.add_argument("--hop", default="")
    worst.add_argument("--cause", default="")
    worst.add_argument("--figure", choices=list(QUANTILES), default="p99")
    worst.add_argument("--limit", type=int, default=10)
    compare = verbs.add_parser("compare", parents=[asked])
    compare.add_argument("a")
    compare.add_argument("b")
    compare.add_argument("--by", choices=["revision", "robot"], default="revision")
    merged = verbs.add_parser("merge", parents=[place])
    merged.add_argument("--into", required=True)
    merged.add_argument("--by", choices=list(merge.PERIODS), default="week")
    return parser


if __name__ == "__main__":
    sys.exit(main())
