"""A report as one HTML page that needs nothing else: no network, no other file.

Whatever a target wrote is escaped, and the page forbids every script but its own (a policy with its hash), so
that a report about a hostile target can be opened without a thought.
"""

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from tokenlaw.diagram_svg import STYLE
from tokenlaw.html_data import stored
from tokenlaw.html_faults import faults_page, is_matrix, matrix
from tokenlaw.html_view import MARKS, page_of
from tokenlaw.text import encodable, printable

_FOLDER = "templates"


def to_html(data: Mapping[str, Any], source: str = "report") -> bytes:
    """The page of a report's JSON data, in UTF-8; ``source`` names them in errors.

    They are those of `tokenlaw.report.Report.to_data`, or of a matrix of faults (``tokenlaw faults --json``).

    Raises
    ------
    BadUse
        The data are neither, or of another version, or damaged.
    """
    if is_matrix(data):
        return _rendered("faults.html", page=faults_page(matrix(data, source)))
    return _rendered("report.html", page=page_of(stored(data, source)))


def _rendered(template: str, **values: Any) -> bytes:
    script = _part("report.js")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tokenlaw", _FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
    )
    page = environment.get_template(template).render(
        **values,
        marks=MARKS,
        style=Markup(STYLE + _part("report.css")),
        script=Markup(script),
        script_hash=_hash(script),
    )
    return encodable(page).encode() + b"\n"


def _visible(value: Any) -> Any:
    """Text without characters that nobody sees, some of which turn text around; marked-up text as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _part(name: str) -> str:
    return resources.files("tokenlaw").joinpath(_FOLDER, name).read_text("utf-8")


def _hash(script: str) -> str:
    """What a content security policy calls a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
