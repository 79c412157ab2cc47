"""What mkdocs doesn't do by itself: links out of ``docs/``, marks of code blocks, no foreign hosts."""

from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from site_pages import foreign, linked_files, rewritten, site_path


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside ``docs/`` that pages link to."""
    for page in list(files.documentation_pages()):
        for file in sorted(linked_files(Path(page.abs_src_path))):
            if site_path(file) not in files.src_uris:
                files.append(File.generated(config, site_path(file), abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Mend links and blocks."""
    return rewritten(markdown, Path(page.file.abs_src_path))


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Stop where a page would load something from elsewhere."""
    if found := foreign(output):
        raise PluginError(f"{page.file.src_uri} loads something from another host: {found[0]}")
    return output
