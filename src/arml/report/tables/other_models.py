"""What an answer says about models without a network, and about the kind of result."""

from collections.abc import Iterator

from arml.report.data.answer import Advice, Answer
from arml.report.data.decision import MARGIN, Outcome
from arml.report.tables.phrases import better_seeds, model_name, percent


def other_models(answer: Answer, name: str) -> Iterator[str]:
    """Sentences on simple models, on auxiliary columns as inputs, and on constant answers; ``name`` is the line's."""
    if answer.result is None:
        return
    yield from _simple_sentence(answer, name)
    yield from _inputs_sentence(answer, name)
    if answer.constant is not None:
        model, error = answer.constant
        yield f"Caution: {model_name(model)} has an error of {error:.1f} %, {name} has {percent(answer.result)}."
    if answer.comparison.is_numeric():
        yield "The error of a number is the share of its variance that is not explained: always the mean has 100 %."


def _simple_sentence(answer: Answer, name: str) -> Iterator[str]:
    """One that is established to be better is the headline, not a remark."""
    model, decision = answer.simple or ("", None)
    if answer.advice in (Advice.SIMPLE, Advice.ONE_SEED) or decision is None or decision.difference is None:
        return
    result, better = f"{answer.model_result(decision):.1f} %", answer.measure().better()
    if decision.outcome is Outcome.SAME:
        yield f"A simpler model does as well as {name}, within {MARGIN:g} point: {model_name(model)}, {result}."
    elif decision.outcome is Outcome.OPEN and decision.difference.mean < 0 and decision.less > decision.more:
        seeds = better_seeds(decision)
        yield f"A simpler model may do: {model_name(model)}, {result}, {better} on {seeds}; not established."


def _inputs_sentence(answer: Answer, name: str) -> Iterator[str]:
    decision = answer.as_inputs
    if decision is None or decision.difference is None or decision.difference.mean >= 0 or answer.result is None:
        return
    result = f"{answer.model_result(decision):.1f} %"
    known = "If the auxiliary columns are known when you predict,"
    sure = decision.outcome is Outcome.LESS
    found = f"{answer.measure().better()} than {name} on {better_seeds(decision)}{'' if sure else '; not established'}"
    yield f"{known} {'use' if sure else 'try'} them as inputs: {result} with a regression, {found}."
