# SPDX-License-Identifier: Apache-2.0
"""``server.toml``: what it takes, and what it refuses to serve."""

from pathlib import Path

import pytest

from sfumato.errors import InvalidConfig
from sfumato.service.settings import Settings, SignIn, read_settings


def written(folder: Path, text: str) -> Path:
    path = folder / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_but_the_datasets_is_usual(tmp_path: Path) -> None:
    path = written(tmp_path, 'datasets = ["clinic/sfumato.toml"]')
    expected = Settings((tmp_path / "clinic/sfumato.toml",), tmp_path / "service.db")
    assert read_settings(path) == expected
    assert expected.address == "http://127.0.0.1:8440"


def test_the_file_of_a_dataset_will_do(tmp_path: Path) -> None:
    path = tmp_path / "sfumato.toml"
    path.write_text('dataset = "clinic"', encoding="utf-8")
    assert read_settings(path) == Settings((path,), tmp_path / "service.db")


def test_every_key_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'datasets = ["a.toml", "b.toml"]\nlisten = "[::]:80"\nstate = "s.db"\nlanes = 3\n'
        'quantum = "2s"\ndrain = "500ms"\ntls = {certificate = "c.pem", key = "k.pem"}\n'
        'behind_proxy = ["10.0.0.5"]\nlimits = {waiting = 2, previews_per_minute = 7}',
    )
    settings = read_settings(path)
    assert settings == Settings(
        (tmp_path / "a.toml", tmp_path / "b.toml"),
        tmp_path / "s.db",
        host="::",
        port=80,
        lanes=3,
        quantum=2.0,
        drain=0.5,
        tls=(tmp_path / "c.pem", tmp_path / "k.pem"),
        behind_proxy=("10.0.0.5",),
        waiting=2,
        previews_per_minute=7,
    )
    assert settings.address == "https://[::]:80"


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("datasets = []", "at least one"),
        ('quantum = "100"', "duration"),
        ('listen = "8440"', "host and a port"),
        ('listen = "127.0.0.1:99999"', "host and a port"),
        ("lanes = 0", "1 to 64"),
        ('behind_proxy = ["proxy"]', "IP addresses"),
        ("limits = {waiting = 0}", "from 1"),
        ("limits = {wating = 1}", "waiting"),
        ('tls = {certificate = "c.pem"}', ""),
        ("sign_inn = {}", "datasets"),
        ("sign_in = {}", "header"),
        ('sign_in = {header = "Authorization", secret_file = "s"}', "of its own"),
        ('sign_in = {header = "X_Remote_User", secret_file = "s"}', "of its own"),
        ('sign_in = {header = "X-Forwarded-For", secret_file = "s"}', "of its own"),
        ('sign_in = {header = "x-sfumato-secret", secret_file = "s"}', "of its own"),
        ('sign_in = {header = "X-Remote-User", secret_file = "none"}', "cannot be read"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, line: str, allowed: str) -> None:
    text = line if line.startswith("datasets") else f'datasets = ["a.toml"]\n{line}'
    with pytest.raises(InvalidConfig) as refusal:
        read_settings(written(tmp_path, text))
    assert allowed in str(refusal.value)


PROXY = (
    'datasets = ["a.toml"]\nsign_in = {header = "X-Remote-User", secret_file = "proxy.secret"}\n'
)


def test_a_sign_in_needs_a_proxy_and_a_long_secret(tmp_path: Path) -> None:
    secret = tmp_path / "proxy.secret"
    secret.write_text("0123456789abcdef" * 2 + "\n", encoding="utf-8")
    behind = f'{PROXY}behind_proxy = ["10.0.0.5"]'
    sign_in = read_settings(written(tmp_path, behind)).sign_in
    assert sign_in == SignIn("X-Remote-User", b"0123456789abcdef" * 2)
    assert "0123" not in repr(sign_in)
    with pytest.raises(InvalidConfig, match="without behind_proxy"):
        read_settings(written(tmp_path, PROXY))
    for short in ("", "0123456789abcdef" * 2 + " 0", "0123456789abcdef" * 2 + "\n0", "a" * 31):
        secret.write_text(short, encoding="utf-8")
        with pytest.raises(InvalidConfig, match="has no secret"):
            read_settings(written(tmp_path, behind))


@pytest.mark.parametrize("listen", ["0.0.0.0:8440", "clinic.example:8440", "[2001:db8::1]:8440"])
def test_without_tls_or_a_proxy_only_loopback_is_served(tmp_path: Path, listen: str) -> None:
    text = f'datasets = ["a.toml"]\nlisten = "{listen}"\n'
    with pytest.raises(InvalidConfig, match="without TLS"):
        read_settings(written(tmp_path, text))
    for allowed in ('behind_proxy = ["10.0.0.5"]', 'tls = {certificate = "c", key = "k"}'):
        read_settings(written(tmp_path, text + allowed))
    for loopback in ("localhost:1", "[::1]:1", "127.9.9.9:1"):
        read_settings(written(tmp_path, f'datasets = ["a.toml"]\nlisten = "{loopback}"'))
