"""The monitor page in a real browser (`make test-browser`): Debian's chromium, headless, driven by playwright, on a real
server under load. Pictures of it are left in out/browser."""

import json
import re
import shutil
import subprocess
import time
import urllib.request

import numpy as np
import pytest
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from foliot_tools import onnx_models
from foliot_tools.server import ROOT, Server, foliot_binary
from foliot_tools.waiting import eventually

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=alert(1)>"
PICTURES = ROOT / "out/browser"
SECTIONS = ("now", "timelines", "queues", "pages", "requests", "services", "predictions", "devices")


@pytest.fixture(name="server", scope="module")
def server_under_load(tmp_path_factory):
    """A server of more models than its pages hold, under load as long as the tests last; some deadlines cannot be met."""
    folder = tmp_path_factory.mktemp("browser")
    for i, name in enumerate(("model_0", "model_1", "model_2", HOSTILE)):
        onnx_models.random_dense_network(folder / "models" / name / "model.onnx", (64, 512, 10), seed=i)
    log = folder / "log"
    with Server(folder / "models", folder / "console", page_size="64KiB", page_cache="512KiB", log=log) as server:
        command = [foliot_binary(), "bench", "--url", server.grpc, "--duration", "10m", "--warmup", "0s"]
        load = [subprocess.Popen([*command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for flags in (["--rate", "80", "--deadline", "50ms"],
                              ["--model", "model_0", "--rate", "10", "--deadline", "0.02ms"])]
        try:
            yield server, log
        finally:
            for process in load:
                process.kill()
                process.wait()


@pytest.fixture(name="browser", scope="module")
def headless_chromium():
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def wait_for(page, expression):
    """playwright's own wait_for_function() is `eval` in the page, which its policy forbids."""
    return eventually(lambda: page.evaluate(expression), 60, lambda: f"never: {expression}")


@pytest.fixture(name="page", params=["light", "dark"])
def opened_page(browser, server, request):
    """The page, with all that went wrong with it in `page.troubles` and all that it asked for in `page.asked`."""
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.troubles, page.asked, page.scheme = [], [], request.param
    page.on("console", lambda message: page.troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("dialog", lambda dialog: page.troubles.append(f"dialog: {dialog.message}"))
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.goto(f"http://127.0.0.1:{server[0].metrics_port}/")
    wait_for(page, "document.querySelector('#state').textContent.includes('live')")
    wait_for(page, "document.querySelectorAll('#request-list tbody tr').length > 20")
    yield page
    context.close()


def rows(page, table):
    return page.eval_on_selector_all(f"#{table} tbody tr", "rows => rows.map(row => [...row.cells].map(c => c.textContent))")


def test_each_section_shows_what_happens(page, server):
    page.click("#services-shown summary")
    wait_for(page, "document.querySelector('#service-tables').textContent.includes('no pipelines')")
    names = {row[0] for row in rows(page, "models")}
    assert {"model_0", "model_1", HOSTILE} <= names
    assert page.query_selector("main img") is None, "names are text"
    assert {row[0] for row in rows(page, "queue-list")} & names
    assert any(row[4] == "0" for row in rows(page, "page-list")), "device 0 holds some"
    loads = rows(page, "load-list")
    assert any(row[4] != "–" for row in loads), "some LOADs evicted others"
    assert rows(page, "errors") and rows(page, "device-list")
    time.sleep(2)  # of drawing
    assert page.troubles == []
    origin = f"http://127.0.0.1:{server[0].metrics_port}/"
    assert all(url.startswith((origin, "blob:")) for url in page.asked)
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"monitor-{page.scheme}.png", full_page=True)


def said_by_explain(log, *arguments):
    done = subprocess.run([foliot_binary(), "explain", "--log", str(log), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_click_on_a_refused_request_explains_it(page, server):
    page.select_option("#by-outcome", "!served")
    page.click("#request-list tbody tr")
    page.wait_for_selector("#request pre")
    text = page.text_content("#request pre")
    number = re.match(r"Request (\d+) ", text).group(1)
    assert text == said_by_explain(server[1], number) and "refused" in text
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.locator("#requests").screenshot(path=PICTURES / f"request-{page.scheme}.png")


def test_a_call_is_found_by_the_id_of_its_client(page, server):
    given = http_client.InferInput("pixels", [1, 64], "FP32")
    given.set_data_from_numpy(np.zeros((1, 64), np.float32))
    name = f"order 17 & <b> {page.scheme}"
    with http_client.InferenceServerClient(server[0].http) as client, pytest.raises(InferenceServerException):
        client.infer("model_1", [given], request_id=name, timeout=1)
    page.fill("#client-id", name)

    def found():
        page.press("#client-id", "Enter")
        wait_for(page, "document.querySelector('#request').textContent !== ''")
        return page.query_selector("#request pre")

    eventually(found, 10)
    assert page.text_content("#request pre") == said_by_explain(server[1], "--id", name)


def test_save_trace_gives_a_file_for_perfetto(page):
    with page.expect_download() as download:
        page.click("#save")
    events = json.loads(open(download.value.path()).read())["traceEvents"]
    kinds = {event.get("cat") for event in events}
    assert {"INFER", "LOAD", "refusal"} <= kinds
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_axe_finds_nothing(page):
    page.click("#services-shown summary")
    page.click("#request-list tbody tr")
    page.wait_for_selector("#request pre")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_keyboard_suffices(page):
    page.focus("#request-list tbody tr")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#request pre")
    page.keyboard.press("p")
    assert page.get_attribute("#pause", "aria-pressed") == "true"


def test_an_outcome_is_soon_seen(page, server):
    """From the answer that a client has to the row of the page. How long it takes is printed: 0.5 s is the aim."""
    given = http_client.InferInput("pixels", [1, 64], "FP32")
    given.set_data_from_numpy(np.zeros((1, 64), np.float32))
    took = []
    with http_client.InferenceServerClient(server[0].http) as client:
        for _ in range(10):
            answer = client.infer("model_2", [given])
            number = answer.get_response()["parameters"]["foliot_request"]
            begin = time.monotonic()
            page.fill("#by-id", number)
            wait_for(page, f"document.querySelector('#request-list tbody tr')?.cells[0].textContent === '{number}'")
            took.append(time.monotonic() - begin)
    print(f"{page.scheme}: outcome to row: {sorted(round(1000 * each) for each in took)} ms")


def test_the_page_is_small(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server[0].metrics_port}/", timeout=5) as answer:
        assert answer.status == 200
    folder = ROOT / "src/observe/monitor/page"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000
