"""No browser test reads a page right after it has acted: it waits first, for what it reads."""

import ast
from pathlib import Path

import pytest

ACTS = {"click", "press", "fill", "slide", "choose", "drag_to", "dblclick", "select_option", "type"}
ACTS |= {
    "reload",
    "go_back",
    "go_forward",
    "goto",
    "up",
    "wheel",
    "tap",
    "check",
    "uncheck",
    "hover",
    "drag",
    "set_viewport_size",
    "set_input_files",
    "unfold",
}
READS = {"inner_text", "all_inner_texts", "text_content", "input_value", "get_attribute", "is_visible", "is_hidden"}
READS |= {"is_checked", "is_enabled", "is_disabled", "count", "evaluate", "stage", "rows", "step", "panel"}
WAITS = ("wait", "until", "expect", "soon", "clipboard", "to_be", "to_have", "pause", "at_", "sa", "stand")


def bare_reads(source: str) -> list[str]:
    """Return what a test reads after an action with no wait between them, as `line: name`."""
    found = []
    for test in ast.walk(ast.parse(source)):
        if not isinstance(test, ast.FunctionDef):
            continue
        parts = [part for part in test.body if not isinstance(part, ast.FunctionDef)]  # those are read by themselves
        calls = [call for part in parts for call in ast.walk(part) if isinstance(call, ast.Call)]
        inside = {id(one) for call in calls if name_of(call).startswith(WAITS) for one in ast.walk(call)}
        acted = False
        for call in sorted(calls, key=lambda call: (call.end_lineno, call.end_col_offset)):
            name = name_of(call)
            if name.startswith(WAITS):
                acted = False
            elif name in ACTS:
                acted = True
            elif name in READS and acted and id(call) not in inside:
                found.append(f"{call.lineno}: {name}")
    return found


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "browser").glob("test_*.py")), ids=lambda p: p.stem)
def test_a_browser_test_waits_for_what_it_reads(path):
    assert bare_reads(path.read_text()) == []


def test_a_bare_read_is_found():
    acts, reads = "def t():\n    tab.button('Step').click()\n", "    assert tab.step() == 1\n"
    assert bare_reads(acts + reads) == ["3: step"]
    assert bare_reads(acts + "    soon(tab.step, 1)\n" + reads) == []
    assert bare_reads(acts + "    soon(lambda: tab.step() > 0)\n") == []
    assert bare_reads("def t():\n" + reads) == []
