"""The command line: parse the arguments, call one function of app, print the result."""
