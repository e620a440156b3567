"""The book is the repository's own pages, at their own paths, so that one link leads on from a checkout and from the book alike.

mkdocs wants all pages in one folder below its configuration; ours are beside the code that they speak of. So `docs_dir` holds the
book's style alone, and this hook hands mkdocs every Markdown file of the repository, and what those link to.
"""

import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def pages() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page of docs/ that nobody gave a place in the book stands at its end, as one that a benchmark has just written does."""
    listed = (ROOT / "mkdocs.yml").read_text()
    more = [name for name in pages() if name.startswith("docs/") and f" {name}\n" not in listed]
    if more and config.nav is not None:
        config.nav.append({"More": more})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    wanted = {(ROOT / name).resolve() for name in pages()}
    for page in sorted(wanted):
        for link in LINK.findall(page.read_text()):
            if (linked := (page.parent / link).resolve()).is_file() and linked.is_relative_to(ROOT):
                wanted.add(linked)
    for path in sorted(wanted):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What GitHub's Markdown has and Python-Markdown has not."""
    lines: list[str] = []
    is_code = False
    for line in markdown.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        if not is_code:
            if line.startswith("|"):  # there a pipe in code is escaped, here it is not
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
            # There two spaces make a list within a list, and it needs no empty line before it.
            if re.match(r" +- ", line) and lines and not re.match(r" *([-*] |$)", lines[-1]):
                lines.append("")
            line = re.sub(r"^ +", lambda space: 2 * space[0], line)
        lines.append(line)
    return "\n".join(lines).replace("<details>", "<details markdown>")
