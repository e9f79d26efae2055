"""What every room agrees on: fields, Job, Verdict, units, settings' definitions, errors, ports."""
