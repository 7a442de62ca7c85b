"""Pages of the site that are made of something else: docstrings, commands, scripts, the root's own files."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from command_line import command_line  # noqa: E402
from make_reference import PACKAGES  # noqa: E402

FROM_THE_ROOT = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "results/README.md": "results/README.md",
}
"""Files outside this folder, and the pages they become."""
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List a page for each package and each example, and at the end of How-to what nobody has listed."""
    listed = Path(config.config_file_path).read_text(encoding="utf-8")
    sections = {name: pages for each in config.nav or [] for name, pages in each.items()}
    sections["Gallery"] += [f"gallery/{script.stem}.md" for script in GALLERY]
    sections["How-to"] += [
        page.name for page in sorted((ROOT / "docs").glob("*.md")) if f" {page.name}\n" not in listed
    ]
    reference = sections["Reference"]
    pages = [{name: f"reference/{name}.md"} for name in PACKAGES]
    reference[1:1] = [{"Command line": "command-line.md"}, *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of something else."""
    made = {source: (ROOT / source).read_text(encoding="utf-8") for source in FROM_THE_ROOT}
    for source, text in made.items():
        files.append(File.generated(config, FROM_THE_ROOT[source], content=from_the_root(source, text)))
    for path in sorted((ROOT / "results").rglob("*.*")):
        kept = path.relative_to(ROOT).as_posix()
        if path.is_file() and kept not in FROM_THE_ROOT:
            files.append(File.generated(config, kept, abs_src_path=str(path)))
    files.append(File.generated(config, "LICENSE", abs_src_path=str(ROOT / "LICENSE")))
    files.append(File.generated(config, "command-line.md", content=command_line()))
    for name in PACKAGES:
        files.append(File.generated(config, f"reference/{name}.md", content=package_page(name)))
    for script in GALLERY:
        files.append(File.generated(config, f"gallery/{script.stem}.md", content=example_page(script)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links to the root's files lead to their pages, and sessions be coloured as such."""
    depth = page.file.src_uri.count("/")
    for source, target in [*FROM_THE_ROOT.items(), ("results/", "results/")]:
        markdown = markdown.replace(f"]({'../' * (depth + 1)}{source}", f"]({'../' * depth}{target}")
    markdown = re.sub(r"\]\(((?:\.\./)*(?:gallery/)?\w+)\.py\)", r"](\1.md)", markdown)
    return re.sub(r"```python\n(?=>>> )", "```pycon\n", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Keep names in tables whole, and let a figure lead to itself in full size, which a phone needs."""
    html = re.sub(r"(<t[dh][^>]*>)<code>([^\s<]+)</code>", r'\1<code class="name">\2</code>', html)
    return re.sub(r'(<img [^>]*src="([^"]+)"[^>]*>)', r'<a href="\2">\1</a>', html)


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Refuse a section without pages: its tab would lead nowhere."""
    empty = [item.title for item in nav.items if isinstance(item, Section) and not item.children]
    if empty:
        raise ValueError(f"nav must have pages in every section, {empty} have none")
    return nav


def from_the_root(source: str, text: str) -> str:
    """Turn links that hold at ``source`` into ones that hold in the folder of the pages."""
    text = re.sub(r"\]\((?:\.\./)?docs/", "](../" if "/" in source else "](", text)
    for other, page in FROM_THE_ROOT.items():
        text = text.replace(f"]({other})", f"]({page})")
    return text


def example_page(script: Path) -> str:
    """The page of an example: what its docstring says, its figure, what it prints, and the script itself."""
    source = script.read_text(encoding="utf-8")
    title, *text = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    code = source.split('"""', 2)[2].strip()
    figure = f"![{title.lstrip('# ')}]({script.stem}.png)"
    printed = f"It prints\n\n```text\n{script.with_suffix('.txt').read_text(encoding='utf-8')}```"
    ending = f"## The script\n\n`docs/gallery/{script.name}`, as it runs:\n\n```python\n{code}\n```\n"
    return "\n\n".join([title, *text, figure, printed, ending])


def package_page(name: str) -> str:
    """The page of a package: every public name with its docstring."""
    from importlib import import_module

    package = import_module(name)
    lines = [f"# {name}\n", f"Look up here what `{name}` offers. {package.__doc__}\n"]
    for public in sorted(package.__all__):
        if not public.startswith("__"):
            lines.append(f"::: {name}.{public}\n")
    return "\n".join(lines)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Load from this site what the theme would load from elsewhere: the search has to work offline."""
    up = "../" * page.url.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}assets/iframe-worker.js")
