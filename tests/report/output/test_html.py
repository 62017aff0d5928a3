"""The report as a whole, and the page as text. How it behaves in a browser is another file."""

import json
import re
from html.parser import HTMLParser

import pytest
from report.made_records import dg_runs, finished_chart, ssl_runs, write

from arml.lab.run import MultiLabel, SemiSupervised
from arml.report.contents import make_report
from arml.report.data.records import collect
from arml.report.output.html import page
from arml.report.output.write import write as write_report

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def plain(run):
    return [], type(run)()


def report_of(path, *, paper=False, charts=()):
    return make_report(collect([path]), paper=paper, defaults=plain, charts=charts)


class Tags(HTMLParser):
    """All elements with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script":
            self.scripts.append(data)


def test_the_page_asks_for_nothing(tmp_path):
    ssl_runs(tmp_path)
    tags = Tags(page(report_of(tmp_path))).found
    for tag, attributes in tags:
        links = [attributes[name] for name in ("src", "href", "data", "action") if name in attributes]
        assert all(link.startswith(("#", "data:")) for link in links), (tag, attributes)
    (policy,) = (a["content"] for tag, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_names_from_records_cannot_act(tmp_path):
    run = MultiLabel(main=EVIL, table=f"{EVIL}.csv", dataset="table", aux=(EVIL, "other"))
    for seed in range(2):
        write(tmp_path / str(seed), MultiLabel(**{**vars(run), "seed": seed}), 9.0, weights={EVIL: 1.5, "other": 0.5})
    (tmp_path / "<b>bad").mkdir()
    (tmp_path / "<b>bad" / "record.jsonl").write_text(f'{{"{EVIL}"}}\n')
    text = page(report_of(tmp_path, paper=True))
    tags = Tags(text)
    assert "img" not in [tag for tag, _ in tags.found]
    assert [a.get("type") for tag, a in tags.found if tag == "script"] == ["application/json", None, None]
    assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
    assert "&lt;/script&gt;" in text
    assert "<b>" not in re.sub(r"(?s)<script.*?</script>", "", text)
    assert json.loads(tags.scripts[0])["charts"]


def test_the_summary_says_what_was_compared_and_what_came_out(tmp_path):
    ssl_runs(tmp_path)
    write(tmp_path, SemiSupervised(seed=9))
    report = report_of(tmp_path)
    assert (
        report.overview
        == "4 ways of learning on digits, 50 labels: 13 runs with 4 seeds, 12 finished and shown, 0 failed."
    )
    (finding,) = report.findings
    assert finding.title == "digits, 50 labels"
    assert finding.overall[0].startswith("S4L + ARML did better than uniform weights")
    assert finding.tasks[0].startswith("rotation: switched off.")
    text = page(report)
    assert text.index("did better than uniform") < text.index("<figure") < text.index("Test results in %")


def test_mixed_protocols_failures_and_skipped_files_are_mentioned(tmp_path):
    ssl_runs(tmp_path)
    failed = write(tmp_path, SemiSupervised(seed=5, steps=400))
    (failed / "failure.txt").write_text("ValueError: too few labels")
    (tmp_path / "record.jsonl").unlink(missing_ok=True)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "record.jsonl").write_text("{}\n")
    report = report_of(tmp_path)
    assert report.sections[0].warnings[0].startswith("Mind: runs on digits, 50 labels differ in steps (200, 400)")
    assert 'class="mind">Mind: runs on digits' in page(report)
    assert any("foreign/record.jsonl: " in remark for remark in report.remarks)
    assert "failed: digits, 50 labels, S4L + ARML, seed 5: ValueError: too few labels" in report.remarks
    assert "2 files or runs are not in the numbers" in page(report)


def test_nothing_yet_is_a_page_too(tmp_path):
    report = report_of(tmp_path)
    assert report.overview == "There is no record of a run yet."
    assert "There is no record of a run yet." in page(report, reload_every=5)


def test_without_arml_or_a_result_there_is_no_verdict(tmp_path):
    write(tmp_path, SemiSupervised(method="uniform"), 10.0, weights={"rotation": 1.0})
    write(tmp_path, SemiSupervised(labels=100))
    report = report_of(tmp_path)
    assert {finding.overall[0] for finding in report.findings} == {
        "No run with ARML has finished: there is no verdict on auxiliary tasks."
    }
    assert "no finished run" in page(report)


def test_only_a_live_page_reloads(tmp_path):
    ssl_runs(tmp_path)
    assert 'data-watch="2.5"' in page(report_of(tmp_path), reload_every=2.5)
    assert "data-watch=" not in page(report_of(tmp_path))


def test_names_that_differ_in_signs_only_have_files_of_their_own(tmp_path):
    for main in ("a_b", "a b"):
        write(tmp_path / main, MultiLabel(main=main), 9.0)
    keys = [chart.key for chart in report_of(tmp_path).charts()]
    assert len(set(keys)) == len(keys) == 2


def test_environments_are_counted(tmp_path):
    ssl_runs(tmp_path)
    (row,) = report_of(tmp_path).environments.rows
    assert [cell.text for cell in row] == ["12", "0.1.0", "a processor", "3.11.7", "Linux", "2.13.0"]


def test_the_papers_words_stand_where_they_belong(tmp_path):
    ssl_runs(tmp_path, labels=(50, 100))
    last = report_of(tmp_path, paper=True).sections[-1].sentences
    assert any(words.startswith("The paper's Figure 2, in words") for words in last)
    assert not any("Figure 3" in words or "Figure 4" in words for words in last)
    dg_runs(tmp_path)
    last = " ".join(report_of(tmp_path, paper=True).sections[-1].sentences)
    assert all(f"Figure {number}, in words" in last for number in (2, 3, 4))
    assert "The paper's" not in " ".join(report_of(tmp_path).sections[-1].sentences)


@pytest.mark.parametrize("most", [0, 2])
def test_files_of_a_report(tmp_path, most):
    runs, out = tmp_path / "runs", tmp_path / "report"
    ssl_runs(runs, labels=(50, 100))
    dg_runs(runs)
    report = report_of(runs, paper=True, charts=[finished_chart()])
    assert finished_chart() in report.charts()
    figures = write_report(report, out, most_figures=most)
    assert len(figures) == 2 * most
    assert all("labels-" in path.name for path in figures)
    assert sorted(path.name for path in out.iterdir() if path.is_file()) == ["index.html", "tables.md", "tables.tex"]
    assert (out / "tables.md").read_text().count("\n## ") + 1 == len(report.sheets())
    assert (out / "tables.tex").read_text().count(r"\begin{table}") == len(report.sheets())
    titles = " ".join(sheet.title for sheet in report.sheets())
    for what in ("Labels needed", "A misleading source", "Final weights at different numbers", "Verdict"):
        assert what in titles
