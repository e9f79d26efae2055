"""The few pages of the identity package: plain HTML without scripts, in the style of the other pages."""

from html import escape

__all__ = ["absent_page", "confirm_page", "entered_page", "unknown_page"]

_HEAD = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="stylesheet" href="/static/tocsin.css">'
)


def _page(title: str, body: str, head: str = "") -> bytes:
    return (
        f'<!doctype html><html lang="en"><head>{_HEAD}<title>{escape(title)}</title>{head}</head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>"
    ).encode()


def confirm_page(code: str) -> bytes:
    """The link is used up by a click and not by a visit, because link previews visit it too."""
    form = (
        '<form method="post" action="/login">'
        f'<input type="hidden" name="code" value="{escape(code)}"><button>Log in</button></form>'
    )
    note = "<p>Continue only if you have just run <code>tocsin login</code> yourself.</p>"
    return _page("Log in to tocsin", note + form)


def entered_page(user: str) -> bytes:
    """Redirects to the start page by itself: the strict cookie is not sent with a redirect from another site."""
    refresh = '<meta http-equiv="refresh" content="0; url=/">'
    return _page("Logged in", f'<p>You are {escape(user)}. <a href="/">Continue</a></p>', refresh)


def unknown_page(reason: str, *, oidc: bool) -> bytes:
    link = '<p><a href="/login/oidc">Log in</a></p>' if oidc else ""
    how = "<p>On a login node, run <code>tocsin login</code> and open the address that it prints.</p>"
    return _page("Please log in", f"<p>{escape(reason)}</p>{link}{how}")


def absent_page() -> bytes:
    return _page("Not found", '<p>There is nothing at this address. <a href="/">Start page</a></p>')
