"""A browser can read every script that a page gets: each is made of several files, which share their names."""

import pkgutil
import subprocess
from importlib import import_module

import pytest
from panel.custom import JSComponent
from test_web import NODE

import steinlab
from steinlab.classroom.page import follower_page, stage_script
from steinlab.pages.functions.stage import FunctionStage
from steinlab.pages.wave.stage import WaveStage
from steinlab.site.build import code, own, within
from steinlab.site.figures import Place
from steinlab.stage.replay import chart_page, replay_page, training_page

OWN = ("lab", "essay", "lesson")


def of(page):
    """The script of a page."""
    return page.rsplit("<script>", 1)[1].split("</script>")[0]


def components():
    """Every component of the app that brings a script."""
    for module in pkgutil.walk_packages(steinlab.__path__, "steinlab."):
        if module.name.split(".")[-1] not in ("main", "__main__"):  # they serve when they are imported
            import_module(module.name)
    waiting, found = [JSComponent], {}
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("steinlab.") and kind._esm:
                found[f"{kind.__module__}.{kind.__name__}"] = (
                    kind._esm if isinstance(kind._esm, str) else kind._esm.read_text()
                )
    return found


def problem(script, kind):
    """What Node says of a script that it cannot read."""
    command = [NODE, "--check", f"--input-type={kind}", "-"]
    return subprocess.run(command, input=script, capture_output=True, text=True, timeout=60).stderr


PLAIN = {
    "class": lambda: of(follower_page()),
    "replay": lambda: of(replay_page()),
    "chart": lambda: of(chart_page()),
    "site": lambda: code([Place("gaussian")], ["svgd"], []),
    **{f"site, {name}": lambda name=name: within(own(name)) for name in OWN},
    **{f"replay of {kind.__name__}": lambda kind=kind: of(training_page(kind)) for kind in (WaveStage, FunctionStage)},
    **{f"class, {kind.__name__}": lambda kind=kind: stage_script(kind) for kind in (WaveStage, FunctionStage)},
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_script_of_a_page_without_panel_can_be_read(name):
    script = PLAIN[name]()
    assert script and not problem(script, "commonjs")


def test_the_script_of_every_component_can_be_read():
    found = components()
    assert {"steinlab.stage.stage.Stage", "steinlab.pages.wave.stage.WaveStage"} <= set(found)
    assert not {name: said for name, script in found.items() if (said := problem(script, "module"))}
