"""What MkDocs adds to docs/: the tables, the changelog and other files that stand elsewhere, and a
page for each example.

Pages link to them as files of the repository, so that they can be read without a build.
"""

import importlib.util
import posixpath
import re
from pathlib import Path

import griffe
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def _elsewhere():
    """Each file outside of docs/ that the site has, with its address in the site."""
    for path in sorted((ROOT / "reports/tables").iterdir()):
        yield path, f"tables/{path.name}"
    for path in sorted((ROOT / "support").iterdir()):
        # MkDocs takes a README for the page of its folder.
        yield path, f"support/{path.name}"
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        yield ROOT / name, name


_ADDRESSES = dict(_elsewhere())
# The examples, with the address in the site of a page with the text of each.
_PROGRAMS = {
    path: f"examples/{path.name}.md" for path in sorted((ROOT / "docs/examples").glob("*.py"))
}


def _program_page(path):
    """A page with the text of a program."""
    text = path.read_text(encoding="utf-8")
    return f"# {path.name}\n\n````python\n{text}````\n"


def _supports_page():
    """The text of the page with a search box; its module is beside this one."""
    spec = importlib.util.spec_from_file_location("supports_page", ROOT / ".ci/supports_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def on_files(files, config):
    """Adds the files from elsewhere."""
    for path, address in _ADDRESSES.items():
        files.append(File.generated(config, address, abs_src_path=str(path)))
    for path, address in _PROGRAMS.items():
        files.append(File.generated(config, address, content=_program_page(path)))
    files.append(File.generated(config, "supports.html", content=_supports_page()))
    files.append(File.generated(config, "site.css", abs_src_path=str(ROOT / ".ci/site.css")))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns links to files of the repository into links within the site.

    The text of a link to a file that the site has not (a module, a harness) stays as text.
    """
    if page.file.abs_src_path is None:  # a page that on_files made
        return markdown
    source = Path(page.file.abs_src_path)
    here = posixpath.dirname(page.file.src_uri)
    docs = Path(config.docs_dir).resolve()

    def address(match):
        path, anchor = match[1], match[2] or ""
        target = (source.parent / path).resolve()
        page_of = _ADDRESSES.get(target) or _PROGRAMS.get(target)
        if page_of is not None:
            return f"]({posixpath.relpath(page_of, here or '.')}{anchor})"
        if not target.exists():
            return match[0]
        if target.is_relative_to(docs):
            # A page from elsewhere (a table) is at another place in the site.
            return f"]({posixpath.relpath(target.relative_to(docs), here or '.')}{anchor})"
        return "]"

    def outside(text):
        return re.sub(r"\[([^\]]*)\]$", r"\1", text)

    parts, end = [], 0
    for match in _LINK.finditer(markdown):
        found = address(match)
        before = markdown[end : match.start()]
        # `[text](file)` of a file that is not in the site becomes `text`.
        parts.append(outside(f"{before}]") if found == "]" else before + found)
        end = match.end()
    return "".join([*parts, markdown[end:]])


class DoctestsAsCode(griffe.Extension):
    """Fences the examples of docstrings, whose `>>>` Markdown takes for quotations."""

    def on_object(self, *, obj, **options):
        """Called for each object that was read."""
        if obj.docstring is not None:
            fenced = r"```python\n\1\n```"
            obj.docstring.value = _EXAMPLE.sub(fenced, obj.docstring.value)


# From a first `>>>` to the next empty line.
_EXAMPLE = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)
