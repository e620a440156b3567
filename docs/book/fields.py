"""A page for each JSON schema: its fields in tables, for people. Machines read the schema itself, which the page links to."""

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = Path(__file__).parents[1]
SCHEMAS = sorted([*DOCS.glob("*.schema.json"), *DOCS.glob("schemas/*.schema.json")], key=lambda path: path.name)


def uri(schema: Path) -> str:
    return f"docs/reference/json/{schema.name.removesuffix('.schema.json')}.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"].append({"JSON, field by field": [uri(schema) for schema in SCHEMAS]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for schema in SCHEMAS:
        files.append(File.generated(config, uri(schema), content=page(schema)))
    return files


def page(path: Path) -> str:
    schema = json.loads(path.read_text())
    name = path.name.removesuffix(".schema.json")
    parts = [
        f"# `{name}`\n\nFrom [{path.name}](../../{path.relative_to(DOCS)}). *Maybe* says that a field may be missing."
    ]
    parts.append(section(schema))
    for title, inner in schema.get("$defs", {}).items():
        parts.append(f"## {title}\n\n{section(inner)}")
    return "\n\n".join(parts) + "\n"


def section(schema: dict[str, Any]) -> str:
    """An object's description and its fields; or the alternatives."""
    text = one_line(schema.get("description", ""))
    fields = schema.get("properties", {})
    if not fields:
        return f"{text}\n\nOne of: {kind(schema)}." if text else f"One of: {kind(schema)}."
    rows = ["| field | type | |", "|---|---|---|"]
    for name, field in fields.items():
        maybe = "" if name in schema.get("required", []) else " *maybe*"
        about = one_line(field.get("description", "")).replace("|", "\\|")
        rows.append(f"| `{name}` | {kind(field)}{maybe} | {about} |")
    return text + "\n\n" + "\n".join(rows)


def kind(schema: Any) -> str:
    """A type in words; a named one links to its section."""
    if not isinstance(schema, dict):
        return "anything"
    if reference := schema.get("$ref"):
        title = reference.rsplit("/", 1)[1]
        return f"[{title}](#{title.lower()})"
    for either in ("anyOf", "oneOf"):
        if either in schema:
            return " or ".join(kind(inner) for inner in schema[either])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(kind(inner) for inner in schema['prefixItems'])}]"
    names = schema.get("type", "anything")
    names = [names] if isinstance(names, str) else names
    return " or ".join(of_type(name, schema) for name in names)


def of_type(name: str, schema: dict[str, Any]) -> str:
    if name == "array":
        return f"list of {kind(schema.get('items'))}"
    if name == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind(schema['additionalProperties'])}"
    if name == "object" and "properties" in schema:
        return "{ " + ", ".join(f"`{field}`: {kind(inner)}" for field, inner in schema["properties"].items()) + " }"
    return name


def one_line(text: str) -> str:
    return " ".join(text.split())
