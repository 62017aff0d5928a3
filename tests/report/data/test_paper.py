"""The paper's own figures."""

from arml.lab.run import Line, Subject
from arml.report.data.paper import (
    PACS,
    PACS_TARGETS,
    QUOTED,
    TABLE_1,
    TABLE_2,
    figures_at_other_labels,
    has_figures,
    paper_figure,
)


def test_the_papers_figures_are_labelled():
    cifar = Subject("ssl", "cifar10", "", 4000)
    assert paper_figure(cifar, Line("vat")) == "13.86 ± 0.27 (quoted)"
    assert paper_figure(cifar, Line("s4l", "arml")) == "13.68 ± 0.35"
    assert paper_figure(cifar, Line("s4l", "gated_arml")) == ""
    assert all(set(QUOTED) < set(figures) for figures in TABLE_1.values())
    celeba = Subject("mlc", "celeba", "5_o_Clock_Shadow", 0.01)
    assert paper_figure(celeba, Line("joint", "arml")) == "5.97 ± 0.18"
    assert paper_figure(celeba, Line("main_only")) == ""
    assert paper_figure(celeba, Line("joint", "arml", "without Male")) == ""
    assert not has_figures(celeba._replace(main="Smiling"))
    assert not has_figures(celeba._replace(labels=0.1))
    assert paper_figure(Subject("dg", "pacs", "art_painting", 5), Line("jigen", "uniform")) == "20.58 (quoted)"
    assert paper_figure(Subject("dg", "pacs", "art_painting", 1), Line("jt", "arml")) == ""
    assert paper_figure(Subject("dg", "pacs", "guitars", 5), Line("jt", "arml")) == ""
    assert len(TABLE_2) == 6
    assert {len(row) for row in PACS.values()} == {len(PACS_TARGETS)}


def test_figures_with_another_number_of_labels_are_found():
    labels, figures = figures_at_other_labels(Subject("ssl", "cifar10", "", 1000))
    assert (labels, figures["uniform"], figures["supervised"]) == (4000, "15.67 ± 0.29", "20.26 ± 0.38 (quoted)")
    assert figures_at_other_labels(Subject("ssl", "cifar10", "", 4000)) is None
    assert figures_at_other_labels(Subject("ssl", "digits", "", 50)) is None
