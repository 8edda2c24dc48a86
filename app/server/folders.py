"""Where the app's own files lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
NOTEBOOKS = ROOT / "notebooks"
