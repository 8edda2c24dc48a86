"""Tokens of the look: colours and type of the light and of the dark theme."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

TOKENS = {
    "light": {
        "paper": "#FFFFFF",
        "surface": "#F6F6F4",
        "ink": "#1B1F23",
        "muted": "#596068",
        "edge": "#858C93",
        "line": "#DDDFDC",
        "shade": "#46566B",
        "mark": "#FFF3D6",
        "attract": "#0072B2",
        "repulse": "#BD4B00",
    },
    "dark": {
        "paper": "#14171A",
        "surface": "#1C2024",
        "ink": "#E9ECEF",
        "muted": "#A7AFB7",
        "edge": "#78818A",
        "line": "#31373D",
        "shade": "#8FA3BD",
        "mark": "#3A3119",
        "attract": "#56B4E9",
        "repulse": "#FF8A50",
    },
}
"""Colours by their meaning. edge: outlines of controls. line: dividers. shade: density. mark: a number that can be
dragged. attract, repulse: the forces, and nothing else."""

FONT = "Roboto, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
TYPE = {"axis": 13, "label": 14, "control": 15, "base": 16, "lesson": 18, "question": 20, "read_out": 28, "title": 30}
SHRUNK = "translate(14px, -10px) scale(0.93)"
TOOLBAR = {
    ".MuiToolbar-root": {"minHeight": "52px !important", "color": "var(--mui-palette-text-primary)"},
    ".MuiToolbar-root .title": {"fontSize": "1.15rem", "fontWeight": "700", "color": "inherit !important"},
    ".MuiLinearProgress-root": {"display": "none"},  # it stands still: see `detach_busy`
    ".MuiToolbar-root a, .MuiToolbar-root .title *": {"color": "inherit !important"},
    "@media (max-width: 600px)": {
        ".MuiToolbar-root .bk-panel-models-esm-ReactComponent": {
            "minWidth": "0 !important",
            "flexShrink": "1 !important",
            "maxWidth": "calc(100vw - 236px)",
        },
        ".MuiToolbar-root .title": {"display": "none"},
    },
}
"""Styles of a page's bar."""


def preferred(cookies: Mapping[str, str]) -> str:
    """Return the theme of the visitor's system, "light" or "dark".

    Args:
        cookies: of the visitor's request. The script of `frame.html` sets the one that says it.
    """
    return "dark" if cookies.get("steinlab_theme") == "dark" else "light"


def mui(theme: str) -> dict:
    """Return the theme of every Material widget.

    The palette is also what style sheets see: `var(--mui-palette-mark-main)`, `var(--mui-palette-attract-main)`.

    Args:
        theme: "light" or "dark".
    """
    c = TOKENS[theme]
    named = {name: {"main": c[name]} for name in ("edge", "line", "surface", "mark", "attract", "repulse")}
    small = {"fontSize": TYPE["control"]}
    return {
        "palette": {
            "primary": {"main": c["ink"], "contrastText": c["paper"]},
            "text": {"primary": c["ink"], "secondary": c["muted"]},
            "background": {"default": c["paper"], "paper": c["paper"]},
            "divider": c["line"],
            **named,
        },
        "typography": {
            "fontFamily": FONT,
            "fontSize": 14,
            "body1": {"fontSize": TYPE["base"]},
            "body2": {"fontSize": TYPE["control"]},
            "caption": {"fontSize": TYPE["label"]},
            "button": {"textTransform": "none", "fontSize": TYPE["control"]},
        },
        "shape": {"borderRadius": 8},
        "components": {
            "MuiAppBar": {
                "styleOverrides": {
                    "root": {
                        "backgroundColor": c["paper"],
                        "backgroundImage": "none",
                        "color": c["ink"],
                        "boxShadow": "none",
                        "borderBottom": f"1px solid {c['line']}",
                    }
                }
            },
            "MuiButton": {"defaultProps": {"disableElevation": True}, "styleOverrides": {"root": {"minHeight": 36}}},
            "MuiOutlinedInput": {
                "styleOverrides": {
                    "notchedOutline": {"borderColor": c["edge"], "& legend": {"fontSize": "0.93em"}},
                    "input": small,
                }
            },
            "MuiInputLabel": {  # over a field it would be 12 pixels high
                "styleOverrides": {"outlined": {"&.MuiInputLabel-shrink": {"transform": SHRUNK}}}
            },
            "MuiMenuItem": {"styleOverrides": {"root": small}},
            "MuiTooltip": {
                "defaultProps": {"describeChild": True},
                "styleOverrides": {"tooltip": {"fontSize": TYPE["label"]}},
            },
            "MuiFormHelperText": {"styleOverrides": {"root": {"fontSize": TYPE["axis"]}}},
            "MuiPaper": {"styleOverrides": {"root": {"backgroundImage": "none"}}},
        },
    }


def variables(theme: str) -> str:
    """Return the tokens of a theme as variables of a style sheet: `--ink: #1B1F23; ...`."""
    return " ".join(f"--{name}: {value};" for name, value in TOKENS[theme].items())


def script(*files: Path) -> str:
    """Return these files of JavaScript as one, after `const THEMES`, the tokens of both themes."""
    return "\n".join([f"const THEMES = {json.dumps(TOKENS)};", *(file.read_text() for file in files)])
