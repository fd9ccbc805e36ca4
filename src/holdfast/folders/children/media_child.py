"""The child that decodes an image, turns it upright and scales it down."""

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
    try:
        with Image.open(file, formats=[name for name in _READABLE if name in _known()]) as image:
            return _prepared(request, image)
    except (ChildRefusal, MemoryError):
        raise
    except Image.DecompressionBombError:
        raise ChildRefusal(f"it has more than {request['max_pixels']} pixels") from None
    except Exception as error:  # noqa: BLE001  whatever a hostile file does to its reader is said as one error
        raise ChildRefusal(f"it is damaged or of an unknown kind ({type(error).__name__})") from None


def _known() -> set[str]:
    Image.init()
    return set(Image.OPEN)


def _prepared(request: dict[str, Any], image: Image.Image) -> ChildAnswer:
    width, height = image.size
    if width * height > request["max_pixels"]:
        raise ChildRefusal(f"it has {width} x {height} pixels; the limit is {request['max_pixels']} in all")
    form = image.format or ""
    image.draft("RGB", (request["max_side"], request["max_side"]))
    image.load()
    fits = max(width, height) <= request["max_side"] and request["size"] <= request["max_unchanged_bytes"]
    if fits and form in _FORMATS and image.getexif().get(_ORIENTATION, _UPRIGHT) == _UPRIGHT:
        return {"unchanged": True, "mime_type": _FORMATS[form], "note": ""}, b""
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((request["max_side"], request["max_side"]), Image.Resampling.LANCZOS)
    data, form = _encoded(upright, form)
    note = f"Scaled from {width} x {height} to {upright.width} x {upright.height} pixels."
    return {"mime_type": _FORMATS[form], "note": note if fits is False else ""}, data


def _encoded(image: Image.Image, form: str) -> tuple[bytes, str]:
    """Keep JPEG and WebP as they are; all else becomes PNG, which loses nothing, unless that is too many bytes."""
    out = io.BytesIO()
    if form == "JPEG":
        image.convert("RGB").save(out, "JPEG", quality=85)
    elif form == "WEBP":
        image.save(out, "WEBP", quality=85)
    else:
        form = "PNG"
        keeps = image.mode in ("1", "L", "LA", "P", "RGB", "RGBA")
        (image if keeps else image.convert("RGBA")).save(out, "PNG")
        if out.tell() > _MAX_PNG_BYTES:
            return _encoded(image if keeps else image.convert("RGBA"), "WEBP")
    return out.getvalue(), form


if __name__ == "__main__":
    serve(work)
