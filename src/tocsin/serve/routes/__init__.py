"""One router per kind of thing: each route parses a request, calls one function of app, and renders."""
