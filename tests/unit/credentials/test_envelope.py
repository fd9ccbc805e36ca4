"""Envelopes: they open for the job they were sealed for, unchanged and in time, and for nothing else."""

import random
from dataclasses import replace

import pytest

from holdfast.config.settings import SecuritySettings
from holdfast.credentials.envelope import Binding, Envelope, KeyEncryptionKeys, SealFault
from holdfast.secret import Secret

KEY = "sk-the-callers-own-key"
JOB = Binding("tenant-a", "p", "/notes/a.md", 7)
NOW = 1_900_000_000
KEKS = KeyEncryptionKeys({"a1": Secret("first secret of ours"), "a2": Secret("second secret of ours")})


def sealed(keks: KeyEncryptionKeys = KEKS, job: Binding = JOB) -> Envelope:
    return keks.seal(Secret(KEY), job, NOW + 300)


def opened(data: bytes, keks: KeyEncryptionKeys = KEKS, job: Binding = JOB, now: int = NOW) -> str:
    return keks.open(Envelope.from_bytes(data), job, now).reveal()


@pytest.mark.req("SE-40.a")
def test_an_envelope_opens_for_its_job_and_holds_no_plain_word_of_it() -> None:
    envelope = sealed()
    data = envelope.to_bytes()
    assert opened(data) == KEY
    assert (envelope.kek_id, envelope.expires_at, len(envelope.dek_id)) == ("a2", NOW + 300, 32)
    for plain in (KEY, JOB.tenant, JOB.path):
        assert plain.encode() not in data
    assert sealed().to_bytes() != data, "a data key of its own each time"


@pytest.mark.req("SE-40.b")
def test_of_every_bit_every_cut_and_a_thousand_random_changes_none_opens() -> None:
    data = sealed().to_bytes()
    choose = random.Random(7)
    forms = [data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] for at in range(len(data)) for bit in range(8)]
    forms += [data[:end] for end in range(len(data))]
    forms += [data + bytes([byte]) for byte in range(256)]
    for _ in range(1000):
        changed = bytearray(data)
        for _ in range(choose.randrange(1, 9)):
            changed[choose.randrange(len(data))] = choose.randrange(256)
        forms.append(bytes(changed))
    tampered = [form for form in forms if form != data]
    assert len(tampered) > 2000
    for form in tampered:
        with pytest.raises(SealFault):
            opened(form)


@pytest.mark.req("SE-40.b")
@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, tenant="tenant-b"),
        replace(JOB, project="q"),
        replace(JOB, path="/notes/b.md"),
        replace(JOB, job=8),
        replace(JOB, project="p/notes", path="/a.md"),
        replace(JOB, tenant="tenant-ap", project=""),
    ],
)
def test_it_opens_for_no_other_tenant_project_path_or_job(other: Binding) -> None:
    envelope = sealed()
    with pytest.raises(SealFault):
        KEKS.open(envelope, other, NOW)
    forged = replace(envelope, aad=other.digest())
    with pytest.raises(SealFault):
        KEKS.open(forged, other, NOW)


@pytest.mark.req("SE-40.c")
def test_its_time_is_checked_when_it_is_opened_and_cannot_be_moved() -> None:
    data = sealed().to_bytes()
    assert opened(data, now=NOW + 299) == KEY
    with pytest.raises(SealFault, match="expired"):
        opened(data, now=NOW + 300)
    with pytest.raises(SealFault):
        KEKS.open(replace(sealed(), expires_at=NOW + 9999), JOB, NOW + 400)


@pytest.mark.req("SE-41")
def test_the_longest_id_encrypts_and_the_largest_among_equals_and_all_decrypt() -> None:
    names = ["z", "a10", "a9", "b10"]
    secrets = {name: Secret(f"a secret for {name} alone") for name in names}
    assert KeyEncryptionKeys(secrets).newest == "b10"
    for name in names:
        older = KeyEncryptionKeys({name: secrets[name]})
        assert opened(sealed(older).to_bytes(), KeyEncryptionKeys(secrets)) == KEY
    gone = KeyEncryptionKeys({name: secrets[name] for name in names if name != "b10"})
    with pytest.raises(SealFault):
        opened(sealed(KeyEncryptionKeys(secrets)).to_bytes(), gone)


@pytest.mark.req("SE-41")
def test_a_short_secret_is_refused_by_the_settings_and_by_itself() -> None:
    with pytest.raises(ValueError, match="shorter than 16"):
        SecuritySettings.model_validate({"encryption_keks": {"a": "fifteen letters"}})
    with pytest.raises(ValueError, match="shorter than 16"):
        KeyEncryptionKeys({"a": Secret("fifteen letters")})


def test_another_secret_under_the_same_id_does_not_open() -> None:
    with pytest.raises(SealFault, match="another secret"):
        opened(sealed().to_bytes(), KeyEncryptionKeys({"a2": Secret("not the same secret")}))
