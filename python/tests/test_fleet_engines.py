"""The same questions on DuckDB, ClickHouse's engine and Spark: answers equal to the last digit. `make test-fleet` installs the two (1 GB, and
Java) and runs this. ClickHouse's own driver and Ibis's backend for its servers run; the engine behind them is in this process (chdb)."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import taut.fleet
from taut.fleet.__main__ import main

from bench.fleet import made

pytest.importorskip("chdb", reason="chdb is not installed: make test-fleet")
pytest.importorskip("clickhouse_connect", reason="clickhouse-connect is not installed: make test-fleet")
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: make test-fleet")

Answer = dict[str, Any]
QUESTIONS: dict[str, Callable[[taut.fleet.Fleet], Answer]] = {
    "report": lambda fleet: fleet.report(),
    "worst": lambda fleet: fleet.worst(hop="plan → send", cause="preempted", figure="p90", limit=3),
    "compare": lambda fleet: fleet.compare("v1", "v2"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """14 robots over six days of two weeks and two revisions, in a folder whose name SQL must quote."""
    folder = tmp_path_factory.mktemp("a fleet's") / "rows"
    folder.mkdir()
    made.partitioned(made.Fleet(14, date(2026, 10, 2), runs=6, hours=24, messages_an_hour=1000, rollout=(1, 5)), folder)
    return folder


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Answer]:
    fleet = taut.fleet.open(str(folder))
    return {name: ask(fleet) for name, ask in QUESTIONS.items()}


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[None]:
    """A session with two threads and few partitions: the data are small."""
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    builder = pyspark.sql.SparkSession.builder.master("local[2]")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield
    session.stop()


@pytest.mark.parametrize("engine", ["clickhouse", "spark"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_engine_answers_the_same(folder: Path, answers: dict[str, Answer], engine: str, name: str) -> None:
    answer = QUESTIONS[name](taut.fleet.open(str(folder), engine=engine))
    assert answer == answers[name] | {"engine": engine}


@pytest.mark.parametrize("engine", ["clickhouse", "spark"])
def test_days_are_chosen_alike_and_a_missing_one_is_seen(folder: Path, answers: dict[str, Answer], engine: str) -> None:
    ours, theirs = (
        taut.fleet.open(str(folder), engine=one, since="2026-10-03", until="2026-10-06") for one in ("duckdb", engine)
    )
    assert theirs.presence == ours.presence
    assert theirs.extents[0]["messages"] < answers["report"]["messages"]


def test_fleets_of_one_process_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    made.partitioned(made.Fleet(2, date(2026, 10, 2), runs=1, hours=24, messages_an_hour=1000), tmp_path)
    for engine in ("clickhouse", "spark"):
        many, few = (taut.fleet.open(str(place), engine=engine) for place in (folder, tmp_path))
        assert [fleet.report()["robots"] for fleet in (many, few)] == [14, 2], engine


def test_a_server_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "clickhouse://me:secret@127.0.0.1:1/robots/fleet"
    monkeypatch.setattr("sys.argv", ["taut.fleet", "report", place, "--engine", "clickhouse"])
    assert main() == 2
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and "secret" not in said.err
