"""scripts/language finds what it must, and passes over what is no text: a check that finds nothing would always pass."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADER = importlib.machinery.SourceFileLoader("language", str(ROOT / "scripts/language"))
SPEC = importlib.util.spec_from_loader("language", LOADER)
assert SPEC is not None
language = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(language)

LONG = "The " + "very " * language.RULES["words_a_sentence"] + "long sentence."


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("page.md", "The lock is simply held."),
        ("page.md", "| a | whose doing it was |"),
        ("page.md", "- a list\n- The tail is told\n  to nobody."),
        ("page.md", LONG),
        ("a.rs", 'fn main() { println!("{}: nobody records this", 1) }'),
        ("a.rs", 'let text = r#"a "torn" file"#;'),
        ("a.rs", '#[cfg(test)]\nmod tests;\n\nconst TEXT: &str = "nobody";'),
        ("a.rs", 'let quote = \'"\'; let text = "first \\\n    line, then nobody";'),
        ("a.py", 'print(f"the guilty lock {name}")'),
        ("a.ts", "const text = `to ${a} and nobody`;"),
    ],
)
def test_a_retired_word_is_found(name: str, source: str) -> None:
    assert list(language.findings(name, source))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("page.md", "The lock is held.\n\n```text\nsimply\n```\n"),
        ("page.md", "`taut simply` and [a page](simply.md).\n\n<!-- simply -->"),
        ("page.md", LONG.replace("very very", "very; Very", 1).replace(" very" * 20, ". Very" + " very" * 19, 1)),
        ("a.rs", '// nobody\nfn simply() {} /* torn */\n#[cfg(test)]\nmod tests { const A: &str = "torn"; }'),
        ("a.py", "# nobody\nsimply = 1\n"),
        ("a.ts", "// nobody\nconst simply = 'held';"),
    ],
)
def test_code_and_comments_are_passed_over(name: str, source: str) -> None:
    assert list(language.findings(name, source)) == []
