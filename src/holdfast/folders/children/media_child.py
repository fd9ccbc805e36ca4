"""The child process that decodes an image, rotates it upright and scales it down."""

import io
from typing import Any, BinaryIO

from PIL import Image, ImageOps

from holdfast.folders.children.serve import ChildAnswer, ChildRefusal, serve

_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
_READABLE = (*_FORMATS, "BMP", "TIFF", "ICO", "AVIF")
_MAX_PNG_BYTES = 3_000_000
_UPRIGHT = 1
_ORIENTATION = 0x0112


def work(request: dict[str, Any], file: BinaryIO) -> ChildAnswer:
    """Return the image within `max_side`; `unchanged` when the file can be sent as it is."""
    Image.MAX_IMAGE_PIXELS = request["max_pixels"]
    Image.init()
    try:
        with Image.open(file, formats=[name for name in _READABLE if name in Image.OPEN]) as image:
            return _prepare_image(request, image)
    except (ChildRefusal, MemoryError):
        raise
    except Image.DecompressionBombError:
        raise ChildRefusal(f"it has more than {request['max_pixels']} pixels") from None
    except Exception as error:  # noqa: BLE001  any failure of the decoder on a hostile file is one refusal
        raise ChildRefusal(f"it is damaged or of an unknown format ({type(error).__name__})") from None


def _prepare_image(request: dict[str, Any], image: Image.Image) -> ChildAnswer:
    width, height = image.size
    if width * height > request["max_pixels"]:
        raise ChildRefusal(f"it has {width} x {height} pixels; the limit is {request['max_pixels']} in all")
    format_ = image.format or ""
    image.draft("RGB", (request["max_side"], request["max_side"]))
    image.load()
    fits = max(width, height) <= request["max_side"] and request["size"] <= request["max_unchanged_bytes"]
    if fits and format_ in _FORMATS and image.getexif().get(_ORIENTATION, _UPRIGHT) == _UPRIGHT:
        return {"unchanged": True, "mime_type": _FORMATS[format_], "note": ""}, b""
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((request["max_side"], request["max_side"]), Image.Resampling.LANCZOS)
    data, format_ = _encode_image(upright, format_)
    note = f"Scaled from {width} x {height} to {upright.width} x {upright.height} pixels."
    return {"mime_type": _FORMATS[format_], "note": note if fits is False else ""}, data


def _encode_image(image: Image.Image, format_: str) -> tuple[bytes, str]:
    """Encode as JPEG or WebP where the file was; anything else as PNG, or as WebP where PNG takes too many bytes."""
    out = io.BytesIO()
    if format_ == "JPEG":
        image.convert("RGB").save(out, "JPEG", quality=85)
    elif format_ == "WEBP":
        image.save(out, "WEBP", quality=85)
    else:
        format_ = "PNG"
        is_png_mode = image.mode in ("1", "L", "LA", "P", "RGB", "RGBA")
        (image if is_png_mode else image.convert("RGBA")).save(out, "PNG")
        if out.tell() > _MAX_PNG_BYTES:
            return _encode_image(image if is_png_mode else image.convert("RGBA"), "WEBP")
    return out.getvalue(), format_


if __name__ == "__main__":
    serve(work)
