"""The configuration reference, written from the settings' own descriptions.

``python -m flows.reference`` prints ``docs/configuration.md``; a test holds the
file to it.
"""

from __future__ import annotations

import sys
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from flows.settings import Settings

_HEAD = """# Configuration

Precedence: command line and flow parameters, then the environment, then
`hchem.toml` in the working directory (or the file named by `HCHEM_CONFIG`),
then the preset that any of them names, then the defaults below. In the environment a setting is `HCHEM_` and its path
with `__` between sections: `graph.uri` is `HCHEM_GRAPH__URI`. In `hchem.toml`
sections are tables:

```toml
data_dir = "data"

[graph]
uri = "bolt://127.0.0.1:7687"

[models]
base_url = "http://127.0.0.1:8000/v1"
model = "my-model"
```

Secrets belong in the environment: `OPENAI_API_KEY`, `HCHEM_GRAPH__PASSWORD`,
`HCHEM_CATALOGUE__URL` where it holds a password. A wrong setting ends the
command with one line and exit code 2. This page is written from the code
(`python -m flows.reference > docs/configuration.md`).
"""


def markdown() -> str:
    """The whole page."""
    parts = [_HEAD, *_section(Settings, "")]
    return "\n".join(parts).rstrip() + "\n"


def _section(model: type[BaseModel], prefix: str) -> list[str]:
    rows, below = [], []
    for name, field in model.model_fields.items():
        inner = _model(field.annotation)
        path = f"{prefix}{name}"
        if inner is not None:
            title = field.description or (inner.__doc__ or "").strip().splitlines()[0]
            below.append(f"\n## `[{path}]`\n\n{title}\n")
            below.extend(_section(inner, f"{path}."))
        else:
            rows.append(f"| `{path}` | {_shown(field)} | {field.description or ''} |")
    table = ["| setting | default | meaning |", "|---|---|---|", *rows] if rows else []
    return [*table, *below]


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [a for a in get_args(annotation) if isinstance(a, type) and issubclass(a, BaseModel)]
    is_union = type(None) in get_args(annotation)
    return models[0] if models and is_union else None


def _shown(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "(required)"
    if value is None:
        return "–"
    if isinstance(value, SecretStr):
        return "(secret)"
    text = str(value).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if text else "(empty)"


if __name__ == "__main__":
    sys.stdout.write(markdown())
