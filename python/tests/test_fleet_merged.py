"""A fleet that is merged, or has damaged files, answers as before: the commands of a nightly job."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

TAUT = Path(sys.executable).with_name("taut")
Row = dict[str, Any]


def command(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run([TAUT, "fleet", *words], capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return ran


def answers(folder: Path) -> list[Row]:
    """What the command prints, as a nightly job asks it."""
    asked = (["report", folder], ["worst", folder], ["compare", folder, "v1", "v2"])
    all_answers = [json.loads(command(*words, "--format", "json").stdout) for words in asked]
    for answer in all_answers:
        assert answer.pop("place") == str(folder)
    return all_answers


def without_days(of: Any) -> Any:
    """The days of a merged fleet are its weeks'."""
    if isinstance(of, dict):
        return {key: without_days(value) for key, value in of.items() if key not in ("first", "last")}
    return [without_days(one) for one in of] if isinstance(of, list) else of


@pytest.fixture(scope="module")
def of_the_runs(fleet: Path) -> str:
    return json.dumps(answers(fleet))


@pytest.mark.parametrize(("period", "files"), [("day", 7), ("week", 3), ("month", 1)])
def test_a_merged_fleet_answers_the_same(
    fleet: Path, of_the_runs: str, tmp_path: Path, period: str, files: int
) -> None:
    merged = tmp_path / "merged"
    said = command("merge", fleet, "--into", merged, "--by", period).stderr
    first = {"day": "2026-10-05", "week": "2026-10-05", "month": "2026-10-01"}[period]
    assert f"{files} file" in said and f" of {first} to 2026-10-" in said
    assert len(list(merged.rglob("*.parquet"))) == files
    # The same columns as the runs have, of the same types: whoever reads a fleet can read this one.
    described = "SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet(?, hive_partitioning = false))"
    types = [duckdb.execute(described, [f"{folder}/**/*.parquet"]).fetchall() for folder in (fleet, merged)]
    assert types[0] == types[1] and len(types[0]) == 12
    in_merged, in_runs = answers(merged), json.loads(of_the_runs)
    assert in_merged[0]["first"] == in_merged[0]["chains"][0]["first"] == first
    if period == "month":
        # Its weeks are one: that of the month's first day.
        for report in (in_merged[0], in_runs[0]):
            for place in report["chains"][0]["places"]:
                place.pop("weeks")
                for cause in place["causes"]:
                    cause.pop("weeks")
    assert [without_days(answer) for answer in in_merged] == [without_days(answer) for answer in in_runs]


def test_a_period_is_made_anew_from_all_of_its_days(fleet: Path, tmp_path: Path) -> None:
    weeks = tmp_path / "weeks"
    command("merge", fleet, "--into", weeks)
    before = (weeks / "date=2026-10-19/merged-by-week.parquet").stat()
    again = command("merge", fleet, "--into", weeks, "--since", "2026-10-23")
    assert "1 file of 2026-10-19" in again.stderr
    after = (weeks / "date=2026-10-19/merged-by-week.parquet").stat()
    assert after.st_ino != before.st_ino and after.st_size == before.st_size


def test_a_merged_folder_counts_no_message_twice(fleet: Path, tmp_path: Path) -> None:
    weeks = tmp_path / "weeks"
    command("merge", fleet, "--into", weeks)
    for into, period, says in [
        (weeks, "month", "holds weeks already, which would count twice; merge by month into another folder"),
        (fleet, "week", "cannot merge a fleet into itself"),
    ]:
        refused = command("merge", fleet, "--into", into, "--by", period, code=2).stderr
        assert says in refused and len(refused.splitlines()) == 1
    assert len(list(weeks.rglob("*.parquet"))) == 3
    # Runs that lie among the weeks would count twice as well.
    (weeks / "date=2026-10-05/robot=a").mkdir()
    (weeks / "date=2026-10-05/robot=a/1.parquet").write_bytes(b"")
    assert "holds runs (1.parquet) already" in command("merge", fleet, "--into", weeks, code=2).stderr
    # A week lies in two months.
    shutil.rmtree(weeks / "date=2026-10-05/robot=a")
    refused = command("merge", weeks, "--into", tmp_path / "months", "--by", "month", code=2).stderr
    assert "holds weeks, of which no month can be made; merge the runs by month" in refused
    assert not (tmp_path / "months").exists()


def test_a_folder_of_two_kinds_is_asked_nothing(fleet: Path, run: Path, tmp_path: Path) -> None:
    weeks, months, days = (tmp_path / name for name in ("weeks", "months", "days"))
    for into, period in ((weeks, "week"), (months, "month"), (days, "day")):
        command("merge", fleet, "--into", into, "--by", period)
    # As a copy of one folder into another leaves them.
    mixed = tmp_path / "mixed"
    shutil.copytree(weeks, mixed)
    shutil.copytree(months, mixed, dirs_exist_ok=True)
    beside = tmp_path / "beside"
    shutil.copytree(fleet, beside)
    shutil.copytree(days, beside, dirs_exist_ok=True)
    for folder, kinds in ((mixed, ("months (date=", "weeks (date=")), (beside, ("days (date=", "runs (date="))):
        asked: tuple[list[object], ...] = (
            ["report", folder],
            # Not even where only one of them is in the days that are asked for.
            ["report", folder, "--since", "2026-10-19"],
            ["worst", folder],
            ["compare", folder, "v1", "v2"],
            ["merge", folder, "--into", tmp_path / "merged", "--by", "month"],
        )
        for words in asked:
            refused = command(*words, code=2)
            assert refused.stdout == "" and len(refused.stderr.splitlines()) == 1, words
            if words[0] != "merge":
                assert f"{folder}: holds {kinds[0]}" in refused.stderr and kinds[1] in refused.stderr
                assert "so messages would count twice; leave one kind of files in it" in refused.stderr
        assert not (tmp_path / "merged").exists()
    added = command("add", run, "--into", weeks, "--robot", "arm-1", "--revision", "v1", code=2).stderr
    assert "is of a merged fleet, where runs would count twice" in added and len(added.splitlines()) == 1
    assert len(list(weeks.rglob("*.parquet"))) == 3


def to_damage(folder: Path) -> Path:
    return next((folder / "date=2026-10-08").rglob("robot=robot-00003/*.parquet"))


@pytest.fixture(scope="module")
def without_the_damaged(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = tmp_path_factory.mktemp("without") / "copy"
    shutil.copytree(fleet, copy)
    to_damage(copy).unlink()
    return json.dumps(without_days(answers(copy)))


@pytest.mark.parametrize("damage", ["footer", "pages", "empty"])
def test_a_damaged_file_is_set_aside_and_named(
    fleet: Path, without_the_damaged: str, tmp_path: Path, damage: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(fleet, copy)
    file = to_damage(copy)
    content = bytearray(file.read_bytes())
    if damage == "footer":
        footer = int.from_bytes(content[-8:-4], "little")
        content[-8 - footer : -8 - footer // 2] = bytes(footer - footer // 2)
    elif damage == "pages":
        content[4 : len(content) * 3 // 4] = b"\xff" * (len(content) * 3 // 4 - 4)
    else:
        content.clear()
    file.write_bytes(content)
    for words in (["report", copy], ["worst", copy], ["compare", copy, "v1", "v2"]):
        shown = command(*words, code=5)
        assert f"warning: {file}: cannot be read and is left out" in shown.stderr
        assert "without 1 file that cannot be read" in " ".join(shown.stdout.split())
    found = json.loads(command("report", copy, "--format", "json", code=5).stdout)
    assert [of["file"] for of in found["set_aside"]] == [str(file)]
    weeks = tmp_path / "weeks"
    merged = command("merge", copy, "--into", weeks, code=5).stderr
    assert f"warning: {file}: cannot be read and is left out" in merged
    assert without_days(answers(weeks)) == json.loads(without_the_damaged)
