"""Write the drawings anew: ``python -m docs.drawing``."""

from __future__ import annotations

from docs.drawing.example import FOLDER
from docs.drawing.pictures import PICTURES

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(), encoding="utf-8")
        print(f"docs/bounds/{name}.svg")
