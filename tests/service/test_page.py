"""The page in a real browser."""

from __future__ import annotations

import shutil

import pytest

from tests.service.processes import Service, until

SCRIPT = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as run:
        opened = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def service(tmp_path):
    running = Service(tmp_path / "data", poll=0.05, timeout=5.0)
    running.wait_ready()
    yield running
    running.stop()


def open_page(browser, service, **settings):
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | settings))
    page = context.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{service.url}/")
    page.asked = asked
    return page


def test_names_with_scripts_are_shown_and_never_run_and_news_arrive_by_themselves(browser, service):
    experiment = {
        "name": "shop",
        "arms": [{"id": "plain"}, {"id": SCRIPT}],
        "schema": {SCRIPT: "numeric", "plan": [SCRIPT[:60], "paid"]},
        "policy": {"name": "lin-ts", "settings": {"warmup": 1}},
        "holdout": 0.2,
    }
    page = open_page(browser, service)
    page.get_by_text("No experiment yet").wait_for()
    assert service.http.post("/v1/experiments", json=experiment).status_code == 201
    page.goto(f"{service.url}/#shop")
    page.reload()
    page.get_by_role("heading", name="shop").wait_for()
    for i in range(40):
        body = {"decision_id": f"d{i}", "unit": SCRIPT, "context": {SCRIPT: i, "plan": SCRIPT[:60]}}
        body["unit"] += str(i)
        service.http.post("/v1/experiments/shop/decisions", json=body).raise_for_status()
        service.http.post(f"/v1/experiments/shop/decisions/d{i}/rewards", json={"value": i % 2})
    page.locator("#tiles").get_by_text("40", exact=True).wait_for(timeout=10_000)
    page.locator("#operation dt", has_text="Refused for overload").wait_for()
    assert page.locator("#arms").get_by_text(SCRIPT).count() == 1, "the name is text"
    page.locator("details summary").first.click()
    page.locator(".why svg").first.wait_for()
    page.locator("#try input").first.fill("3")
    page.locator("#try button").click()
    page.locator("#tried svg").wait_for()
    page.locator("#tried .reasons td", has_text="for it").or_(
        page.locator("#tried .reasons td", has_text="against it")
    ).first.wait_for()
    page.locator("#new-arm").fill(SCRIPT + "2")
    page.locator("#add button").click()
    page.locator("#arms").get_by_text(SCRIPT + "2").wait_for()
    page.get_by_title(f"Take {SCRIPT}2 out of the choice", exact=True).click()
    page.locator("#arms button.sure").click()
    page.locator("#arms tr.gone").wait_for()
    page.locator("#mode").select_option("frozen")
    until(lambda: service.http.get("/v1/experiments/shop").json()["mode"] == "frozen")
    assert page.evaluate("window.hacked") is None
    assert page.problems == [], "nothing was refused by the policy on content, nothing failed"
    assert {url.split("/")[2] for url in page.asked if not url.startswith("data:")} == {
        service.url.split("/")[2]
    }
    for settings in ({"viewport": {"width": 360, "height": 740}}, {"color_scheme": "dark"}):
        other = open_page(browser, service, **settings)
        other.get_by_role("heading", name="shop").wait_for()
        width = other.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], "nothing sticks out to the side"
        other.locator("#arms button").first.wait_for()
        table = other.evaluate(
            "(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.querySelector('.scroll'))"
        )
        assert "viewport" not in settings or table[0] <= table[1], "arms can be removed on a phone as well"
        ground = other.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 22, 27)") == ("color_scheme" in settings)
        assert other.problems == []


def test_arms_have_features_and_keep_their_colours_and_candidates_are_shown(browser, service):
    policy = {"name": "pfn-ts", "settings": {"backbone": "linear", "warmup": 3}}
    featured = [{"id": f"a{i}", "features": {"price": i, "kind": SCRIPT[:40]}} for i in range(3)]
    for experiment in ({"name": "offers", "arms": featured}, {"name": "news", "arms": []}):
        assert service.http.post("/v1/experiments", json={**experiment, "policy": policy}).status_code == 201
    for i in range(12):
        body = {"decision_id": f"d{i}", "context": {"x": i}}
        service.http.post("/v1/experiments/offers/decisions", json=body).raise_for_status()
        few = [{"id": f"{SCRIPT} {k}", "features": {"price": k}} for k in range(30)]
        body["candidates"] = few
        service.http.post("/v1/experiments/news/decisions", json=body).raise_for_status()
    page = open_page(browser, service)
    page.goto(f"{service.url}/#offers")
    colour = page.locator("#arms tr", has_text="a2").first.locator("i").get_attribute("class")
    page.locator("#new-arm").fill("new")
    page.locator("#new-features input").first.fill("7.5")
    page.locator("#add button").click()
    page.locator("#arms").get_by_text("price: 7.5").wait_for()
    arms = service.http.get("/v1/experiments/offers").json()["arms"]
    assert arms[-1] == {"id": "new", "features": {"price": 7.5, "kind": SCRIPT[:40]}}
    page.get_by_title("Take a1 out of the choice", exact=True).click()
    page.locator("#arms button.sure").click()
    page.locator("#arms tr.gone").wait_for()
    assert page.locator("#arms tr", has_text="a2").first.locator("i").get_attribute("class") == colour
    page.goto(f"{service.url}/#news")
    page.locator("#sentence", has_text="candidates of each decision").wait_for()
    page.locator("#decisions summary").first.click()
    page.locator(".why", has_text="The 12 likeliest of 30").first.wait_for()
    assert not page.locator("#arms-card").is_visible()
    assert page.evaluate("window.hacked") is None
    assert page.problems == []


def test_the_interface_is_listed_without_help_from_elsewhere(service):
    answer = service.http.get("/docs")
    assert "/v1/experiments/{experiment}/decisions" in answer.text
    assert "//" not in answer.text.replace("http://www.w3.org", ""), "nothing is loaded from elsewhere"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
