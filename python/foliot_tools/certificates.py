"""Certificates for tests, made by openssl."""

import pathlib
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Signs certificates; its own is the file `certificate`."""

    def __init__(self, folder, name="authority"):
        self._folder = pathlib.Path(folder)
        self.certificate, self._key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj",
                f"/CN={name}", "-out", self.certificate, "-keyout", self._key)

    def issue(self, name, days=2):
        """(certificate, key) files; with -1 days the certificate has expired."""
        request, certificate, key = (self._folder / f"{name}.{kind}" for kind in ("csr", "pem", "key"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
                "-days", days, "-out", certificate)
        return certificate, key


def link_flags(authority, name):
    """Flags of a part whose links speak TLS."""
    certificate, key = authority.issue(name)
    return {"tls_link_certificate": certificate, "tls_link_key": key, "tls_link_ca": authority.certificate}
