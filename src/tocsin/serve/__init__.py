"""HTTP API and pages: parse a request, call one function of app, render the reply."""
