// Types of what a page's script reads, from the schema that Rust derives (report/taut-document): dist/document.d.ts.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const schema = JSON.parse(readFileSync(new URL("document.schema.json", import.meta.url), "utf8"));
const KNOWN = new Set(["$ref", "$schema", "allOf", "anyOf", "const", "default", "description", "enum", "format", "items", "maxItems", "maximum", "minItems", "minLength", "maxLength",
  "minimum", "oneOf", "prefixItems", "properties", "required", "title", "type", "additionalProperties", "$defs"]);

/** A type as TypeScript writes it. What the schema has beyond these words would be lost: that ends the build. */
function type(of) {
  for (const key of Object.keys(of)) if (!KNOWN.has(key)) throw new Error(`document.schema.json: ${key} has no type in TypeScript`);
  if (of.$ref) return of.$ref.split("/").at(-1);
  if ("const" in of) return JSON.stringify(of.const);
  if (of.enum) return of.enum.map((value) => JSON.stringify(value)).join(" | ");
  const any = of.oneOf ?? of.anyOf;
  if (any) return any.map(type).join(" | ");
  if (Array.isArray(of.type)) return of.type.map((one) => type({ ...of, type: one })).join(" | ");
  switch (of.type) {
    case "array": return of.prefixItems ? `[${of.prefixItems.map(type).join(", ")}]` : `(${type(of.items)})[]`;
    case "object": return `{ ${Object.entries(of.properties ?? {}).map(([name, value]) => `${name}: ${type(value)}`).join("; ")} }`;
    case "integer": case "number": return "number";
    case "string": case "boolean": case "null": return of.type;
    default: throw new Error(`document.schema.json: no type in TypeScript for ${JSON.stringify(of)}`);
  }
}

const declared = ([name, of]) => `/** ${of.description ?? name} */\nexport type ${name} = ${type(of)};\n`;
mkdirSync(new URL("dist", import.meta.url), { recursive: true });
writeFileSync(new URL("dist/document.d.ts", import.meta.url),
  `// Written by types.mjs from document.schema.json.\n${Object.entries(schema.$defs).map(declared).join("")}`);
