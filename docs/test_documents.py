"""What the documents say is so: their commands run, their files are the repository's, their options exist.

A fenced block marked `sh` is commands. They run page by page, in their order, in a folder of the page's own, where `taut` and
`python` are this build's, PYTHONPATH is the checkout, $checkout its folder, and $samples a folder to copy from (`SAMPLES`). What a
reader need not see stands in comments in the line before a block:

    <!-- given: SHELL -->             run before it: what the page takes for granted
    <!-- file: NAME -->               this block is the file NAME that the commands find
    <!-- is: PATH -->                 this block is the repository's file PATH (TAUT_UPDATE=1 renews it)
    <!-- part of: PATH -->            its lines are of the repository's file PATH; comments may differ
    <!-- says: TEXT -->               what its commands print has TEXT in it
    <!-- long -->                     run by `make test-docs` only
    <!-- needs root -->               run where the tests are root's
    <!-- not run: REASON -->          its commands cannot be run here
    <!-- not run, WORD: REASON -->    those of its commands that have WORD in them cannot

Exit code 3, not permitted, is taken for an answer, and 5: a busy machine may lose kernel events. So are 1 and 4 of a command
with a verdict: 1 is a finding, 4 not enough evidence, as on a busy machine. Durations are shortened as in `SHORTER`. `python docs/test_documents.py`
lists what is not run. A block of `text` is whatever a reader shall read; one of Python, TOML or JSON is parsed.
"""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALL = bool(os.environ.get("TAUT_DOCS_ALL"))
# What a test need not wait for, or have.
SHORTER = [
    (r"--duration \d+(s?)(?![\w.])", r"--duration 2\1"),
    (r"(python -m workloads\.\w+(?!.*--(duration|trials)))", r"\1 --duration 2"),
    (r"python (loop|my_robot).py(?! --seconds| &)", r"python \1.py --seconds 2"),
    (r"(taut bus(?!.*--duration).*--rate \d+)", r"\1 --duration 1"),
    (r"--cpus 2,3", "--cpus 0,1"),
    (r"--max-time \d+", "--max-time 6"),
    # Long enough that each trial has the whole chain, on a busy machine too.
    (r"(taut gate .*)--max-time 6", r"\1--duration 1 --max-time 12"),
    (r"taut wakeup(?!.*--(duration|read|sleep))", "taut wakeup --duration 1s"),
    (r"taut wakeup(?=.*--vary)(?!.*--rounds)", "taut wakeup --rounds 1"),
    # With the features that the tests in Rust have, so that nothing is built twice.
    (r"cargo build --quiet -p taut-stamp", "cargo build --quiet --workspace --exclude taut-python"),
]
# Commands with a verdict: exit code 1 is a finding, 4 not enough evidence.
VERDICT = re.compile(r"\btaut (doctor|gate|guard|lab)\b|\bworkloads\.")
REFUSED = "not permitted here"
# Files in $samples, made by these commands there.
SAMPLES = """
cp $checkout/examples/tutorial/loop.py my_robot.py
taut record -q --ignore-loss -o run.mcap -- python my_robot.py --seconds 2
"""


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    notes: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, with what the comments before them say of them."""
    lines = (ROOT / page).read_text().split("\n")
    found: list[Block] = []
    notes: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        if note := re.fullmatch(
            r"<!-- (given|file|is|part of|says|long|needs root|not run(?:, [^:]+)?)(?:: (.*))? -->", line.strip()
        ):
            notes[note[1]] = note[2] or ""
        elif fence := re.fullmatch(r"( *)(```+)([\w,-]*).*", line):
            end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == fence[2])
            text = "\n".join(inner.removeprefix(fence[1]) for inner in lines[number + 1 : end])
            found.append(Block(page, number + 2, fence[3], text + "\n", notes))
            notes, number = {}, end
        elif line.strip():
            notes = {}
        number += 1
    return found


def pages() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


PAGES = pages()
BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def commands(block: Block) -> list[tuple[int, str]]:
    """The block's commands, each with its line: a command goes on while the shell would read on."""
    found, lines = [], []
    for number, line in enumerate(block.text.split("\n"), block.line):
        lines.append(line)
        text = "\n".join(lines)
        whole = subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0
        if whole and not line.endswith("\\"):
            if text.strip() and not text.lstrip().startswith("#"):
                found.append((number - len(lines) + 1, text))
            lines = []
    assert not lines, f"{block}: the shell does not understand {lines[0]!r}"
    return found


def why_not_run(block: Block, command: str) -> str | None:
    if "needs root" in block.notes and os.geteuid() != 0:
        return "needs root"
    for note, reason in block.notes.items():
        word = note.removeprefix("not run").removeprefix(", ")
        if note.startswith("not run") and word in command:
            return reason
    return None


def shortened(command: str) -> str:
    for pattern, replacement in SHORTER:
        command = re.sub(pattern, replacement, command)
    return command


# Arguments of `check`: exit code, `verdict` or not, line. After a refusal what comes next may lack its files.
PRELUDE = f"""
set -u -o pipefail
at=0 refused=
check() {{
    case $1 in
    0) ;;
    1) [ "$2" = verdict ] || exit 1 ;;
    4) if [ "$2" = verdict ]; then echo "no verdict: line $3"; else [ "$refused" ] && exit 0 || exit 1; fi ;;
    5) ;;
    3) echo "{REFUSED}: line $3" && refused=1 ;;
    *) [ "$refused" ] && exit 0 || exit 1 ;;
    esac
}}
trap '[ $? = 0 ] || echo "FAILED: line $at"' EXIT
"""


def script(blocks: list[Block]) -> str:
    """Runs each command and ends at the first that fails, naming its line."""
    parts = [PRELUDE]
    for block in blocks:
        if "given" in block.notes:
            parts += [f"at={block.line}", block.notes["given"], "check $? given $at"]
        if "file" in block.notes:
            continue
        for line, command in commands(block):
            if why_not_run(block, command) is None:
                kind = "verdict" if VERDICT.search(command) else "command"
                parts += [f"at={line}", shortened(command), f"check $? {kind} {line}"]
    return "\n".join(parts) + "\n"


def run(text: str, folder: Path, environment: dict[str, str]) -> str:
    process = subprocess.Popen(
        ["bash", "-c", text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=600)
    finally:
        # What a page leaves running ends with it.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output[-4000:]
    return output


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    samples = tmp_path_factory.mktemp("samples")
    here = Path(sys.executable).parent
    home = Path.home()
    environment = os.environ | {
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "PATH": f"{here}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "checkout": str(ROOT),
        "samples": str(samples),
        "HOME": str(samples),
    }
    run("set -eu\n" + SAMPLES, samples, environment)
    return environment


def outcome(page: str, folder: Path, environment: dict[str, str]) -> str:
    blocks = [block for block in BLOCKS if block.page == page and (ALL or "long" not in block.notes)]
    for block in blocks:
        if "file" in block.notes:
            (folder / block.notes["file"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.notes["file"]).write_text(block.text)
    output = run(script([b for b in blocks if b.language == "sh"]), folder, environment)
    for block in blocks if REFUSED not in output else []:
        assert block.notes.get("says", "") in output, (
            f"{block}: nothing says {block.notes['says']!r}:\n{output[-4000:]}"
        )
    return output


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, "Future[str]"]]:
    """All pages that are asked for, some at a time: they sleep, mostly. Each worker that has a page would run all of them, at the same
    ports: so this file is one worker's (--dist loadfile; pytest 9.2 ignores xdist's groups)."""
    wanted = [item for item in request.session.items if getattr(item, "originalname", "") == RUN.__name__]
    pages = [item.callspec.params["page"] for item in wanted if isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(4) as pool:
        yield {page: pool.submit(outcome, page, tmp_path_factory.mktemp("page"), environment) for page in pages}


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.page == page and b.language == "sh" for b in BLOCKS)])
def test_the_commands_of_a_page_run(page: str, outcomes: dict[str, "Future[str]"]) -> None:
    output = outcomes[page].result()
    if REFUSED in output:
        pytest.skip(f"{page}: " + next(line for line in output.split("\n") if REFUSED in line))


RUN = test_the_commands_of_a_page_run


@pytest.mark.parametrize("block", [b for b in BLOCKS if "is" in b.notes], ids=str)
def test_a_file_on_a_page_is_the_repositorys(block: Block) -> None:
    text = (ROOT / block.notes["is"]).read_text()
    if os.environ.get("TAUT_UPDATE") and text != block.text:
        path = ROOT / block.page
        path.write_text(
            path.read_text().replace(f"```{block.language}\n{block.text}```", f"```{block.language}\n{text}```")
        )
    else:
        assert block.text == text, f"{block} is not {block.notes['is']}; TAUT_UPDATE=1 renews it"


@pytest.mark.parametrize("block", [b for b in BLOCKS if "part of" in b.notes], ids=str)
def test_a_part_of_a_file_on_a_page_is_the_repositorys(block: Block) -> None:
    def code(text: str) -> list[str]:
        lines = (line.split("//")[0].strip() for line in text.splitlines())
        return [line for line in lines if line]

    lines = code((ROOT / block.notes["part of"]).read_text())
    strange = [line for line in code(block.text) if line not in lines]
    assert not strange, f"{block}: {block.notes['part of']} does not have: {strange[0]}"


@pytest.mark.parametrize("page", PAGES)
def test_a_block_says_what_it_is_and_is_that(page: str) -> None:
    for block in (b for b in BLOCKS if b.page == page):
        assert block.language, f"{block}: mark it: ```sh for commands, ```text for what is only read"
        try:
            if block.language == "python":
                compile(block.text, str(block), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            elif block.language == "toml":
                tomllib.loads(block.text)
            elif block.language == "json":
                json.loads(block.text)
        except (SyntaxError, ValueError) as error:
            pytest.fail(f"{block}: {error}")
    fenced = re.sub(r"(?ms)^( *)(```+).*?^ *\2$|^<!--.*?-->", "", (ROOT / page).read_text())
    indented = re.search(r"(?m)^(?![ \t]*[-*\d]).*\S.*\n\n(    (?:taut|make|python|cargo|pip) .*)$", fenced)
    assert indented is None, f"{page}: commands stand in a block marked ```sh, so that they are run: {indented[1]!r}"


def options_of_commands() -> dict[str, set[str]]:
    """Every command and its options, from the reference that clap's own words make."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in (ROOT / "docs/reference/cli.md").read_text().split("\n"):
        if heading := re.fullmatch(r"##+ `(taut.*)`", line):
            name = heading[1]
            found[name] = {"--help", "--version", "--verbose"}
        elif name:
            found[name] |= set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", line))
    return found


COMMANDS = options_of_commands()


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_commands_and_options_exist(page: str) -> None:
    in_text = re.findall(r"(?<!`)`(taut [a-z][^`]*)`(?!`)", (ROOT / page).read_text())
    in_blocks = [line for b in BLOCKS if b.page == page and b.language == "sh" for line in b.text.split("\n")]
    for code in in_text + [line for line in in_blocks if line.startswith("taut ")]:
        words = re.split(r" -- | \| |#|>", re.sub(r"'[^']*'", "…", code))[0].split()
        name = " ".join(words[:2])
        assert name in COMMANDS, f"{page}: there is no command `{name}`: {code}"
        options = COMMANDS[name]
        if len(words) > 2 and f"{name} {words[2]}" in COMMANDS:
            options = COMMANDS[f"{name} {words[2]}"] | options
        for option in re.findall(r"(?:^|[\s\[|])(--?[a-zA-Z][\w-]*)", " ".join(words)):
            assert option in options, f"{page}: `{name}` has no option {option}: {code}"


def test_the_readme_has_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    for name in COMMANDS:
        assert len(name.split()) != 2 or f"`{name}`" in text, f"README.md does not name `{name}`"


if __name__ == "__main__":
    for block in BLOCKS:
        if block.language == "sh":
            for line, command in commands(block):
                if reason := why_not_run(block, command):
                    print(f"{block.page}:{line}: {reason}: {command}")
