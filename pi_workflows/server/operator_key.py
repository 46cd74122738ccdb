"""`operator.json`: what proves the operator's passphrase, and never the passphrase itself.

The decision "Human authority". Whoever can write this file can replace it; the key's random ID,
which stands beside every decision that it proved, then shows that.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    AuthorityDenied,
    LimitExceeded,
    PayloadInvalid,
    Refused,
    TransitionDenied,
)
from pi_workflows.base.limits import (
    OPERATOR_FILE_BYTES_MAX,
    PASSPHRASE_CHARS_MAX,
    PASSPHRASE_CHARS_MIN,
    SCRYPT_BLOCK,
    SCRYPT_BYTES_MAX,
    SCRYPT_COST,
)
from pi_workflows.definition.document import Document

_MODE: Final = 0o600
_OTHERS: Final = 0o077
_SALT_BYTES: Final = 16
_ID_BYTES: Final = 8
_VERIFIER_BYTES: Final = 32
_Hex = Annotated[str, Field(pattern="^[0-9a-f]+$")]


class OperatorKey(Document):
    """The stored form of a passphrase.

    Attributes:
        schema_id: The fixed schema name; `schema` in the file.
        key_id: Random; stands beside what the passphrase proved.
        cost: scrypt's N.
        block: scrypt's r.
        salt: Random bytes, hex.
        verifier: scrypt of the passphrase, hex.
    """

    schema_id: Literal["pi-workflows.operator.v1"] = Field(
        default="pi-workflows.operator.v1",
        validation_alias="schema",
        serialization_alias="schema",
    )
    key_id: _Hex
    cost: Annotated[int, Field(gt=1, le=SCRYPT_COST)]
    block: Annotated[int, Field(gt=0, le=SCRYPT_BLOCK)]
    salt: _Hex
    verifier: _Hex

    @classmethod
    def new(cls, passphrase: str) -> OperatorKey:
        """Return a new key of a passphrase.

        Raises LimitExceeded (`passphraseLength`) when it is too short or too long.
        """
        if not PASSPHRASE_CHARS_MIN <= len(passphrase) <= PASSPHRASE_CHARS_MAX:
            raise LimitExceeded(
                f"A passphrase has {PASSPHRASE_CHARS_MIN} to {PASSPHRASE_CHARS_MAX:,} characters.",
                code="passphraseLength",
            )
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(
            key_id=secrets.token_hex(_ID_BYTES),
            cost=SCRYPT_COST,
            block=SCRYPT_BLOCK,
            salt=salt.hex(),
            verifier=_scrypt(passphrase, salt, SCRYPT_COST, SCRYPT_BLOCK).hex(),
        )

    def verifies(self, passphrase: str) -> bool:
        """Whether this is the passphrase. It takes as long for a wrong one."""
        found = _scrypt(passphrase, bytes.fromhex(self.salt), self.cost, self.block)
        return hmac.compare_digest(found, bytes.fromhex(self.verifier))


def read_key(file: Path) -> OperatorKey | None:
    """Read the operator's key.

    Args:
        file: `operator.json`.

    Returns:
        The key; None when there is no such file.

    Raises:
        AuthorityDenied: `operatorUnsafe`: somebody else may read or write it, it is a link, or it
            is no key.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unsafe(file, error.strerror or "it cannot be read") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise _unsafe(file, "it is no file of its own")
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            raise _unsafe(file, "others may use it: its mode must be 0600")
        content = os.read(descriptor, OPERATOR_FILE_BYTES_MAX + 1)
    finally:
        os.close(descriptor)
    if len(content) > OPERATOR_FILE_BYTES_MAX:
        raise _unsafe(file, "it is too large")
    try:
        canonical.decode(content.rstrip(b"\n"))
        return OperatorKey.model_validate_json(content)
    except (PayloadInvalid, ValidationError):
        raise _unsafe(file, "it holds no key") from None


def require_key(file: Path) -> OperatorKey:
    """Return the operator's key. Raises AuthorityDenied (`operatorMissing`, `operatorUnsafe`)."""
    key = read_key(file)
    if key is None:
        raise missing()
    return key


def require_none(file: Path) -> None:
    """Refuse where there is a key. Raises TransitionDenied (`operatorExists`)."""
    if read_key(file) is not None:
        raise _exists(file)


def create_key(file: Path, passphrase: str) -> OperatorKey:
    """Store the key of a passphrase where there is none yet.

    Args:
        file: `operator.json`, in a directory of our own.
        passphrase: What will prove the operator.

    Returns:
        The key.

    Raises:
        TransitionDenied: `operatorExists`.
        LimitExceeded: `passphraseLength`.
        Refused: `operatorUnwritable`: the disk refuses it.
    """
    key = OperatorKey.new(passphrase)
    _store(file, key, replaces=False)
    return key


def change_key(file: Path, old: str, new: str) -> OperatorKey:
    """Replace the key by one of another passphrase, under another ID.

    Args:
        file: `operator.json`.
        old: The passphrase that holds now.
        new: The one that will.

    Raises:
        AuthorityDenied: `operatorMissing`, `operatorUnsafe`, or `passphraseWrong`.
        LimitExceeded: `passphraseLength`.
        Refused: `operatorUnwritable`: the disk refuses it.
    """
    if not require_key(file).verifies(old):
        raise wrong()
    key = OperatorKey.new(new)
    _store(file, key, replaces=True)
    return key


def missing() -> AuthorityDenied:
    """Return the refusal where nobody ever set a passphrase."""
    return AuthorityDenied(
        "There is no operator: nobody has set a passphrase.",
        code="operatorMissing",
        hint="Set it at a terminal: pi-workflows operator init",
    )


def wrong() -> AuthorityDenied:
    """Return the refusal of a wrong passphrase."""
    return AuthorityDenied("That is not the operator's passphrase.", code="passphraseWrong")


def _scrypt(passphrase: str, salt: bytes, cost: int, block: int) -> bytes:
    """Derive what is compared."""
    return hashlib.scrypt(
        passphrase.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost,
        r=block,
        p=1,
        maxmem=SCRYPT_BYTES_MAX,
        dklen=_VERIFIER_BYTES,
    )


def _store(file: Path, key: OperatorKey, *, replaces: bool) -> None:
    """Put a key in its place, whole and on the disk, or not at all."""
    document: Json = key.model_dump(mode="json", by_alias=True)
    scratch = file.with_name(f"{file.name}.{secrets.token_hex(_ID_BYTES)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(scratch, flags, _MODE)
        try:
            os.write(descriptor, canonical.encode(document) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if replaces:
            scratch.replace(file)
        else:
            file.hardlink_to(scratch)
    except FileExistsError:
        raise _exists(file) from None
    except OSError as error:
        raise Refused(
            f"{file} cannot be written: {error.strerror}.", code="operatorUnwritable"
        ) from None
    finally:
        with suppress(FileNotFoundError):
            scratch.unlink()
    _sync(file.parent)


def _sync(directory: Path) -> None:
    """Make the directory's new name durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exists(file: Path) -> TransitionDenied:
    """Return the refusal of a second key."""
    return TransitionDenied(
        f"There is an operator already: {file}",
        code="operatorExists",
        hint="Change the passphrase with: pi-workflows operator init --change",
    )


def _unsafe(file: Path, why: str) -> AuthorityDenied:
    """Return the refusal of a file that proves nothing."""
    return AuthorityDenied(
        f"{file} is not used: {why}.",
        code="operatorUnsafe",
        hint="Look who changed it before you make a new one.",
    )
