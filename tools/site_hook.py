"""What the site (mkdocs.yml) has in place of links to files of the repository that are no documents: their paths."""

import posixpath
import re


def on_page_markdown(markdown, page, **_):
    def replace(match):
        text, target = match.groups()
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target.split("#")[0]))
        return match[0] if path.startswith("docs/") else f"{text} (`{path}`)"

    return re.sub(r"\[([^\]]*)\]\((\.\.?/[^)\s]*)\)", replace, markdown)
