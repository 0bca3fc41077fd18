"""Questions as the fields of a form, and the bars to expect: from public facts alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...domain import Categorical, Date, Datetime, Domain, Numeric
from ...domain.queries.text import quoted
from ...expected import bar_of
from ..sources import no_records

ASKS = {"count": "the number of records", "proportion": "the share of records"} | {
    name: f"the {name} of" for name in ("mean", "median", "sum")
}


def suggested(domain: Domain) -> list[str]:
    """A question on each column, by what is declared."""
    found = []
    for name, attribute in domain.items():
        if isinstance(attribute, Categorical) and not attribute.nullable:
            first = attribute.categories[0]
            found.append(f"proportion({quoted(name)} == {first!r})")
        elif isinstance(attribute, Categorical):
            found.append(f"{quoted(name)} == {attribute.categories[0]!r}")
        elif not isinstance(attribute, Date | Datetime) and name == name.strip(", "):
            found.append(f"mean({name})")
    return [each for each in found if len(each) < 200]


def condition(column: str, sign: str, value: Any) -> str:
    """A condition in the language of queries."""
    return f"{quoted(column)} {sign} {value!r}"


def composed(domain: Domain, form: Mapping[str, str]) -> str:
    """The question that the fields below the list describe.

    Raises
    ------
    ValueError
        If something is missing.
    """
    ask, of, where = form.get("ask", "count"), form.get("of", ""), form.get("where", "")
    text = ""
    if where:
        typed: Any = form.get("value", "").strip()
        if not typed:
            raise ValueError(f"Which value of {where}?")
        attribute = domain.declared(where)
        if isinstance(attribute, Categorical):
            typed = next((c for c in attribute.categories if str(c) == typed), typed)
        elif isinstance(attribute, Numeric) and not isinstance(attribute, Date | Datetime):
            try:
                typed = float(typed) if "." in typed else int(typed)
            except ValueError:
                raise ValueError(f"{where} holds numbers, and {typed!r} is none.") from None
        text = condition(where, form.get("sign", "=="), typed)
    if ask in ("count", "proportion"):
        if not text:
            raise ValueError("Say which records: a column and a value.")
        return text if ask == "count" else f"proportion({text})"
    if not of:
        raise ValueError(f"Say of which column you want the {ask}.")
    return f"{ask}({of}){f' where {text}' if text else ''}"


def trial(estimator: Any, domain: Domain, unit: str | None) -> Any:
    """A release of no records: what refuses it would refuse the release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(no_records(domain, unit)).synopsis_


def unread(release: Any, questions: Sequence[str]) -> list[str]:
    """What is wrong with questions that cannot be asked."""
    found = []
    for question in questions:
        try:
            bar_of(release, question, 0.95)
        except (ValueError, TypeError) as error:
            found.append(str(error))
    return found


def bars(
    estimator: Any,
    n: int,
    at: Sequence[str],
    questions: Sequence[str],
    say: Callable[[str], None],
) -> dict[str, dict[str, float]]:
    """Half the 95% interval to expect of each question, at each epsilon."""
    found: dict[str, dict[str, float]] = {}
    for number, text in enumerate(at, start=1):
        say(f"Trying epsilon {text} on generated tables ({number} of {len(at)}).")
        errors = estimator.expected_error(n, float(text), questions=questions or None).errors
        for question, bar in errors[float(text)].items():
            found.setdefault(str(question), {})[text] = float(bar)
    return found
