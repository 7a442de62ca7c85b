"""The page in a browser: Chromium without a window, where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from pfnts.experiments import Run
from pfnts.experiments.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

LISTEN = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective));
console.error = console.warn = (...words) => problems.push(words.join(" "));
</script>"""

TRY = """<script>
addEventListener("load", function use() {
  // Curves are drawn when the page has found its width, which may take a busy machine a while.
  if (!document.querySelector(".plot polyline")) { setTimeout(use, 50); return; }
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const found = {};
  const table = all("table.sortable")[0];
  const head = all("thead button", table);
  const column = (i) => [...table.tBodies[0].rows].map((row) => row.cells[i].textContent);
  const sorted = () => [column(0), all("th[aria-sort]", table).map((th) => th.ariaSort)];
  const byLinear = head.findIndex((button) => button.textContent === "linear");
  head[byLinear].click(); found.up = sorted();
  head[byLinear].click(); found.down = sorted();
  head[0].click(); found.words = sorted();

  const plot = all(".plot")[0], card = plot.closest(".card"), box = plot.getBoundingClientRect();
  found.curves = all("polyline", plot).length;
  const inside = (b) => b.y >= 0 && b.y + b.height <= plot.viewBox.baseVal.height;
  found.outside = all("text", plot).filter((text) => !inside(text.getBBox())).map((text) => text.textContent);
  const at = { clientX: box.right - 11, clientY: box.top + 20, bubbles: true };
  plot.dispatchEvent(new PointerEvent("pointermove", at));
  found.tip = card.querySelector(".tip").innerText;
  plot.dispatchEvent(new PointerEvent("pointerleave", at));
  found.hidden = card.querySelector(".tip").hidden;
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  found.key = card.querySelector(".tip strong").textContent;

  const chip = all(".chip")[0];
  chip.click();
  found.fewer = [all("polyline", all(".plot")[0]).length, chip.ariaPressed];
  all(".switch button")[1].click();
  found.ticks = all("text", all(".plot")[0]).map((text) => text.textContent);

  const paper = () => getComputedStyle(document.body).backgroundColor;
  const before = paper();
  document.getElementById("theme").click();
  found.themes = [before, paper()];
  found.overflow = document.documentElement.scrollWidth - innerWidth;
  found.width = innerWidth;
  found.problems = problems;
  parent.postMessage(JSON.stringify(found), "*");
});
</script>"""

# A window cannot be as narrow as a phone, a frame can; and the page itself may not use the network.
FRAME = """<!doctype html><script>
addEventListener("message", (event) => fetch("found", { method: "POST", body: event.data }));
</script><iframe src="tried.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_page_sorts_reads_hides_and_darkens_in_a_browser(small: Path, tmp_path: Path) -> None:
    found = tried(write_report(small, figures=False), tmp_path)
    assert found["problems"] == []
    assert found["up"] == [["lin-ts", "ts", "uniform"], ["ascending"]]
    assert found["down"] == [["uniform", "ts", "lin-ts"], ["descending"]]
    assert found["words"] == [["lin-ts", "ts", "uniform"], ["ascending"]]
    # The last round of `linear`: 12.5, 20 and 375 on average, lowest first.
    assert found["tip"].split() == ["round", "40", "lin-ts", "12.5", "ts", "20.0", "uniform", "375.0"]
    assert found["hidden"] is True
    assert found["key"] == "round 10"
    assert (found["curves"], found["fewer"]) == (3, [2, "false"])
    assert {"0", "10", "20", "30", "40"} <= set(found["ticks"])
    assert found["themes"] == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_page_fits_a_phone(small: Path, tmp_path: Path) -> None:
    found = tried(write_report(small, figures=False), tmp_path, width=360)
    assert (found["width"], found["overflow"], found["problems"]) == (360, 0, [])


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_names_at_the_ends_of_curves_stay_within_the_picture(
    tmp_path: Path, make_run: Callable[..., Run], save_runs: Callable[..., Path]
) -> None:
    ends = {"pfn-ts": 10.0, "lin-ts": 95.0, "lin-ucb": 96.0, "rf-ts": 97.0, "ts": 98.0, "uniform": 99.0}
    runs = [make_run("linear", policy, 0, regret) for policy, regret in ends.items()]
    found = tried(write_report(save_runs(runs, tmp_path / "runs"), figures=False), tmp_path)
    assert found["curves"] == len(ends)
    assert found["outside"] == []


def tried(page: Path, folder: Path, *, width: int = 1200) -> dict[str, Any]:
    """Open a copy of the page, use it by a script, and wait until the script says what it has found."""
    text = page.read_text(encoding="utf-8").replace("<style>", LISTEN + "<style>", 1)
    (folder / "tried.html").write_text(text.replace("</body>", TRY + "</body>"), encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    with listening(folder) as (address, answers):
        browser = subprocess.Popen(
            [
                str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}",
                "--window-size=1300,950", f"{address}/frame.html",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            return dict(json.loads(answers.get(timeout=120)))
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()


@contextmanager
def listening(folder: Path) -> Iterator[tuple[str, Queue[bytes]]]:
    """Serve a folder to this machine only, and put what is posted into a queue."""
    answers: Queue[bytes] = Queue()

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", answers
    finally:
        server.shutdown()
        server.server_close()
