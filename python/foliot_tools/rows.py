"""Rows of the tables that `foliot experiment` writes: a dictionary each."""


def select(rows, **where):
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def distinct(rows, key):
    return list(dict.fromkeys(row[key] for row in rows))
