"""The page in a real browser: it renders, sorts, switches, makes no request and no error."""

import os
import shutil

import pytest
from report.made_records import dg_runs, finished_chart, mlc_runs, ssl_runs, write

from arml.lab.run_kinds import SemiSupervised
from arml.report.contents import make_report
from arml.report.data.records import collect
from arml.report.output.write import write as write_report

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("ARML_CHROMIUM") or shutil.which("chromium")
pytestmark = [
    # Without a browser the page is not tested: fine on a laptop, not where every change must pass.
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"),
        reason="needs Chromium: install it, or name it in ARML_CHROMIUM",
    ),
]
EVIL = "</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "No Chromium was found on the path, and ARML_CHROMIUM is not set."
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    runs = root / "runs"
    ssl_runs(runs, labels=(50, 100))
    mlc_runs(runs)
    dg_runs(runs)
    ssl_runs(root / "evil", labels=(20,), names=(EVIL, "exemplar"))
    collected = collect([runs, root / "evil"])
    report = make_report(collected, paper=True, defaults=lambda run: ([], type(run)()), charts=[finished_chart()])
    write_report(report, root / "report", most_figures=0)
    return root / "report" / "index.html"


class Visit:
    """A page in the browser, with everything that went wrong on it."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.trouble = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        self.page.on("request", self._note_request)
        self.url = path.as_uri()
        self.page.goto(self.url)

    def _note_request(self, request):
        if request.url != self.url and not request.url.startswith("data:"):
            self.trouble.append(request.url)

    def unfold(self):
        """Opens everything that is folded."""
        self.page.evaluate("() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")

    def figure(self, key):
        """The figure, unfolded, scrolled to and drawn."""
        self.unfold()
        figure = self.page.locator(f"#figure-{key}")
        figure.scroll_into_view_if_needed()
        figure.locator(".main-svg").first.wait_for()
        return figure


@pytest.fixture(scope="module")
def opened(browser, path):
    """One page for tests that touch different parts of it: it takes two seconds to open."""
    found = Visit(browser, path, viewport={"width": 1200, "height": 900})
    yield found
    found.context.close()


@pytest.fixture
def seen(opened):
    yield opened
    assert opened.trouble == []


def curves(figure):
    """Names in the legend, and how many traces are drawn."""
    return figure.locator(".legendtext").all_text_contents(), figure.locator(".scatterlayer .trace").count()


def test_every_chart_is_drawn(seen):
    seen.unfold()
    figures = seen.page.locator("figure")
    assert figures.count() > 15
    for place in range(figures.count()):
        figure = figures.nth(place)
        figure.scroll_into_view_if_needed()
        figure.locator(".main-svg").first.wait_for()
        assert figure.locator("[role=img]").get_attribute("aria-label")


def test_tables_sort_by_value_both_ways_and_empty_cells_stay_below(seen):
    seen.unfold()
    table = seen.page.locator("table", has_text="Test results in %: digits, 50 labels")
    button = table.get_by_role("button", name="difference to uniform")

    def column():
        return table.locator("tbody tr > :nth-child(3)").all_inner_texts()

    assert column()[0] == "+2.00 ± 0.00*"
    button.click()
    assert [text.split(" ")[0] for text in column()] == ["-2.90", "-2.00", "+2.00", ""]
    assert table.locator("th[aria-sort=ascending]").inner_text() == "difference to uniform"
    button.press("Enter")  # the keyboard does it, too
    assert [text.split(" ")[0] for text in column()] == ["+2.00", "-2.00", "-2.90", ""]
    table.get_by_role("button", name="line").click()
    assert table.locator("tbody th").first.inner_text() == "S4L + ARML"
    assert table.locator("th[aria-sort]").count() == 1


def test_switching_between_methods_and_seeds_redraws(seen):
    figure = seen.figure("weights-digits-50-labels")
    names, traces = curves(figure)
    assert names == ["rotation", "exemplar"]
    assert traces == 4  # two curves, two bands
    figure.get_by_label("Seeds", exact=True).select_option("seed 1")
    seen.page.wait_for_function(
        "() => document.querySelectorAll('#figure-weights-digits-50-labels .trace').length === 2"
    )
    data = "() => document.querySelector('#figure-weights-digits-50-labels .chart').data[0].y.at(-1)"
    assert seen.page.evaluate(data) == 0.06
    figure.get_by_label("Seeds", exact=True).select_option("seed 2")
    assert seen.page.evaluate(data) == 0.07
    figure.get_by_label("Show", exact=True).select_option("S4L + Gated ARML (ours)")
    assert figure.get_by_label("Show", exact=True).input_value() == "1"


def test_hovering_shows_values(seen):
    figure = seen.figure("weights-digits-100-labels")
    point = figure.locator(".scatterlayer .trace .points path").first
    box = point.bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    figure.locator(".hovertext").first.wait_for()
    # 0.525, 0.53 and 0.535: s = 0.005, and 4.303 * 0.005 / sqrt(3) = 0.0124.
    assert figure.locator(".hovertext").first.text_content() == "rotation: 0.5300 ± 0.0124 at 25"


def test_names_are_shown_as_they_are(seen):
    figure = seen.figure("weights-digits-20-labels")
    assert curves(figure)[0][0] == EVIL
    assert seen.page.locator("img").count() == 0


def test_dark_follows_the_reader_and_the_button(browser, path):
    seen = Visit(browser, path, color_scheme="dark")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert seen.page.evaluate(ground) == "rgb(20, 24, 29)"
    seen.figure("error-digits-20-labels")
    seen.page.get_by_role("button", name="Light", exact=True).click()
    assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"
    paper = "() => document.querySelector('#figure-error-digits-20-labels .chart').layout.paper_bgcolor"
    assert seen.page.evaluate(paper) == "#ffffff"
    seen.context.close()
    assert seen.trouble == []


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_the_contrast_that_wcag_asks_for(browser, path, scheme):
    seen = Visit(browser, path, color_scheme=scheme)
    names = ["ground", "raised", "ink", "quiet", "accent", "caution", "good", "bad", "plain", "open"]
    read = "(name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()"
    ground, raised, *words = (luminance(seen.page.evaluate(read, name)) for name in names)
    for behind in (ground, raised):
        for word in words:
            assert (max(word, behind) + 0.05) / (min(word, behind) + 0.05) >= 4.5
    seen.context.close()


def test_a_phone_does_not_scroll_sideways(browser, path):
    seen = Visit(browser, path, viewport={"width": 390, "height": 844})
    seen.figure("weights-digits-50-labels")
    seen.figure("error-digits-20-labels")
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 390
    seen.context.close()
    assert seen.trouble == []


def test_the_first_screen_says_what_to_do(browser, path):
    """Headline, number, badges and the top of the charts, without scrolling, on a desk and on a phone."""
    for size, parts in (((1280, 800), ".headline, .big, .badges, .pair"), ((390, 844), ".headline, .big, .badges")):
        seen = Visit(browser, path, viewport={"width": size[0], "height": size[1]})
        first = seen.page.locator("article.first")
        assert first.locator(".headline").inner_text().startswith("Cannot tell yet whether ARML beats the main task")
        for part in parts.split(", "):
            assert first.locator(part).bounding_box()["y"] < size[1]
        assert not seen.page.locator("table").first.is_visible()
        seen.context.close()
        assert seen.trouble == []


def test_a_link_to_a_section_opens_it(browser, path):
    seen = Visit(browser, path)
    section = seen.page.locator("#section-1")
    assert not section.locator("table").first.is_visible()
    seen.page.locator("nav a").nth(1).click()
    section.locator("table").first.wait_for()
    seen.context.close()
    assert seen.trouble == []


def test_tables_on_a_phone_have_neither_cut_captions_nor_blank_rows(browser, path):
    seen = Visit(browser, path, viewport={"width": 390, "height": 844})
    seen.unfold()
    widths = "all => all.map((one) => one.getBoundingClientRect().right)"
    assert max(seen.page.locator("caption").evaluate_all(widths)) <= 390
    assert max(seen.page.locator("td").evaluate_all(widths)) <= 390
    empty = "all => all.filter((one) => one.textContent === '').map((one) => one.getBoundingClientRect().height)"
    assert set(seen.page.locator("td").evaluate_all(empty)) <= {0}
    seen.context.close()


def test_ticks_of_seeds_can_be_seen_in_the_dark(browser, path):
    seen = Visit(browser, path, color_scheme="dark")
    seen.figure("error-digits-50-labels")
    tick = "() => document.querySelector('#figure-error-digits-50-labels .chart').data[0].marker"
    marker = seen.page.evaluate(tick)
    assert marker["line"]["width"] > 1
    assert luminance(marker["line"]["color"]) > 0.15
    seen.context.close()


def test_the_page_is_small(path):
    assert path.stat().st_size < 2_000_000


def test_the_keyboard_reaches_everything(browser, path):
    seen = Visit(browser, path)
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("() => document.activeElement.className") == "skip"
    headings = seen.page.locator("h1, h2").all_inner_texts()
    assert headings[0] == "Which weighting, and which auxiliary task, helps?"
    assert seen.page.locator("select").evaluate_all("all => all.every((one) => one.labels.length === 1)")
    assert seen.page.locator("html").get_attribute("lang") == "en"
    seen.context.close()
    assert seen.trouble == []


def test_a_live_page_reloads_and_keeps_what_was_chosen(browser, tmp_path):
    ssl_runs(tmp_path / "runs")

    def make_page(live):
        report = make_report(collect([tmp_path / "runs"]), paper=False, defaults=lambda run: ([], type(run)()))
        write_report(report, tmp_path, most_figures=0, reload_every=2.5 if live else None)

    make_page(live=True)
    seen = Visit(browser, tmp_path / "index.html")
    seen.figure("weights-digits-50-labels").get_by_label("Seeds", exact=True).select_option("seed 1")
    for seed in range(3, 5):
        write(tmp_path / "runs", SemiSupervised(seed=seed), 15.0, weights={"rotation": 0.5, "exemplar": 1.5})
    make_page(live=False)
    seen.page.get_by_text("14 runs with 5 seeds").wait_for(timeout=10_000)
    chosen = seen.figure("weights-digits-50-labels").get_by_label("Seeds", exact=True)
    assert chosen.locator("option:checked").inner_text() == "seed 1"
    seen.context.close()
    assert seen.trouble == []
