"""What is asked of a fleet: figures against exact ones, on DuckDB; the other engines are test_fleet_engines.py."""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import taut.fleet
from reported import reported
from taut.fleet import NoFleet
from taut.fleet.intervals import change, median_interval

from bench.fleet import made

ROOT = Path(__file__).resolve().parents[2]
TAUT = Path(sys.executable).with_name("taut")
Row = dict[str, Any]

COLUMNS = (
    "date DATE, robot VARCHAR, run VARCHAR, revision VARCHAR, chain VARCHAR, position INT, hop VARCHAR, cause VARCHAR, "
    "bucket INT, low_ns BIGINT, high_ns BIGINT, count BIGINT"
)


def write(folder: Path, rows: list[tuple[Any, ...]]) -> Path:
    """Rows of (date, robot, revision, chain, position, hop, cause, ns, count), as `taut fleet add` lays them; a bucket is 1 ns wide."""
    index = {ns: at for at, ns in enumerate(sorted({row[7] for row in rows}))}
    all_values = [
        (day, robot, f"{day}-{robot}", revision, chain, position, hop, cause, index[ns], ns - 1, ns, count)
        for day, robot, revision, chain, position, hop, cause, ns, count in rows
    ]
    con = duckdb.connect()
    con.execute(f"CREATE TABLE rows ({COLUMNS})")
    columns = [list(column) for column in zip(*all_values, strict=True)]
    con.execute(f"INSERT INTO rows SELECT {', '.join(['unnest(?)'] * len(columns))}", columns)
    con.execute(f"COPY rows TO '{folder}' (FORMAT parquet, PARTITION_BY (date, robot), WRITE_PARTITION_COLUMNS true)")
    return folder


def way(robot: str, ns: int, count: int, revision: str = "v1", day: str = "2026-10-05") -> tuple[Any, ...]:
    return (day, robot, revision, "arm", 0, "", "", ns, count)


def test_percentiles_are_those_of_all_messages_together(tmp_path: Path) -> None:
    random.seed(1)
    # Most messages are of a fast robot: an average of percentiles would be far off.
    samples = {
        "fast": [random.randint(1, 500) for _ in range(20_000)],
        "slow": [random.randint(1, 5000) for _ in range(3_000)],
    }
    rows = [way(robot, ns, count) for robot, all_ in samples.items() for ns, count in Counter(all_).items()]
    together = sorted(ns for all_ in samples.values() for ns in all_)
    figures = taut.fleet.open(str(write(tmp_path / "f", rows))).report()["chains"][0]["places"][0]["figures"]
    assert figures["n"] == 23_000
    for name, per_mille in {"p50": 500, "p90": 900, "p99": 990, "p999": 999}.items():
        exact = together[-(-len(together) * per_mille // 1000) - 1]
        assert figures[name] == {"above_ns": exact - 1, "up_to_ns": exact}, name
    assert figures["max"]["up_to_ns"] == together[-1]


@pytest.mark.parametrize(
    ("n", "carried"),
    [
        (19, []),
        (20, ["p50"]),
        (99, ["p50"]),
        (100, ["p50", "p90"]),
        (999, ["p50", "p90"]),
        (1000, ["p50", "p90", "p99"]),
    ],
)
def test_a_percentile_needs_ten_messages_beyond_it(tmp_path: Path, n: int, carried: list[str]) -> None:
    figures = taut.fleet.open(str(write(tmp_path / "f", [way("a", 7, n)]))).report()["chains"][0]["places"][0][
        "figures"
    ]
    assert [name for name in ("p50", "p90", "p99", "p999") if figures[name]] == carried
    assert figures["max"] == {"above_ns": 6, "up_to_ns": 7}


def test_times_are_whole_though_a_years_nanoseconds_do_not_fit_64_bits(tmp_path: Path) -> None:
    hour = 3_600_000_000_000
    rows = [way("a", hour, 10**9), ("2026-10-05", "a", "v1", "arm", 0, "", "gil", hour, 10**8)]
    place = taut.fleet.open(str(write(tmp_path / "f", rows))).report()["chains"][0]["places"][0]
    assert place["mean_ns"] == hour - 0.5
    assert place["causes"][0]["time_share"] == pytest.approx(0.1, abs=1e-15)
    assert place["causes"][0]["mean_ns"] == pytest.approx(hour / 10, rel=1e-9)


def test_a_report_has_every_week_hop_cause_and_revision(fleet: Path) -> None:
    report = taut.fleet.open(str(fleet)).report()
    (chain,) = report["chains"]
    assert (report["robots"], report["first"], report["last"]) == (14, "2026-10-05", "2026-10-23")
    assert [place["hop"] for place in chain["places"]] == ["", *dict.fromkeys(hop for _, hop, *_ in made.PLACES if hop)]
    assert [week["week"] for week in chain["places"][0]["weeks"]] == ["2026-10-05", "2026-10-12", "2026-10-19"]
    assert sum(week["figures"]["n"] for week in chain["places"][0]["weeks"]) == report["messages"]
    assert [of["revision"] for of in chain["revisions"]] == ["v1", "v2"]
    gil = {cause["cause"]: cause for cause in chain["places"][2]["causes"]}["gil"]
    assert gil["weeks"][0]["mean_ns"] < gil["weeks"][2]["mean_ns"]
    assert chain["robots_p99"]["worst"][0]["robot"] == "robot-00013"


def test_the_worst_robot_is_told_with_its_hop_and_cause(fleet: Path) -> None:
    worst = taut.fleet.open(str(fleet), revision="v1").worst(limit=3)
    first = worst["ranked"][0]
    assert first["robot"] == "robot-00013"
    assert first["stands_out_by_hop"]["hop"] == "plan → send"
    assert first["stands_out_by_cause"]["cause"] == "preempted"
    assert len(worst["ranked"]) == 3 and worst["too_few"] == 0
    by_gil = taut.fleet.open(str(fleet), revision="v1").worst(hop="detect → plan", cause="gil", figure="p50")
    assert len(by_gil["ranked"]) == 10 and by_gil["ranked"][0]["revisions"] == ["v1"]


def test_a_comparison_finds_what_the_revision_changed_and_nothing_else(fleet: Path) -> None:
    compare = taut.fleet.open(str(fleet)).compare("v1", "v2")
    places = {place["hop"]: place for place in compare["chains"][0]["places"]}
    plan, send = places["detect → plan"], places["plan → send"]
    assert plan["by_robots"]["p50"]["low"] > 1.1 and plan["by_robots"]["p50"]["paired"]
    # The bucket is 1.1 % wide.
    assert send["by_robots"]["p50"]["low"] <= 1 <= send["by_robots"]["p50"]["high"]
    gil = next(cause for cause in plan["causes"] if cause["cause"] == "gil")
    assert gil["by_robots"]["mean"]["low"] > 1.3 and gil["b"]["mean_ns"] > gil["a"]["mean_ns"]


def test_a_hop_that_moved_in_its_chain_is_the_same_hop(tmp_path: Path) -> None:
    rows = [way("a", 9, 50), way("a", 9, 50, "v2", "2026-10-12")]
    rows += [
        ("2026-10-05", "a", "v1", "arm", 1, "x → y", "", 5, 50),
        ("2026-10-12", "a", "v2", "arm", 2, "x → y", "", 7, 50),
    ]
    rows += [("2026-10-12", "a", "v2", "arm", 1, "w → x", "", 2, 50)]
    fleet = taut.fleet.open(str(write(tmp_path / "f", rows)))
    places = fleet.compare("v1", "v2")["chains"][0]["places"]
    assert [(place["hop"], place["a"] is not None) for place in places] == [
        ("", True),
        ("w → x", False),
        ("x → y", True),
    ]
    assert [place["figures"]["n"] for place in fleet.report()["chains"][0]["places"]] == [100, 50, 100]


def test_two_robots_have_no_interval(fleet: Path) -> None:
    compare = taut.fleet.open(str(fleet)).compare("robot-00001", "robot-00013", by="robot")
    place = compare["chains"][0]["places"][0]
    assert place["by_robots"] == {"p50": None, "p90": None, "p99": None, "p999": None}
    assert place["b"]["figures"]["p99"]["up_to_ns"] > place["a"]["figures"]["p99"]["up_to_ns"]


# As `taut fleet` starts it: a program that has no file, of which DuckDB takes the stdout for a person's terminal.
ASKED = """
import sys, ibis
connect, all_connections = ibis.duckdb.connect, []
def kept(*given, **named):
    all_connections.append(connect(*given, **named))
    return all_connections[-1]
ibis.duckdb.connect = kept
from taut.fleet.__main__ import main
code = main()
assert all_connections
for con in all_connections:
    bar = con.raw_sql("SELECT current_setting('enable_progress_bar')").fetchall()
    assert bar == [(False,)], bar
sys.exit(code)
"""


@pytest.mark.parametrize("words", ["merge --into", "report", "worst", "compare v1 v2"])
def test_no_progress_bar_stands_in_an_answer(fleet: Path, tmp_path: Path, words: str) -> None:
    verb, *more = words.split()
    arguments = [verb, str(fleet), *more] if verb != "merge" else [verb, str(fleet), *more, str(tmp_path / "weeks")]
    command = [sys.executable, "-W", "ignore", "-c", ASKED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_days_are_chosen_without_opening_the_others(fleet: Path) -> None:
    report = taut.fleet.open(str(fleet), since="2026-10-07", until="2026-10-08").report()
    assert (report["first"], report["last"]) == ("2026-10-08", "2026-10-08")


def test_a_fleet_says_what_it_is(fleet: Path) -> None:
    assert repr(taut.fleet.open(str(fleet))) == f"<fleet {fleet}: 'camera → drive' of 14 robots>"


def test_robot_007_is_not_robot_7(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", [way("007", 5, 5000), way("7", 9, 5000), way("1e3", 9, 5000)])
    assert [row["robot"] for row in taut.fleet.open(str(folder)).worst()["ranked"]] == ["1e3", "7", "007"]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda place: taut.fleet.open(place + "/no"), "no such folder"),
        (lambda place: taut.fleet.open(str(ROOT / "docs")), "holds no fleet"),
        (
            lambda place: taut.fleet.open(place, engine="sqlite"),
            "no engine 'sqlite'; there are duckdb, clickhouse, spark",
        ),
        (lambda place: taut.fleet.open(place, chain="leg"), "no chain 'leg'; there are 'camera → drive'"),
        (lambda place: taut.fleet.open(place, revision="v9"), "no revision 'v9' of it; there are v1, v2"),
        (lambda place: taut.fleet.open(place, since="2027-01-01"), "no run between 2027-01-01 and …"),
        (lambda place: taut.fleet.open(place, since="yesterday"), "'yesterday' is no day"),
        (lambda place: taut.fleet.open(place).worst(hop="a → b"), "has no hop 'a → b'; there are 'camera → detect'"),
        (
            lambda place: taut.fleet.open(place).worst(cause="disk"),
            "no message spent time on 'disk'; there are cpu, gil",
        ),
        (lambda place: taut.fleet.open(place).compare("v1", "v9"), "no revision 'v9'; there are v1, v2"),
        (lambda place: taut.fleet.open(place).compare("v1", "v1"), "both 'v1'"),
        (lambda place: taut.fleet.open(place, engine="clickhouse").rows, "needs a package"),
        (lambda place: taut.fleet.open(place, engine="spark").rows, "needs a package"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    fleet: Path, ask: Callable[[str], Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("clickhouse_connect", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NoFleet) as refused:
        ask(str(fleet))
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_intervals_miss_the_median_as_rarely_as_they_say() -> None:
    assert median_interval([1, 2, 3, 4, 5], 0.05) is None
    assert median_interval([1, 2, 3, 4, 5, 6], 0.05) == (1, 6)
    # Tables of the sign test: n = 20 has the 6th and the 15th, n = 100 the 40th and the 61st.
    assert median_interval([float(i) for i in range(1, 21)], 0.05) == (6, 15)
    assert median_interval([float(i) for i in range(1, 101)], 0.05) == (40, 61)
    random.seed(2)
    missed = 0
    for _ in range(2000):
        low, high = median_interval(sorted(random.random() for _ in range(15)), 0.05) or (0, 0)
        missed += not low <= 0.5 <= high
    assert 30 <= missed <= 100  # 3.5 % by the binomial distribution: 70 ± 8


def test_robots_are_compared_with_themselves_where_they_can_be() -> None:
    a = {f"r{i}": 10.0 + i for i in range(20)}
    pairs = change(a, {robot: value * 1.2 for robot, value in a.items()})
    assert pairs and pairs.paired and pairs.factor == pytest.approx(1.2) and pairs.low == pytest.approx(1.2)
    groups = change(a, {f"other{i}": 12.0 * (10 + i) / 10 for i in range(20)})
    assert groups and not groups.paired and groups.low and groups.high and groups.low < groups.factor < groups.high
    assert change(a, {}) is None and change({"r": 0.0}, {"r": 1.0}) is None


def test_the_command_prints_tables_json_by_its_schema_and_pages(fleet: Path, tmp_path: Path) -> None:
    opened = taut.fleet.open(str(fleet))
    answers = {"report": opened.report(), "worst": opened.worst(), "compare": opened.compare("v1", "v2")}
    for verb, answer in answers.items():
        (tmp_path / f"{verb}.json").write_text(json.dumps(answer))
    printed = subprocess.run(
        [TAUT, "fleet", "worst", fleet, "--format", "json"], capture_output=True, check=True
    ).stdout
    assert json.loads(printed) == answers["worst"]
    check = [sys.executable, "-m", "check_jsonschema", "--schemafile", ROOT / "docs/schemas/fleet.schema.json"]
    checked = subprocess.run([*check, *tmp_path.glob("*.json")], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    shown = subprocess.run([TAUT, "fleet", "worst", fleet], capture_output=True, text=True, check=True).stdout
    assert "plan → send" in shown and max(map(len, shown.splitlines())) <= 100
    page = tmp_path / "page.html"
    subprocess.run([TAUT, "fleet", "worst", fleet, "--format", "html", "-o", page], check=True, capture_output=True)
    assert page.read_text().endswith("</html>\n")


def test_a_recording_is_added_and_asked_for(run: Path, tmp_path: Path) -> None:
    add = [TAUT, "fleet", "add", run, "--into", tmp_path / "fleet", "--robot", "arm-7", "--revision", "v1"]
    subprocess.run(add, check=True, capture_output=True)
    fleet = taut.fleet.open(str(tmp_path / "fleet"))
    chain = fleet.report()["chains"][0]
    recorded = json.loads(reported(run))
    expected = recorded["chains"][0]
    assert chain["chain"] == expected["name"]
    assert chain["messages"] == expected["end_to_end"]["n"]
    ends = [expected["end_to_end"], *expected["hops"]]
    for place, exact in zip(chain["places"], ends, strict=True):
        bucket, median = place["figures"]["p50"], exact["p50_ns"]
        # A report names no median that lies in one of a few bursts, as a busy machine has them.
        assert median is None or bucket["above_ns"] < median <= bucket["up_to_ns"]
        assert place["figures"]["n"] == exact["n"]
        assert place["figures"]["max"]["above_ns"] < exact["max_ns"] <= place["figures"]["max"]["up_to_ns"]
    causes = [cause for place in chain["places"][1:] for cause in place["causes"]]
    assert causes and all(0 <= cause["time_share"] <= 1.01 for cause in causes)


def test_a_recording_without_stamps_is_asked_for_by_its_loops_and_wake_chains(tmp_path: Path) -> None:
    source = ROOT / "examples/unprepared/robot.c"
    subprocess.run(["cc", "-O2", "-pthread", "-o", tmp_path / "robot", source], check=True)
    run = tmp_path / "run.mcap"
    subprocess.run([TAUT, "record", "-q", "--ignore-loss", "-o", run, "--", tmp_path / "robot", "1"], check=True)
    recorded = json.loads(reported(run))
    if recorded["recording"]["tier"] != "full":
        pytest.skip("no kernel events here, so no loops")
    add = [TAUT, "fleet", "add", run, "--into", tmp_path / "fleet", "--robot", "arm-7", "--revision", "v1"]
    subprocess.run(add, check=True, capture_output=True)
    asked = [TAUT, "fleet", "report", tmp_path / "fleet", "--format", "json"]
    answer = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    found = {chain["chain"]: chain["messages"] for chain in answer["chains"]}
    assert found == {chain["name"]: chain["end_to_end"]["n"] for chain in recorded["chains"]}
    assert "ctrl timer 2 ms → actuator recv udp:5005" in found


def test_the_command_refuses_in_one_line_with_code_2(fleet: Path) -> None:
    for more in (["report", "no/such"], ["compare", fleet, "v1", "-9"], ["worst", fleet, "--chain", "-x"]):
        refused = subprocess.run([TAUT, "fleet", *more], capture_output=True, text=True)
        assert refused.returncode == 2 and refused.stdout == "" and len(refused.stderr.splitlines()) == 1, (
            refused.stderr
        )


def test_what_is_said_of_a_file_stays_on_its_line() -> None:
    command = [sys.executable, "-m", "taut.fleet", "report", "no\n\x1b[31msuch"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.count("\n") == 1 and r"no\n\x1b[31msuch" in said.stderr
