"""The report in a real headless Chromium, driven over its debugging pipe: no error, no request, and the globe moves."""

import base64
import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import healpy
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tokensphere.config import parse, to_toml
from tokensphere.meshes.healpix import healpix
from tokensphere.pde.densities import von_mises_fisher
from tokensphere.report import write_report
from tokensphere.store import Layout, append_save

PROGRAM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium found; install it (Debian: apt-get install chromium) to test the report's page"
)


class Browser:
    """One page of a Chromium, spoken to in the DevTools protocol: JSON messages ended by a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        command_read, self._commands = os.pipe()
        self._answers, answer_write = os.pipe()

        def connect() -> None:
            # The child's descriptors 3 and 4 are the pipe; copy them high first, lest one overwrite the other.
            reading, writing = os.dup2(command_read, 60), os.dup2(answer_write, 61)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [PROGRAM, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=connect,
        )
        os.close(command_read)
        os.close(answer_write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its result; events that come in between are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._answers, 1 << 16)
            assert chunk, "the browser is gone"
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path: Path) -> None:
        """Load a file and wait until it has drawn."""
        self.send("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()
        self.settle()

    def run(self, program: str) -> Any:
        """The value of a JavaScript expression, promises awaited."""
        answer = self.send("Runtime.evaluate", expression=program, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait for two frames."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key: str, code: int, text: str = "") -> None:
        """One key stroke."""
        keys = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **keys, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **keys)
        self.settle()

    def globe(self) -> NDArray[np.float64]:
        """The canvas as (rows, columns, 4)."""
        uri = self.run("document.getElementById('globe').toDataURL()")
        with Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))) as picture:
            return np.asarray(picture.convert("RGBA"), dtype=float)

    def close(self) -> None:
        """Ask the browser to end, and wait for it."""
        self._session = ""
        self.send("Browser.close")
        self._process.wait(timeout=10)
        os.close(self._commands)
        os.close(self._answers)


def write_joint_run(folder: Path) -> None:
    """RoPE on nside 16 with four labels: a bump at each label's own place on the equator, narrowing in time."""
    config = parse(
        {
            "mesh": {"kind": "healpix", "nside": 16},
            "labels": {"kind": "circle", "count": 4},
            "kernel": {"kind": "rope", "frequency": 1.0, "profile": "exponential", "beta": 2.0, "factor": "1/beta"},
            "initial": {"kind": "uniform"},
            "time": {"end": 5.0, "saves": 5},
        }
    )
    folder.mkdir()
    (folder / "config.toml").write_text(to_toml(config), encoding="utf-8")
    mesh, angles = healpix(16), np.pi / 2 * np.arange(4)
    layout = Layout("healpix", 16, (angles, np.full(4, 0.25)))
    for k, t in enumerate(config.save_times):
        means = np.stack([np.cos(angles), np.sin(angles), np.zeros(4)], axis=1)
        density = np.stack([von_mises_fisher(mesh, mean, 0.5 + 8.0 * k) for mean in means])
        append_save(folder / "solution.nc", layout, k, t, density)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "rope"
    write_joint_run(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokensphere.figures.write_run_figures", lambda *_, **__: [])
        return write_report(folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, report: Path) -> Iterator[Browser]:
    page = Browser(tmp_path_factory.mktemp("profile"))
    page.send("Emulation.setDeviceMetricsOverride", width=1100, height=1400, deviceScaleFactor=1, mobile=False)
    page.open(report)
    yield page
    page.close()


def set_slider(browser: Browser, name: str, value: int) -> None:
    browser.run(f"(() => {{ const s = document.getElementById('{name}'); s.value = {value}; "
                "s.dispatchEvent(new Event('input')); })()")  # fmt: skip
    browser.settle()


def test_globe_is_drawn_with_the_right_cells(browser: Browser) -> None:
    """The page finds the cell of a direction as healpy does, and decodes its density."""
    vectors = np.random.default_rng(5).normal(size=(3000, 3))
    vectors[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cells = browser.run(f"{json.dumps(vectors.tolist())}.map((v) => tokensphere.cellOf(...v))")
    assert np.mean(np.array(cells) == healpy.vec2pix(16, *vectors.T, nest=True)) > 0.999
    set_slider(browser, "time", 5)
    set_slider(browser, "label", 2)
    values = np.array(browser.run("Array.from(tokensphere.values())"))
    expected = von_mises_fisher(healpix(16), [-1.0, 0.0, 0.0], 40.5)
    np.testing.assert_allclose(values, expected, rtol=2e-3)
    set_slider(browser, "label", -1)
    marginal = np.array(browser.run("Array.from(tokensphere.values())"))
    assert marginal @ healpix(16).areas == pytest.approx(1.0, rel=2e-3)


def test_globe_is_not_blank_and_the_sliders_move_it(browser: Browser) -> None:
    set_slider(browser, "time", 0)
    early = browser.globe()
    disc = early[..., 3] > 0
    assert 0.6 < disc.mean() < 0.75
    set_slider(browser, "time", 5)
    late = browser.globe()
    assert len(np.unique(late[disc][:, :3], axis=0)) > 50
    assert np.abs(late - early)[disc][:, :3].mean() > 20
    assert browser.run("document.getElementById('time-value').textContent") == "t = 5"
    set_slider(browser, "label", 1)
    assert np.abs(browser.globe() - late)[disc][:, :3].mean() > 5
    set_slider(browser, "label", -1)


def test_play_runs_to_the_end_and_stops(browser: Browser) -> None:
    set_slider(browser, "time", 3)
    browser.run("document.getElementById('play').click()")
    deadline = time.monotonic() + 8
    while browser.run("document.getElementById('play').getAttribute('aria-pressed')") == "true":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert browser.run("document.getElementById('time').value") == "5"


def test_keyboard_turns_zooms_and_reads_values(browser: Browser) -> None:
    browser.run("document.getElementById('globe').focus()")
    before = browser.globe()
    browser.press("ArrowRight", 39)
    turned = browser.globe()
    assert np.abs(turned - before).mean() > 1
    browser.press("+", 187, "+")
    assert browser.run("tokensphere.view.zoom") == pytest.approx(1.25)
    browser.press("-", 189, "-")
    browser.press("[", 219, "[")
    assert browser.run("document.getElementById('time').value") == "4"
    browser.press("Enter", 13)
    words = browser.run("document.getElementById('value').textContent")
    assert "per steradian" in words
    assert "longitude" in words


def test_click_tells_the_value_of_the_cell(browser: Browser) -> None:
    """Looking from +x1, the middle of the picture is the direction (1, 0, 0)."""
    browser.run("[...document.querySelectorAll('#views button')].find((b) => b.textContent === '+x₁').click()")
    browser.settle()
    box = browser.run("JSON.parse(JSON.stringify(document.getElementById('globe').getBoundingClientRect()))")
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "button": "left", "clickCount": 1}
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, **place)
    browser.settle()
    assert "x = (1.000, 0.000, 0.000)" in browser.run("document.getElementById('value').textContent").replace("−0", "0")
    browser.run("document.getElementById('colour').value = '0'")
    browser.run("document.getElementById('colour').dispatchEvent(new Event('change'))")
    browser.settle()
    assert "linear" in browser.run("document.getElementById('legend').textContent")


def test_page_fits_400_pixels_and_prints(browser: Browser) -> None:
    browser.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth") <= 400
    assert browser.run("document.getElementById('globe').getBoundingClientRect().width") <= 400
    browser.send("Emulation.setDeviceMetricsOverride", width=1100, height=1400, deviceScaleFactor=1, mobile=False)
    document = base64.b64decode(browser.send("Page.printToPDF", printBackground=False)["data"])
    assert document.startswith(b"%PDF")
    assert 2 <= document.count(b"/Type /Page\n") <= 8


def test_no_error_and_no_request(browser: Browser) -> None:
    """Runs last: whatever happened above was heard here."""
    browser.settle()
    complaints = [e for e in browser.events if e["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")]
    complaints += [
        e for e in browser.events if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] != "info"
    ]
    assert complaints == []
    requested = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in requested if not url.startswith(("file://", "data:"))] == []
    assert sum(url.startswith("file://") for url in requested) == 1
