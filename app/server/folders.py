"""Where the app's own files lie."""

from pathlib import Path

APP = Path(__file__).resolve().parents[1]
ROOT = APP if (APP / "assets").exists() else APP.parent  # of the wheel, or of a checkout
ASSETS = ROOT / "assets"
NOTEBOOKS = ROOT / "notebooks"
