"""SQL statements with one condition removed, to check that a test fails."""

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

GUARDS = frozenset({"apikey_hash", "project", "deleted"})


@dataclass(frozen=True)
class Mutant:
    """A statement, and the condition that it lacks."""

    name: str
    lacks: str
    sql: str


def regenerated(sql: str, dialect: str) -> str:
    """Return a statement as the parser writes it."""
    return sqlglot.parse_one(sql, dialect=dialect).sql(dialect=dialect)


def mutants(name: str, sql: str, dialect: str) -> Iterator[Mutant]:
    """Yield the statement without each guard of tenant, project or life in turn."""
    count = len(list(_guards(sqlglot.parse_one(sql, dialect=dialect))))
    for number in range(count):
        tree = sqlglot.parse_one(sql, dialect=dialect)
        clause, guard = list(_guards(tree))[number]
        lacks = guard.sql(dialect=dialect)
        rest = [conjunct for conjunct in _conjuncts(clause) if conjunct is not guard]
        _put(clause, exp.and_(*rest) if rest else exp.true())
        yield Mutant(name, f"{number}: {lacks}", tree.sql(dialect=dialect))


def unguarded(sql: str, dialect: str) -> list[str]:
    """Return the scopes of a statement that touch a table of ours and do not say whose rows they mean."""
    tree = sqlglot.parse_one(sql, dialect=dialect)
    guarded_scopes = {id(_scope(guard)) for _, guard in _guards(tree) if "apikey_hash" in _columns(guard)}
    scopes = []
    for table in tree.find_all(exp.Table):
        scope = table.find_ancestor(exp.Select, exp.Update, exp.Delete, exp.Insert)
        if table.name.startswith("mcp_") and not isinstance(scope, exp.Insert) and id(scope) not in guarded_scopes:
            scopes.append(f"{table.name} in {scope.sql(dialect=dialect)[:60] if scope else '?'}")
    return scopes


def _guards(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    for clause in tree.find_all(exp.Where, exp.Join):
        for condition in _conjuncts(clause):
            if GUARDS & _columns(condition):
                yield clause, condition


def _conjuncts(clause: exp.Expr) -> list[exp.Expr]:
    condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause.this
    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def _put(clause: exp.Expr, condition: exp.Expr) -> None:
    clause.set("on" if isinstance(clause, exp.Join) else "this", condition)


def _columns(condition: exp.Expr) -> set[str]:
    """Return the columns that a condition names itself, not inside a query of its own."""
    scope = _scope(condition)
    return {column.name for column in condition.find_all(exp.Column) if _scope(column) is scope}


def _scope(node: exp.Expr) -> exp.Expr | None:
    return node.find_ancestor(exp.Select, exp.Update, exp.Delete)
