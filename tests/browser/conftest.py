"""The server and the browser that all browser tests share."""

import pytest
from chromium import FLAGS, PATIENCE, Server, Tab, executable


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    executable()
    running = Server(
        tmp_path_factory.mktemp("server"),
        ["--unused-session-lifetime", "20000", "--check-unused-sessions", "1000"],
    )
    yield running
    running.stop()
    assert "Traceback" not in running.log() and "Warning" not in running.log(), running.log()


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=1000 * PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_tab(chromium, server):
    """open_tab(query, ready) -> Tab; at the end every tab's console must be clean and every request local."""
    tabs = []

    def opened(query="", *ready):
        tabs.append(Tab(chromium, server, query, *ready))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()
