"""Write the documentation that is made from the code: `python docs/generate.py`; a test fails when it was forgotten."""

from __future__ import annotations

from pathlib import Path

from corral.spec.schema import generated


def main() -> None:
    """Write every generated file beside this one."""
    folder = Path(__file__).parent
    for path, text in generated().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
