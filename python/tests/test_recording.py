"""`taut.open`: the report's figures, and tables that data frames take as they are."""

import json
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import taut
from report_figures import figures
from reported import reported

TAUT = Path(sys.executable).with_name("taut")
RELEASED = Path(__file__).parents[2] / "cli/taut/tests/released/format-1.mcap"


@pytest.fixture(scope="module")
def opened(run: Path) -> "taut.recording.Run":
    return taut.open(run)


def test_a_run_has_the_report_s_figures(run: Path, opened: "taut.recording.Run") -> None:
    report = figures(reported(run))
    assert figures(json.dumps(opened.report))["chains"] == report["chains"]
    [chain] = opened.chains
    assert chain is opened.chain("a.put → c.done")
    assert chain.points == ["a.put", "b.taken", "c.done"]
    assert [str(hop) for hop in chain.hops] == ["a.put → b.taken", "b.taken → c.done"]
    assert chain.end_to_end.p50_ns == report["chains"][0]["end_to_end"]["p50_ns"]
    assert chain.outcomes["stale"] == 3
    assert sum(chain.outcomes.values()) == chain.messages
    assert opened.headline in repr(opened) and "a.put → c.done" in repr(opened)
    assert repr(chain).startswith(f"<chain 'a.put → c.done': {chain.messages} messages, 2 hops, ")


def test_a_chain_s_repr_has_the_unit_that_suits_its_latency() -> None:
    chain = taut.open(RELEASED).chains[0]
    for ns, shown in ((30, "30 ns"), (2_500, "2.5 µs"), (33_393_102, "33.4 ms"), (1_500_000_000, "1.5 s")):
        chain.end_to_end = replace(chain.end_to_end, p99_ns=None, max_ns=ns)
        assert repr(chain).endswith(f" hops, max {shown}>")


def test_tables_go_to_polars_and_pyarrow_as_they_are(opened: "taut.recording.Run") -> None:
    hops = pl.DataFrame(opened.hops)
    assert hops.columns == opened.hops.columns and len(hops) == len(opened.hops)
    p99 = hops.filter(~pl.col("startup")).group_by("from", "to").agg(pl.col("duration_ns").max())
    largest = {(row["from"], row["to"]): row["duration_ns"] for row in p99.iter_rows(named=True)}
    assert largest == {(hop.source, hop.to): hop.delay.max_ns for hop in opened.chains[0].hops}
    table = pa.table(opened.causes)
    assert table.num_rows == len(opened.causes)
    assert table.schema.field("cause").type == pa.dictionary(pa.int32(), pa.string())
    assert table.schema.metadata[b"taut.start_monotonic_ns"] == str(opened.start_monotonic_ns).encode()
    described = {field.name: field.metadata[b"description"].decode() for field in table.schema}
    assert described == opened.causes.descriptions
    # Asked twice, it is there twice; and what one of them was given outlives the table.
    assert pa.table(opened.messages).equals(pa.table(opened.messages))


def test_what_was_given_outlives_the_run(run: Path) -> None:
    states = pa.table(taut.open(run).messages)
    assert states.num_rows == 120 and states.column("message").to_pylist()[-1] == 119


def test_nothing_is_copied_on_the_way(opened: "taut.recording.Run") -> None:
    def addresses(table: pa.Table) -> list[int]:
        return [b.address for c in table.column("duration_ns").chunks for b in c.buffers() if b]

    assert addresses(pa.table(opened.hops)) == addresses(pa.table(opened.hops))


def test_a_column_comes_to_numpy_without_a_data_frame(opened: "taut.recording.Run") -> None:
    for table in (opened.messages, opened.hops, opened.causes, opened.thread_states):
        frame = pl.DataFrame(table)
        for column in table.columns:
            values = table[column]
            assert len(values) == len(table)
            known = [None if v is None or v != v else v for v in values.tolist()]
            assert known == frame[column].to_list(), column
    assert opened.hops["duration_ns"].dtype == np.int64
    with pytest.raises(KeyError, match='no column "late"; there are chain, nth, message'):
        opened.hops["late"]


def test_the_waits_at_an_instrumented_lock_are_its_own(opened: "taut.recording.Run") -> None:
    causes = pl.DataFrame(opened.causes)
    waits = causes.filter((pl.col("cause") == "lock") & (pl.col("detail") == "plan_lock"))
    # The thread that holds it for 2 ms sleeps meanwhile, so that most of the others wait.
    assert waits.filter(pl.col("to") == "c.done").height > 50


def test_declared_chains_are_taken_from_taut_toml(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taut.toml").write_text("[[chain]]\nname = 'arm'\npoints = ['a.put', 'c.done']\ndeadline_ms = 1.5\n")
    [chain] = taut.open(run).chains
    assert (chain.name, chain.points, chain.deadline_ns) == ("arm", ["a.put", "c.done"], 1_500_000)
    assert chain.missed is not None
    Path("other.toml").write_text("[[chain]]\npoints = ['a.put']\n")
    with pytest.raises(ValueError, match=r"^other\.toml: a chain needs at least two points, this has 1$"):
        taut.open(run, config="other.toml")
    Path("other.toml").write_text("[[chain]]\npoints = ['a.put', 'c.dune']\n")
    with pytest.raises(ValueError, match=r'nothing was stamped at "c\.dune"; did you mean "c\.done"'):
        taut.open(run, config="other.toml")


def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.mcap"):
        taut.open(tmp_path / "none.mcap")
    with pytest.raises(IsADirectoryError, match="name a recording"):
        taut.open(tmp_path)
    for name, text, said in [("empty.mcap", "", "is empty"), ("text.mcap", "hello\n" * 99, "")]:
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=name) as refused:
            taut.open(tmp_path / name)
        assert said in str(refused.value) and "\n" not in str(refused.value)


def test_damage_is_a_warning(run: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.mcap"
    data = bytearray(run.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = b"\xff" * 64
    damaged.write_bytes(data)
    with pytest.warns(UserWarning, match=r"damaged\.mcap: "):
        assert len(taut.open(damaged).messages) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taut.open(run)


def test_importing_taut_loads_nothing_that_a_robot_does_not_need() -> None:
    program = "import sys, taut; print(sorted(m for m in sys.modules if m in ('json', 'numpy', 'subprocess', 'asyncio', 'inspect', 'dataclasses')))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


def test_plots_show_every_hop_and_cause(opened: "taut.recording.Run", tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    [chain] = opened.chains
    figure = opened.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Latency by hop", "Percentiles", "What the time was spent on"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(str(hop) for hop in chain.hops), "end to end"]
    figure.savefig(tmp_path / "run.png", dpi=80)
    # The causes of a band sum to its mean, on the average of what the messages' table says.
    bars = figure.axes[2].containers
    tops = [sum(bar[at].get_height() for bar in bars) for at in range(len(bars[0]))]
    ways = np.sort(opened.messages["way_ns"][chain.rows(opened.messages) & ~np.isnan(opened.messages["way_ns"])])
    assert tops[0] == pytest.approx(ways[: len(ways) // 2].mean() / 1e6)
    for axes in (chain.plot_latency(), chain.plot_percentiles(), chain.plot_causes()):
        axes.figure.savefig(tmp_path / "one.png", dpi=80)
    assert (tmp_path / "one.png").stat().st_size > 5000
    pyplot.close("all")


def test_a_name_is_text_in_a_plot() -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    chain = taut.open(RELEASED).chains[0]
    # No mathematics, and a curve in the legend as the others.
    chain.hops = [replace(hop, source=f"_{at} $\\frac{{", to="b$") for at, hop in enumerate(chain.hops)]
    figure = chain.plot()
    figure.canvas.draw()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(f" _{at} \\$\\frac{{ → b\\$" for at in range(len(chain.hops))), "end to end"]
    legend = chain.plot_latency().get_legend()
    assert legend is not None and len(legend.get_texts()) >= len(chain.hops)
    pyplot.close("all")


def test_telemetry_is_a_table_of_its_numbers(tmp_path: Path) -> None:
    program = """
        import numpy as np, taut
        from taut.telemetry import Channel
        log = Channel("leg", [("joint", [("position", "f8"), ("mode", "u1")], (2,)), ("on", "?")], rate_hz=100)
        for i in range(5):
            log.row["joint"]["position"][1] = i / 4 if i else float("nan")
            log.row["joint"]["mode"][0] = 10
            log.row["on"] = i % 2
            log.write()
            taut.value("gain", i * 2.0)
    """
    (tmp_path / "robot.py").write_text(textwrap.dedent(program))
    command = [TAUT, "record", "-q", "--tier", "stamps", "-o", "run.mcap", "--", sys.executable, "robot.py"]
    subprocess.run(command, check=True, cwd=tmp_path)
    run = taut.open(tmp_path / "run.mcap")
    assert run.topics == ["/telemetry/leg"]
    leg = pl.DataFrame(run.telemetry("/telemetry/leg"))
    numbers = ["joint[0].position", "joint[0].mode", "joint[1].position", "joint[1].mode", "on"]
    assert leg.columns == ["time_ns", *numbers]
    np.testing.assert_equal(leg["joint[1].position"].to_list(), [float("nan"), 0.25, 0.5, 0.75, 1.0])
    assert leg["joint[0].mode"].to_list() == [10.0] * 5 and leg["on"].to_list() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert run.start_monotonic_ns <= leg["time_ns"][0] and leg["time_ns"].is_sorted()
    assert run.telemetry("/value/gain")["value"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    with pytest.raises(KeyError, match=r'no channel "/leg"; there are .*/value/gain'):
        run.telemetry("/leg")
