"""HTTP and pages: parse a request, call one function of app, render."""
