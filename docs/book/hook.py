"""The book has the repository's own pages, at their own paths, so that links work in a checkout and in the book.

mkdocs expects all pages in one folder below its configuration; ours are beside their code. So `docs_dir` holds the book's style alone,
and this hook gives mkdocs every Markdown file of the repository, and what those link to. Each page ends with a link to the glossary.
"""

import os
import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
GLOSSARY = "docs/reference/glossary.md"


def pages() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page of docs/ that is not in the list stands at the end of the book, such as one that a benchmark has written."""
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
    text = "\n".join(lines).replace("<details>", "<details markdown>")
    if page.file.src_uri != GLOSSARY:
        glossary = os.path.relpath(GLOSSARY, os.path.dirname(page.file.src_uri) or ".")
        text += f"\n\n<small>Terms: [glossary]({glossary})</small>\n"
    return text
