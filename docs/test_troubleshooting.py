"""The messages that docs/howto/troubleshooting.md quotes are those that the program prints."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/howto/troubleshooting.md").read_text()
# Quoted is what begins a paragraph in bold; … and single capital letters stand for what varies.
QUOTED = sorted({code for bold in re.findall(r"\*\*(`.+?`)\*\*", PAGE) for code in re.findall(r"`([^`]+)`", bold)})


def printed() -> str:
    listed = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = [name for name in listed.stdout.split() if "/tests/" not in name and (ROOT / name).exists()]
    text = "\n".join((ROOT / name).read_text() for name in sources)
    # A literal goes on behind a backslash; what is put in is nothing of the text.
    text = re.sub(r"\\\n\s*", "", text).replace('\\"', '"').replace("`", "")
    return re.sub(r'\{[^{}\n"]*\}', "…", text)


SOURCE = printed()


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_printed(message: str) -> None:
    parts = [part.strip(' :"') for part in re.split(r"…|(?<![\w-])[A-Z](?![\w-])", message)]
    for part in (part for part in parts if len(part) > 3):
        assert part in SOURCE, f"nothing prints {part!r}"
