"""The example settings file explains every setting and changes none."""

import dataclasses
import re
import tomllib

from tocsin.core.settings import NAMED_SECTIONS, PLAIN_SECTIONS, Layer, resolve
from tocsin.core.settings_example import example_settings
from tocsin.core.sink_settings import SINK_KINDS, SinkSettings


def switched_on() -> dict[str, dict[str, object]]:
    """The example without the # before settings and sections."""
    return tomllib.loads(re.sub(r"^#(?=[\[a-z])", "", example_settings(), flags=re.MULTILINE))


def test_the_example_as_it_is_changes_nothing() -> None:
    settings, lines = resolve([Layer("example", tomllib.loads(example_settings()))])
    assert settings == resolve([])[0]
    assert {line.origin for line in lines} == {"default"}


def test_every_setting_is_in_the_example_at_its_default() -> None:
    settings, lines = resolve([Layer("example", switched_on())])
    assert {line.origin for line in lines} == {"example"}, "a setting is missing"
    assert {section: getattr(settings, section) for section in PLAIN_SECTIONS} == {
        section: cls() for section, cls in PLAIN_SECTIONS.items()
    }
    assert settings.sinks == {kind: cls(kind=kind) for kind, cls in SINK_KINDS.items()}
    for section, cls in NAMED_SECTIONS.items():
        if cls is not SinkSettings:
            assert list(getattr(settings, section).values()) == [cls()]


def test_every_setting_in_the_example_follows_its_description() -> None:
    lines = example_settings().splitlines()
    for cls in (*PLAIN_SECTIONS.values(), *NAMED_SECTIONS.values(), *SINK_KINDS.values()):
        for field in dataclasses.fields(cls):
            at = [number for number, line in enumerate(lines) if line.startswith(f"#{field.name} = ")]
            assert at or cls is SinkSettings
            for number in at:
                assert lines[number - 1].startswith("# "), lines[number]
    assert max(map(len, lines)) <= 120
