"""Second factors of staff: an authenticator app (TOTP, RFC 6238), and ten recovery codes for when it is lost."""

import base64
import secrets
from typing import Final

import qrcode
import qrcode.image.svg
from django.contrib.auth.models import User
from django.utils.safestring import SafeString, mark_safe
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 6
NAME: Final = "authenticator"
RECOVERY_NAME: Final = "recovery"


def is_set_up(user: User) -> bool:
    return bool(TOTPDevice.objects.filter(user=user, confirmed=True).exists())


def device_of(user: User) -> TOTPDevice:
    return TOTPDevice.objects.get(user=user, confirmed=True, name=NAME)


def begin(user: User) -> TOTPDevice:
    """The secret that is being set up: the same until it is confirmed, so that a reload does not change it."""
    device, _ = TOTPDevice.objects.get_or_create(user=user, name=NAME, confirmed=False)
    return device


def confirm(user: User, code: str) -> list[str] | None:
    """Take the app into use when it shows the right code. Returns the recovery codes, or None."""
    device = begin(user)
    if not code.isdigit() or not device.verify_is_allowed()[0] or not device.verify_token(code):
        return None
    device.confirmed = True
    device.save(update_fields=["confirmed"])
    return new_recovery_codes(user)


def new_recovery_codes(user: User) -> list[str]:
    """Ten codes that work once each; earlier ones end."""
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name=RECOVERY_NAME)
    codes = [
        base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().rstrip("=").lower()
        for _ in range(RECOVERY_CODES)
    ]
    for code in codes:
        device.token_set.create(token=code)
    return codes


def reset(user: User) -> int:
    """Forget all second factors of a user, who then sets one up anew. Returns how many there were."""
    gone: int = TOTPDevice.objects.filter(user=user).delete()[0]
    static: int = StaticDevice.objects.filter(user=user).delete()[0]
    return gone + static


def secret(device: TOTPDevice) -> str:
    """The secret as people type it, in groups of four."""
    text = base64.b32encode(device.bin_key).decode().rstrip("=")
    return " ".join(text[i : i + 4] for i in range(0, len(text), 4))


def drawing(device: TOTPDevice) -> SafeString:
    """The secret as a QR code, an SVG element of ours."""
    image = qrcode.make(device.config_url, image_factory=qrcode.image.svg.SvgPathImage, box_size=8)
    text: str = image.to_string(encoding="unicode")
    return mark_safe(text)  # noqa: S308 (drawn here, from our own address)
