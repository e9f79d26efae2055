"""The command line: parse a request, call one function below, render."""
