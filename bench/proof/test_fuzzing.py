"""`fuzz/run`: time counts while a reader's sources are the same, and no longer."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

RUN = Path(__file__).resolve().parents[2] / "fuzz/run"
LOCK = """
[[package]]
name = "taut-files"
version = "0.1.0"
dependencies = ["taut-clock", "zstd"]

[[package]]
name = "taut-clock"
version = "0.1.0"

[[package]]
name = "taut-texts"
version = "0.1.0"

[[package]]
name = "zstd"
version = "0.13.3"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "e91e"
"""
FILES = {
    "fuzz/Cargo.lock": LOCK,
    "cli/taut-readers/src/lib.rs": """
pub const READERS: &[Reader] = &[
    reader("file", 16_384, all::file),
    reader("text", 4096, all::text),
];
""",
    "cli/taut-readers/src/all.rs": """//! Whatever taut_texts reads.
use taut_files::{Whole, read as whole};

/// As text::text does.
pub fn file(bytes: &[u8]) {
    check(bytes);
}

fn check(bytes: &[u8]) {
    assert!(whole(bytes).is_ok());
}

pub fn text(bytes: &[u8]) {
    taut_texts::parse(bytes);
}
""",
    **{f"trace/taut-{name}/Cargo.toml": "" for name in ("files", "clock", "texts")},
    **{f"trace/taut-{name}/src/lib.rs": "" for name in ("files", "clock", "texts")},
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, in a repository of its own."""
    loader = importlib.machinery.SourceFileLoader("fuzz_run", str(RUN))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks for its module there.
    monkeypatch.setitem(sys.modules, loader.name, module)
    loader.exec_module(module)
    for name, value in {"ROOT": "", "OUTCOMES": "outcomes.json", "PAGE": "page.md", "RESULTS": "results.md"}.items():
        monkeypatch.setattr(module, name, tmp_path / value)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit(module, FILES)
    return module


def commit(run: ModuleType, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = run.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    run.git("add", "--all")
    run.git(*author, "commit", "-q", "--allow-empty", "-m", "a")


def fuzzed(run: ModuleType, reader: str, seconds: int) -> None:
    run.remember(
        run.Outcome(reader, seconds=seconds, day="2026-11-28", revision=run.head(), inputs=10), ["file", "text"]
    )


def seconds(run: ModuleType, reader: str) -> tuple[int, int]:
    """With the present sources, and with earlier ones."""
    of = run.aged(run.outcomes(), run.head())[reader]
    return of["seconds"], of["earlier_seconds"]


def test_time_adds_up_while_the_sources_are_the_same(run: ModuleType) -> None:
    fuzzed(run, "file", 400)
    commit(
        run,
        {"trace/taut-texts/src/lib.rs": "// of another reader", "trace/taut-files/tests/a.rs": "", "README.md": "a"},
    )
    fuzzed(run, "file", 500)
    assert seconds(run, "file") == (900, 0)
    assert "held by\n1 of 2 readers: **missed**" in run.PAGE.read_text()
    assert "| `text` | not yet |" in run.RESULTS.read_text()


@pytest.mark.parametrize(
    "changed",
    [
        {"trace/taut-files/src/lib.rs": "// its own crate"},
        {"trace/taut-clock/src/lib.rs": "// what that depends on"},
        {"fuzz/Cargo.lock": LOCK.replace("0.13.3", "0.13.4")},
        {"cli/taut-readers/src/all.rs": FILES["cli/taut-readers/src/all.rs"].replace("is_ok", "is_err")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_time_begins_again_where_a_source_has_changed(run: ModuleType, changed: dict[str, str]) -> None:
    fuzzed(run, "file", 900)
    fuzzed(run, "text", 900)
    commit(run, changed)
    assert seconds(run, "file") == (0, 900) and seconds(run, "text") == (900, 0)
    # Another reader's outcome writes the page, which has it so.
    fuzzed(run, "text", 5)
    assert "| `file` | 0 | 900 |" in run.RESULTS.read_text() and "| `text` | 905 | 0 |" in run.RESULTS.read_text()
    fuzzed(run, "file", 100)
    assert seconds(run, "file") == (100, 900)


def test_what_came_before_a_finding_counts_no_more(run: ModuleType) -> None:
    fuzzed(run, "file", 900)
    found = run.Outcome(
        "file", seconds=1, day="2026-11-28", revision=run.head(), inputs=1, findings=["crash-a"], failed=True
    )
    run.remember(found, ["file", "text"])
    assert seconds(run, "file") == (1, 0) and "1 finding," in run.PAGE.read_text()
    commit(run, {"trace/taut-files/src/lib.rs": "// fixed"})
    fuzzed(run, "file", 30)
    assert seconds(run, "file") == (30, 0)


def test_what_is_not_committed_is_of_no_revision(run: ModuleType) -> None:
    assert run.uncommitted() == ""
    (run.ROOT / "notes.md").write_text("a")
    assert run.uncommitted() == ""
    (run.ROOT / "trace/taut-clock/src/lib.rs").write_text("// changed")
    assert "taut-clock" in run.uncommitted()


def test_each_reader_of_this_repository_has_sources() -> None:
    """Else all its time would be of earlier sources."""
    loader = importlib.machinery.SourceFileLoader("fuzz_run_here", str(RUN))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    sys.modules[loader.name] = here = importlib.util.module_from_spec(spec)
    loader.exec_module(here)
    revision = here.head()
    listed = here.git("show", f"{revision}:{here.READERS}/lib.rs").count('    reader("')
    readers = here.READER.findall(here.git("show", f"{revision}:{here.READERS}/lib.rs"))
    assert len(readers) == listed > 0
    assert [reader for reader, _, _ in readers if here.sources(reader, revision) is None] == []
