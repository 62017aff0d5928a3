"""The page as text. Its behaviour in a browser is another file."""

import json
import re
from html.parser import HTMLParser

from report.made_records import ssl_runs, write
from report.made_reports import report_on

from arml.lab.run_kinds import MultiLabel
from arml.report.output.html import page

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


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
    tags = Tags(page(report_on(tmp_path))).found
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
    text = page(report_on(tmp_path, paper=True))
    tags = Tags(text)
    assert "img" not in [tag for tag, _ in tags.found]
    assert [a.get("type") for tag, a in tags.found if tag == "script"] == ["application/json", None, None]
    assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
    assert "&lt;/script&gt;" in text
    assert "<b>" not in re.sub(r"(?s)<script.*?</script>", "", text)
    assert json.loads(tags.scripts[0])["charts"]


def test_only_a_live_page_reloads(tmp_path):
    ssl_runs(tmp_path)
    assert 'data-watch="2.5"' in page(report_on(tmp_path), reload_every=2.5)
    assert "data-watch=" not in page(report_on(tmp_path))
