"""`site`: a page that computes in the browser; and where the app is, which the core does not import."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tqdm import tqdm

from stein_core.base.errors import short
from stein_core.cli.commands import check_out


def add_site(commands) -> None:
    """Add the arguments of `site`."""
    site = commands.add_parser("site", help="write a page that computes in the browser, without a server")
    site.set_defaults(act=write_site)
    site.add_argument("out", metavar="OUT", help="a folder, or a file.html that holds everything")
    site.add_argument("--targets", metavar="A,B", help="what it offers; targets of two dimensions")
    site.add_argument("--methods", metavar="A,B", help="of page Particles; it opens with the first two")


def folder_of_app(command: str) -> Path:
    """Return the folder of `steinlab`, which may not be there.

    Raises:
        ValueError: it is not installed.
    """
    app = find_spec("steinlab")
    if app is None or app.origin is None:
        raise ValueError(
            f"{command}: 'steinlab' is not installed beside 'stein_core'; allowed: an installation of both."
        )
    return Path(app.origin).parent


def write_site(options) -> int:
    """`site`: an essay and the stage of page Particles as static files; what is chosen is a lab alone."""
    folder_of_app("site")
    out = Path(options.out)
    if out.suffix == ".html":
        check_out(options.out, "OUT", (".html",))
    elif out.is_file():
        raise ValueError(f"OUT {short(options.out)!r} is a file; allowed: a folder, or a file that ends in .html.")
    chosen = {key: tuple(names.split(",")) for key in ("targets", "methods") if (names := getattr(options, key))}
    began = time.perf_counter()
    with tqdm(disable=not sys.stderr.isatty(), unit="file") as bar:

        def say(done, total):
            bar.total = total
            bar.update(done - bar.n)

        size = import_module("steinlab.site.build").build(
            out, **chosen, told=not chosen and out.suffix != ".html", say=say
        )
    opens = out if out.suffix == ".html" else out / "index.html"
    print(f"{size / 1e6:.1f} MB in {time.perf_counter() - began:.0f} s; open {opens}")
    return 0
