# SPDX-License-Identifier: Apache-2.0
"""A web server that keeps heads, with TLS if wanted, and the certificates for it.

It can be told to fail.
"""

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class HeadServer(ThreadingHTTPServer):
    """Keeps what was PUT. ``status`` other than 0 is what it replies to everything.

    A ``drip`` never ends.
    """

    daemon_threads = True

    def __init__(self, certificate: "Certificate | None" = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: dict[str, bytes] = {}
        self.status = 0
        self.authorization = ""
        self.drips = threading.Event()
        self.ended = threading.Event()
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.path, certificate.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self._scheme = "https"

    def url(self, path: str = "/study", host: str = "127.0.0.1") -> str:
        """An address of it."""
        return f"{self._scheme}://{host}:{self.server_port}{path}"

    def handle_error(self, *_: object) -> None:
        """A client that does not trust the certificate goes away."""


class _Handler(BaseHTTPRequestHandler):
    server: HeadServer

    def do_GET(self) -> None:
        self.server.authorization = self.headers.get("Authorization", "")
        found = self.server.content.get(self.path)
        self.send_response(self.server.status or (404 if found is None else 200))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        while self.server.drips.is_set() and not self.server.ended.wait(0.01):
            self.wfile.write(b" ")
        self.wfile.write(found or b"")

    def do_PUT(self) -> None:
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) < length:
            return  # who sent it is gone
        if not self.server.status:
            self.server.content[self.path] = content
        self.send_response(self.server.status or 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def serving(certificate: "Certificate | None" = None) -> Iterator[HeadServer]:
    """A running server."""
    server = HeadServer(certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of a server in a file, its key, and the file of the authority that signed
    it.
    """

    path: Path
    key: Path
    authority: Path


def certificate(folder: Path, *, name: str = "127.0.0.1", ended: bool = False) -> Certificate:
    """A certificate for a name or an address, by an authority of its own; made in a folder."""
    folder.mkdir()
    start = NOW - datetime.timedelta(days=4000)
    end = NOW - datetime.timedelta(days=1) if ended else NOW + datetime.timedelta(days=40000)
    owner, own = _signed(
        folder / "authority.pem", None, None, "an authority", (start, NOW + (end - start) * 2)
    )
    _signed(folder / "server.pem", owner, own, name, (start, end))
    return Certificate(folder / "server.pem", folder / "server.pem.key", folder / "authority.pem")


def _signed(
    path: Path,
    issuer: x509.Name | None,
    signing: ec.EllipticCurvePrivateKey | None,
    name: str,
    valid: tuple[datetime.datetime, datetime.datetime],
) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    """Writes a certificate and its key; one without an issuer is an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        made = made.add_extension(x509.SubjectAlternativeName([_named(name)]), critical=False)
    form = serialization.Encoding.PEM
    path.write_bytes(made.sign(signing or key, hashes.SHA256()).public_bytes(form))
    secret = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    Path(f"{path}.key").write_bytes(secret)
    return subject, key


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
