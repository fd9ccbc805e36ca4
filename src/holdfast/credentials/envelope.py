"""Encrypts a key for one job under a key encryption key, and decrypts it again for that job alone.

Every envelope has a data key of its own, derived from the secret and a random number, and carries a commitment to it, so
that no envelope opens under two secrets. The job that an envelope is bound to is given by whoever opens it, never by the
envelope: the digest in it only shows early that it belongs to another job.
"""

import hashlib
import hmac
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from holdfast.secret import Secret

MIN_SECRET_CHARS = 16
_MAGIC = b"hfe1"
_INFO = b"holdfast-envelope-v1\0"
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}
_HEAD = struct.Struct(">4sB")
_BODY = struct.Struct(">Q32s32s12s32s")
_TAG_BYTES = 16


class SealFault(Exception):
    """An envelope could not be made or opened; the message does not reveal what is in it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The job that a key is for. Sealed for one, it opens for no other."""

    tenant: str
    project: str
    path: str
    job: int

    def digest(self) -> bytes:
        """Return a hash that is unique to this job."""
        parts = [part.encode() for part in (self.tenant, self.project, self.path, str(self.job))]
        return hashlib.sha256(b"".join(struct.pack(">I", len(part)) + part for part in parts)).digest()


@dataclass(frozen=True, slots=True)
class Envelope:
    """An encrypted key. `aad` is the digest of the job it is bound to, `expires_at` is in seconds since 1970."""

    kek_id: str
    dek_id: bytes
    commitment: bytes
    nonce: bytes
    aad: bytes
    expires_at: int
    ciphertext: bytes

    def header(self) -> bytes:
        """Return all but the ciphertext, as bytes."""
        name = self.kek_id.encode()
        body = _BODY.pack(self.expires_at, self.dek_id, self.commitment, self.nonce, self.aad)
        return _HEAD.pack(_MAGIC, len(name)) + name + body

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return self.header() + self.ciphertext

    @classmethod
    def from_bytes(cls, data: bytes) -> "Envelope":
        """Parse the stored form. SealFault when the bytes are no envelope."""
        try:
            magic, length = _HEAD.unpack_from(data)
            name = data[_HEAD.size : _HEAD.size + length].decode()
            values = _BODY.unpack_from(data, _HEAD.size + length)
        except (struct.error, UnicodeDecodeError):
            raise SealFault("not an envelope") from None
        ciphertext = data[_HEAD.size + length + _BODY.size :]
        if magic != _MAGIC or len(ciphertext) < _TAG_BYTES:
            raise SealFault("not an envelope")
        expires_at, dek_id, commitment, nonce, aad = values
        return cls(name, dek_id, commitment, nonce, aad, expires_at, ciphertext)


class KeyEncryptionKeys:
    """The key encryption keys by id. The longest id encrypts, of equally long ones the largest; all decrypt."""

    def __init__(self, by_id: Mapping[str, Secret]) -> None:
        for name, secret in by_id.items():
            if not 1 <= len(name.encode()) <= 255:
                raise ValueError("the id of a key encryption secret is 1 to 255 bytes long")
            if len(secret.reveal()) < MIN_SECRET_CHARS:
                raise ValueError(f"the secret of {name!r} is shorter than {MIN_SECRET_CHARS} characters")
        self._by_id = dict(by_id)

    @classmethod
    def for_this_process(cls) -> "KeyEncryptionKeys":
        """Return a random key, which is lost when the process ends."""
        return cls({"process": Secret(secrets.token_hex(32))})

    @property
    def newest(self) -> str:
        """Return the id that encrypts."""
        return max(self._by_id, key=lambda name: (len(name), name))

    def seal(self, key: Secret, binding: Binding, expires_at: int) -> Envelope:
        """Encrypt a key for one job, until a time."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        kek_id, dek_id, nonce = self.newest, secrets.token_bytes(32), secrets.token_bytes(12)
        data_key, commitment = self._derive_data_key(kek_id, dek_id)
        unsealed = Envelope(kek_id, dek_id, commitment, nonce, binding.digest(), expires_at, b"")
        ciphertext = AESGCM(data_key).encrypt(nonce, key.reveal().encode(), unsealed.header())
        return Envelope(kek_id, dek_id, commitment, nonce, unsealed.aad, expires_at, ciphertext)

    def open(self, envelope: Envelope, binding: Binding, now: float) -> Secret:
        """Decrypt a key. SealFault when it belongs to another job, is expired, changed, or sealed under an unknown secret."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if now >= envelope.expires_at:
            raise SealFault("expired")
        if envelope.kek_id not in self._by_id:
            raise SealFault("sealed under a secret that is not known here")
        if not hmac.compare_digest(envelope.aad, binding.digest()):
            raise SealFault("sealed for something else")
        data_key, commitment = self._derive_data_key(envelope.kek_id, envelope.dek_id)
        if not hmac.compare_digest(commitment, envelope.commitment):
            raise SealFault("sealed under another secret of the same id")
        try:
            plaintext = AESGCM(data_key).decrypt(envelope.nonce, envelope.ciphertext, envelope.header())
        except InvalidTag:
            raise SealFault("changed since it was sealed") from None
        return Secret(plaintext.decode())

    def _derive_data_key(self, kek_id: str, dek_id: bytes) -> tuple[bytes, bytes]:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = _INFO + kek_id.encode()
        derived = HKDF(algorithm=SHA256(), length=64, salt=dek_id, info=info).derive(
            _stretch_secret(self._by_id[kek_id], kek_id)
        )
        return derived[:32], derived[32:]


@lru_cache(maxsize=64)
def _stretch_secret(secret: Secret, kek_id: str) -> bytes:
    """Return 32 bytes of a secret by scrypt: guessing must be expensive, since a secret may be a phrase of 16 characters."""
    return hashlib.scrypt(secret.reveal().encode(), salt=b"holdfast-kek\0" + kek_id.encode(), **_SCRYPT)
