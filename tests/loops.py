"""Many cases as one test: `over` stands where `pytest.mark.parametrize` would make a test of each,
and `narrowed` gives all odd values at once.

A thousand small tests cost more to collect than to run. The cases of one loop run one after the
other; the first that fails is raised, with a note that names all that fail.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def over(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on every case: values of the arguments ``names``, a tuple where they are several.

    Fixtures are shared by the cases: not for tests that change what a fixture gives them.
    """
    arguments = [name.strip() for name in names.split(",")]
    listed = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_cases(**fixtures: Any) -> None:
            failed: list[tuple[Any, BaseException]] = []
            assert listed, "there is no case"
            for case in listed:
                values = [case] if len(arguments) == 1 else list(case)
                try:
                    test(**dict(zip(arguments, values, strict=True)), **fixtures)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((case, error))
            if failed:
                shown = "\n".join(f"  {str(case)[:200]}" for case, _ in failed[:20])
                first = failed[0][1]
                first.add_note(f"{len(failed)} of {len(listed)} cases fail, first this:\n{shown}")
                raise first

        given = inspect.signature(test).parameters
        kept = [given[name] for name in given if name not in arguments]
        del all_cases.__wrapped__
        all_cases.__signature__ = inspect.Signature(kept)
        return all_cases

    return decorate


def narrowed(run: Callable[[list[Any]], Any], items: Sequence[Any]) -> None:
    """Run on all items at once; where that raises, say which of them raise alone."""
    try:
        run(list(items))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        found = [f"number {place}" for place, item in enumerate(items) if _raises(run, item)]
        error.add_note(f"Alone it raises with {', '.join(found) or 'none of them'}.")
        raise


def _raises(run: Callable[[list[Any]], Any], item: Any) -> bool:
    try:
        run([item])
    except KeyboardInterrupt:
        raise
    except BaseException:
        return True
    return False
