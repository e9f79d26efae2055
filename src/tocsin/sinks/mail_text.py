"""The text of a mail to a user: findings on the user's own jobs, by templates that are never run as code."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from tocsin.core.errors import InputError, SettingsError
from tocsin.core.ids import parse_key
from tocsin.core.ports import Message
from tocsin.core.printable import printable
from tocsin.core.units import format_instant
from tocsin.core.verdict import ALARMS, Finding, Verdict, severity

__all__ = ["MailText", "Templates", "read_templates", "write_mail"]

_MOST_JOBS = 50
_LARGEST = 65_536


@dataclass(frozen=True, slots=True)
class Templates:
    mail: Template
    """Its first line is the subject; $user, $count, $jobs."""
    job: Template
    """$job, $name, $level, $stage, $at, $findings, $advice."""


@dataclass(frozen=True, slots=True)
class MailText:
    subject: str
    text: str


def read_templates(folder: Path) -> Templates:
    """The templates in the folder; those of tocsin for any that are missing."""
    mail, job = (_read(folder, name) for name in ("mail.txt", "mail-job.txt"))
    if not mail.startswith("Subject: "):
        raise SettingsError(f'{folder / "mail.txt"} must begin with a line "Subject: …"')
    return Templates(Template(mail), Template(job))


def _read(folder: Path, name: str) -> str:
    path = folder / name
    try:
        return path.read_text("utf-8")[:_LARGEST]
    except (FileNotFoundError, NotADirectoryError):
        return (files("tocsin.sinks") / "templates" / name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the template {path} cannot be read: {error}") from None


def write_mail(
    templates: Templates, user: str, messages: Sequence[Message], detectors: Collection[str]
) -> MailText | None:
    """The mail to this user; None if there is nothing to report.

    Only findings of these detectors are included. Workload classification is not among them: a user must not learn
    which words in a script gave away a misuse.
    """
    latest: dict[str, tuple[Verdict, list[Finding]]] = {}
    for message in messages:
        verdict = _verdict(message)
        if verdict is None or verdict.user != user:
            continue
        findings = [
            f for f in verdict.findings if f.detector in detectors and f.level in ALARMS and not f.operation
        ]
        if findings:
            latest[verdict.job] = verdict, sorted(findings, key=lambda finding: -severity(finding.level))
    if not latest:
        return None
    jobs = [_job(templates.job, *found) for found in list(latest.values())[:_MOST_JOBS]]
    if len(latest) > _MOST_JOBS:
        jobs.append(f"… and {len(latest) - _MOST_JOBS:,} more jobs")
    text = templates.mail.safe_substitute(user=_line(user), count=len(latest), jobs="\n\n".join(jobs))
    first, _, rest = text.partition("\n")
    return MailText(_line(first.removeprefix("Subject: ")), rest.lstrip("\n"))


def _verdict(message: Message) -> Verdict | None:
    try:
        return Verdict.from_json(message.document) if message.kind == "verdict" else None
    except InputError:  # from another version of tocsin
        return None


def _job(template: Template, verdict: Verdict, findings: list[Finding]) -> str:
    key = parse_key(verdict.job)
    task = "" if key.task is None else f"_{key.task}"
    advice = [f"  → {_line(one.change)}: {_line(one.why)}" for one in verdict.advice]
    text = template.safe_substitute(
        job=f"{key.job_id}{task} on {key.cluster}",
        name=_line(verdict.name or "no name"),
        level=findings[0].level,
        stage=verdict.stage,
        at=format_instant(verdict.at),
        findings="\n".join(f"  - {_line(finding.text)}" for finding in findings),
        advice="\n".join(advice),
    )
    return text.rstrip()


def _line(text: str) -> str:
    """Untrusted text on one line."""
    return printable(text[:500])
