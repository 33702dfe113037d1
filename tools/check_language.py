#!/usr/bin/env python3
"""Checks the language of comments, messages and documents.

tools/words.txt lists words that are not used, each with a better one. They are
looked for in comments, strings and documents of src/, in comments and docstrings of python/
and tests/, and in README.md and docs/; those marked {names} in the identifiers of
src/, too. Sentences of the documents that are read first have at most 35 words.
Code in backticks and fenced code is not text.

Prints one line per finding and exits with 1 if there is any.
"""

import argparse
import io
import pathlib
import re
import sys
import tokenize

SENTENCE_WORDS_MAX = 35
SHORT_SENTENCES = ["README.md", "docs/SERVING.md", "docs/OPERATIONS.md", "docs/SECURITY.md"]

# Comments, raw strings and strings of C++, in the order in which they are tried.
CPP_TEXT = re.compile(
    r"//(?P<line>[^\n]*)"
    r"|/\*(?P<block>.*?)\*/"
    r'|R"(?P<tag>[^(\s]*)\((?P<raw>.*?)\)(?P=tag)"'
    r'|(?<!#include )"(?P<string>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
STATEMENT_BEGINS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)  # a string here is a docstring
CODE_SPAN = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^\s*(```|~~~)")


def read_words(path):
    """(pattern, in identifiers too, folders or None, better) of every line of the list."""
    words = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(?P<word>[^\[]+?)\s*(?P<names>\{names\}\s*)?(?:\[(?P<folders>[^\]]+)\]\s*)?->\s*(?P<better>.+)", line)
        if not match:
            raise SystemExit(f"{path}:{number}: not of the form 'word -> better': {line}")
        pattern = re.compile(rf"\b(?:{match['word']})\b", re.IGNORECASE)
        words.append((pattern, bool(match["names"]), match["folders"].split() if match["folders"] else None, match["better"]))
    return words


def cpp_texts(source):
    """(line number, text) of every line of comments and strings of C++ source."""
    for match in CPP_TEXT.finditer(source):
        text = next((match[kind] for kind in ("line", "block", "raw", "string") if match[kind] is not None), None)
        if text is None:
            continue
        first = source.count("\n", 0, match.start()) + 1
        for offset, line in enumerate(text.split("\n")):
            yield first + offset, line


def cpp_names(source):
    """(line number, its words) of every identifier of C++ source outside comments and strings."""
    code = CPP_TEXT.sub(lambda match: "\n" * match[0].count("\n"), source)
    for number, line in enumerate(code.split("\n"), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield number, " ".join(re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)).lower()


def python_texts(source):
    """(line number, text) of every line of comments and docstrings of Python source."""
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and previous in STATEMENT_BEGINS
        if token.type == tokenize.COMMENT or is_docstring:
            for offset, line in enumerate(token.string.split("\n")):
                yield token.start[0] + offset, line
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING):
            previous = token.type


def markdown_texts(source):
    """(line number, text) of every line of Markdown outside fenced code."""
    fenced = False
    for number, line in enumerate(source.split("\n"), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"\]\([^)]*\)", "]", line)


READERS = {".h": cpp_texts, ".cc": cpp_texts, ".py": python_texts, ".md": markdown_texts}


def files(root):
    """Every file whose language is checked, in order."""
    for folder, suffixes in (("src", (".h", ".cc", ".md")), ("python", (".py",)), ("tests", (".py",)), ("docs", (".md",))):
        yield from sorted(path for path in (root / folder).rglob("*") if path.suffix in suffixes)
    yield root / "README.md"


def words_in(name, texts, words):
    """A finding for each listed word in the texts of the file `name`."""
    words = [(pattern, better) for pattern, _, folders, better in words
             if folders is None or any(name.startswith(folder + "/") for folder in folders)]
    for number, line in texts:
        prose = CODE_SPAN.sub("", line)
        for pattern, better in words:
            for match in pattern.finditer(prose):
                if not match[0].isupper():
                    yield f"{name}:{number}: '{match[0]}': better: {better}"


def sentences(texts):
    """(line number, sentence): paragraphs, list items and cells of tables, cut at full stops."""
    blocks = []  # each a list of (line number, word)
    previous = None
    for number, line in texts:
        starts_block = re.match(r"\s*([-*] |\d+\. |#|\||!\[|$)", line) or number - 1 != previous
        previous = number
        cells = line.split("|") if line.lstrip().startswith("|") else [re.sub(r"^\s*([-*]|\d+\.|#+) ", "", line)]
        for index, cell in enumerate(cells):
            if starts_block or index or not blocks:
                blocks.append([])
            blocks[-1] += [(number, word) for word in cell.split()]
    for block in blocks:
        sentence = []
        for index, (number, word) in enumerate(block):
            sentence.append((number, word))
            last = index + 1 == len(block)
            if last or re.search(r"[.!?][)*]?$", word) and re.match(r"[(*\[`]*[A-Z0-9`-]", block[index + 1][1]):
                yield sentence[0][0], [word for _, word in sentence]
                sentence = []


def long_sentences(name, texts):
    """A finding for each sentence of more than SENTENCE_WORDS_MAX words."""
    for number, words in sentences(texts):
        if len(words) > SENTENCE_WORDS_MAX:
            yield (f"{name}:{number}: a sentence of {len(words)} words, limit {SENTENCE_WORDS_MAX}: "
                   f"'{' '.join(words[:6])} ...': write two")


def check(root, words):
    """All findings below `root`."""
    for path in files(root):
        name = path.relative_to(root).as_posix()
        content = path.read_text(encoding="utf-8")
        texts = list(READERS[path.suffix](content))
        yield from words_in(name, texts, words)
        if path.suffix in (".h", ".cc"):
            yield from words_in(name, cpp_names(content), [word for word in words if word[1]])
        if name in SHORT_SENTENCES:
            yield from long_sentences(name, texts)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=root, help="the folder of the project")
    parser.add_argument("--words", type=pathlib.Path, default=root / "tools/words.txt", help="the list of words")
    arguments = parser.parse_args()
    findings = list(check(arguments.root, read_words(arguments.words)))
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
