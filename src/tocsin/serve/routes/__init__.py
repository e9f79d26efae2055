"""One router per resource: each route parses a request, calls one function of app, and renders the reply."""
