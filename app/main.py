import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
if ROOT not in sys.path:  # works from a checkout that is not installed
    sys.path.insert(0, ROOT)

from app.shell import serve  # noqa: E402

serve()
