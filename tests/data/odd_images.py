#!/usr/bin/python3
"""Writes odd images into a folder, each with its pixels as PIL decodes them (Debian's python3-pil and python3-numpy).

    tests/data/odd_images.py FOLDER

FOLDER/list.tsv has a line for each image and way of treating EXIF orientation:

    NAME  exif|ignore  read     ROWS  COLUMNS  TOLERANCE     (NAME.exif.rgb, NAME.exif.l: rows of RGB and of grey bytes)
    NAME  exif|ignore  refused  REASON                       (a part of dtrain's message)

If PIL does not follow the format, it decodes a stand-in instead: the image in 8 bits with alpha, which PIL reads
correctly.  This concerns 16 bits, which are round(v / 257) while PIL takes the upper byte or clips above 255, and the
transparent value (tRNS) of 16 bits and of grey with fewer than 8 bits, which is compared before values become 8 bits.
"""
import base64
import io
import struct
import sys
import warnings
import zlib
from pathlib import Path

import numpy
from PIL import Image, ImageCms, ImageOps

GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
PNG_START = b"\x89PNG\r\n\x1a\n"
rng = numpy.random.default_rng(1)


# PNG files are written by hand, because PIL cannot write most of these.


def number(value):
    return struct.pack(">I", value)


def chunk(name, data=b"", crc=None):
    return number(len(data)) + name + data + number(zlib.crc32(name + data) if crc is None else crc)


def header(rows, columns, depth, colour, interlaced=False):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, colour, 0, 0, int(interlaced)))


def packed_rows(samples, depth):
    """Returns the rows of a [rows, columns, channels] array, each after the number of its filter."""
    rows = b""
    for row in samples.reshape(len(samples), -1):
        if depth == 16:
            packed = row.astype(">u2").tobytes()
        else:
            bits = (row[:, None] >> numpy.arange(depth - 1, -1, -1)) & 1
            packed = numpy.packbits(bits.astype(numpy.uint8).reshape(-1)).tobytes()
        rows += b"\0" + packed
    return rows


def idat(samples, depth, interlaced=False):
    if not interlaced:
        return packed_rows(samples, depth)
    passes = (samples[y::dy, x::dx] for x, y, dx, dy in ADAM7)
    return b"".join(packed_rows(one, depth) for one in passes if one.size)


def png(samples, depth, colour, interlaced=False, before=b"", after=b""):
    """Returns a PNG file with the chunks `before` and `after` the pixels."""
    pixels = chunk(b"IDAT", zlib.compress(idat(samples, depth, interlaced)))
    return PNG_START + header(*samples.shape[:2], depth, colour, interlaced) + before + pixels + after + chunk(b"IEND")


def noise(depth, colour, rows=13, columns=21):
    return rng.integers(0, 2**depth, (rows, columns, CHANNELS[colour]))


def palette(depth):
    return chunk(b"PLTE", rng.integers(0, 256, 3 * 2**depth).astype(numpy.uint8).tobytes())


def in_8_bits(samples, depth):
    return (samples + 128) // 257 if depth == 16 else samples * 255 // (2**depth - 1)


def stand_in(samples, depth, colour, transparent=None):
    """Returns the same image in 8 bits, with an alpha channel if one value is transparent."""
    values = in_8_bits(samples, depth)
    if transparent is None:
        return png(values, 8, colour)
    opaque = 255 * (samples != transparent).any(axis=2, keepdims=True)
    return png(numpy.concatenate([values, opaque], axis=2), 8, colour + 4)


def png_kinds():
    for colour, depths in DEPTHS.items():
        for depth in depths:
            samples = noise(depth, colour)
            colours = palette(depth) if colour == PALETTE else b""
            same = stand_in(samples, depth, colour) if depth == 16 else None
            yield f"png_colour{colour}_depth{depth}.png", png(samples, depth, colour, False, colours), same
            yield f"png_colour{colour}_depth{depth}_interlaced.png", png(samples, depth, colour, True, colours), same


def png_transparent():
    for depth in (1, 2, 4, 8, 16):
        samples = noise(depth, GREY)
        value = int(samples[3, 5, 0])
        trns = chunk(b"tRNS", struct.pack(">H", value))
        same = stand_in(samples, depth, GREY, value)
        yield f"png_grey{depth}_trns.png", png(samples, depth, GREY, depth == 4, trns), same
    for depth in (8, 16):
        samples = noise(depth, RGB)
        if depth == 16:  # differs from the transparent value only in the lower byte
            samples[7, 7] = samples[3, 5] ^ 1
        trns = chunk(b"tRNS", struct.pack(">HHH", *samples[3, 5]))
        same = stand_in(samples, depth, RGB, samples[3, 5])
        yield f"png_rgb{depth}_trns.png", png(samples, depth, RGB, depth == 8, trns), same
    for depth in (1, 2, 4, 8):
        alpha = rng.integers(0, 256, 2**depth - (depth > 1)).astype(numpy.uint8).tobytes()
        colours = palette(depth) + chunk(b"tRNS", alpha)
        yield f"png_palette{depth}_trns.png", png(noise(depth, PALETTE), depth, PALETTE, depth == 2, colours)
    one = palette(4) + chunk(b"tRNS", b"\xff\xff\0\xff")
    yield "png_palette_one_transparent.png", png(noise(4, PALETTE), 4, PALETTE, False, one)
    value, alpha = numpy.meshgrid(numpy.arange(256), numpy.arange(256))
    grey = numpy.stack([value, alpha], axis=2)
    yield "png_every_value_and_alpha.png", png(grey, 8, GREY_ALPHA)
    colours = numpy.stack([value, 255 - value, value ^ alpha, alpha], axis=2)
    yield "png_colours_and_every_alpha.png", png(colours, 8, RGB_ALPHA)
    many = numpy.arange(65536).reshape(256, 256, 1)
    yield "png_every_16_bit_value.png", png(many, 16, GREY), stand_in(many, 16, GREY)
    red = chunk(b"bKGD", struct.pack(">HHH", 255, 0, 0))
    yield "png_background_is_red.png", png(noise(8, RGB_ALPHA), 8, RGB_ALPHA, False, red)


def profile():
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()


def png_colour_spaces():
    primaries = struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)
    notes = {
        "gamma_1": chunk(b"gAMA", number(100000)),
        "gamma_2.2": chunk(b"gAMA", number(45455)),
        "srgb": chunk(b"sRGB", b"\0") + chunk(b"gAMA", number(45455)),
        "chrm": chunk(b"cHRM", primaries) + chunk(b"gAMA", number(50000)),
        "profile": chunk(b"iCCP", b"strange\0\0" + zlib.compress(profile())),
        "significant_bits": chunk(b"sBIT", b"\5"),
    }
    for name, chunks in notes.items():
        samples = noise(8, GREY)
        yield f"png_grey_{name}.png", png(samples, 8, GREY, False, chunks)
    for name in ("gamma_1", "srgb", "chrm", "profile"):
        for colour, kind in ((RGB, "rgb"), (RGB_ALPHA, "rgba")):
            yield f"png_{kind}_{name}.png", png(noise(8, colour), 8, colour, False, notes[name])
    deep = noise(16, RGB_ALPHA)
    yield "png_rgba16_gamma_1.png", png(deep, 16, RGB_ALPHA, False, notes["gamma_1"]), stand_in(deep, 16, RGB_ALPHA)
    noted = notes["gamma_1"] + palette(8)
    yield "png_palette_gamma_1.png", png(noise(8, PALETTE), 8, PALETTE, False, noted)


def png_shapes():
    for rows, columns in ((1, 1), (1, 300), (300, 1), (2, 3), (3, 2)):
        samples = noise(8, RGB, rows, columns)
        yield f"png_{rows}x{columns}.png", png(samples, 8, RGB)
        yield f"png_{rows}x{columns}_interlaced.png", png(samples, 8, RGB, True)
    yield "png_named.jpg", png(noise(8, RGB), 8, RGB)
    yield "png_and_more.png", png(noise(8, RGB), 8, RGB) + b"more"
    yield "png_without_its_end.png", png(noise(8, RGB), 8, RGB)[:-12]
    first, *others = [photo() for _ in range(3)]
    frames = {"save_all": True, "append_images": others}
    yield "png_animated.png", saved(first, "PNG", **frames)
    yield "png_animated_with_another_first.png", saved(first, "PNG", default_image=True, **frames)


# PIL writes these JPEG files.


# libjpeg-turbo wrote these files of 20 x 12 pixels, because PIL cannot write them.
RARE_JPEGS = {
    "restart_markers": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxO"
        "UlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P"
        "T09PT09PT0//wAARCAAMABQDASIAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAUGA//EACIQAAEDAgYDAAAAAAAAAAAAAAEA"
        "AgMEEQUSITFBgSJR8f/EABYBAQEBAAAAAAAAAAAAAAAAAAUDBP/EABsRAAIDAQEBAAAAAAAAAAAAAAECAAQRBSHh/90ABAAB/9oA"
        "DAMBAAIRAxEAPwCWpMGBF3N0TWDB26WiHe56T+mp4hG3x4JTKnp4zmuPSmbKqgGe/NmSh0n2f//QxGEAtGWMWtwPqFZspYnN1bsS"
        "EI57JLRtek+T/9k="
    ),
    "arithmetic": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxO"
        "UlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P"
        "T09PT09PT0//yQARCAAMABQDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/AHSa4eIK24/5UixVChReOis+Vc4/"
        "ac47aFxhW+2VZoykuRgEzRWmFkrszw6B+kU4nP0eiv5Gg2qfcuL6bM2DPTV3AI4PqNBw6L7+NCLGQyNRVXOA/9k="
    ),
    "one_chroma_for_8_pixels": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxO"
        "UlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P"
        "T09PT09PT0//wAARCAAMABQDAUIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAABQAEBv/EACIQAAEDAgYDAAAAAAAAAAAAAAEA"
        "AgMEEQUSITFBgSJR8f/EABQBAQAAAAAAAAAAAAAAAAAAAAT/xAAcEQABAwUAAAAAAAAAAAAAAAABAAIFAwQTITH/2gAMAwEAAhED"
        "EQA/AOWpMGBF3N0SsGDt0tEO9z0twwgFoyxi1uB9UkaaniEbfHglJU9PGc1x6SDKWJzdW7EhSJXudAAcSIqSfiX/2Q=="
    ),
}


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def waves(rows, columns):
    y, x, c = numpy.mgrid[0:rows, 0:columns, 0:3]
    values = 128 + 60 * numpy.sin(0.2 * y + c) + 60 * numpy.cos(0.11 * x * (c + 1))
    return Image.fromarray(values.clip(0, 255).astype(numpy.uint8))


def photo(rows=13, columns=21):
    return Image.fromarray(noise(8, RGB, rows, columns).astype(numpy.uint8))


def jpeg(image, **options):
    return saved(image, "JPEG", **options)


def with_segment(file, marker, data):
    return file[:2] + b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data + file[2:]


def without_jfif(file):
    assert file[2:4] == b"\xff\xe0"
    return file[:2] + file[4 + struct.unpack(">H", file[4:6])[0]:]


def jpegs():
    colours = photo(37, 53)  # its chroma leaves the range of RGB
    for quality in (1, 50, 100):
        for shared in range(3):  # subsampling: 1, 2 or 4 pixels share a chroma value
            name = f"jpeg_noise_quality{quality}_subsampling{shared}.jpg"
            yield name, jpeg(colours, quality=quality, subsampling=shared)
    yield "jpeg_smooth.JPEG", jpeg(waves(40, 56))
    yield "jpeg_grey.jpg", jpeg(waves(40, 56).convert("L"))
    yield "jpeg_progressive.jpg", jpeg(colours, progressive=True)
    yield "jpeg_grey_progressive.jpg", jpeg(colours.convert("L"), progressive=True)
    yield "jpeg_1x1.jpg", jpeg(photo(1, 1))
    yield "jpeg_tall.jpg", jpeg(waves(700, 3))
    yield "jpeg_with_profile.jpg", jpeg(colours, icc_profile=profile())
    plain = jpeg(colours, subsampling=0, quality=90)
    unmarked = without_jfif(plain)
    yield "jpeg_adobe_rgb.jpg", with_segment(unmarked, 0xEE, b"Adobe\0\x64\0\0\0\0\0")
    yield "jpeg_adobe_ycc.jpg", with_segment(unmarked, 0xEE, b"Adobe\0\x64\0\0\0\0\1")
    yield "jpeg_without_marks.jpg", unmarked
    yield "jpeg_with_comment.jpg", with_segment(plain, 0xFE, b"\xff\xd8\xff\xda no image")
    yield "jpeg_named.png", plain
    yield "jpeg_and_more.jpg", plain + b"more"
    for name, file in RARE_JPEGS.items():
        yield f"jpeg_{name}.jpg", base64.b64decode(file)
    yield "jpeg_two_in_one.jpg", saved(colours, "MPO", save_all=True, append_images=[photo()])


# These images have EXIF blocks.


def tiff(orientation, order="<", kind="H", count=1, entries=()):
    """Returns an EXIF block with `entries` before the orientation, each (tag, type, count, four bytes)."""
    value = struct.pack(order + kind, orientation).ljust(4, b"\0")
    own = struct.pack(order + "HHI", 0x0112, {"H": 3, "I": 4}[kind], count) + value
    others = b"".join(struct.pack(order + "HHI", *entry[:3]) + entry[3] for entry in entries)
    start = b"II*\0" if order == "<" else b"MM\0*"
    return start + struct.pack(order + "IH", 8, 1 + len(entries)) + others + own + bytes(4)


def with_exif(file, block):
    if file.startswith(PNG_START):
        return file[:33] + chunk(b"eXIf", block) + file[33:]
    return with_segment(file, 0xE1, b"Exif\0\0" + block)


def exif_images():
    file = jpeg(photo(19, 26), quality=90)
    for value in range(1, 9):
        yield f"exif_little_endian_{value}.jpg", with_exif(file, tiff(value))
        yield f"exif_big_endian_{value}.jpg", with_exif(file, tiff(value, ">"))
        yield f"exif_{value}.png", with_exif(png(noise(8, RGB), 8, RGB), tiff(value, ">" if value % 2 else "<"))
    yield "exif_behind_the_pixels.png", png(noise(8, RGB), 8, RGB, after=chunk(b"eXIf", tiff(6)))
    yield "exif_of_alpha.png", with_exif(png(noise(8, RGB_ALPHA), 8, RGB_ALPHA, True), tiff(7))
    colours = palette(4) + chunk(b"tRNS", b"\0\x55\xaa")
    yield "exif_of_palette.png", with_exif(png(noise(4, PALETTE), 4, PALETTE, False, colours), tiff(8))
    deep = noise(16, GREY)
    yield "exif_of_16_bits.png", with_exif(png(deep, 16, GREY), tiff(5)), with_exif(stand_in(deep, 16, GREY), tiff(5))
    yield "exif_of_grey.jpg", with_exif(jpeg(waves(30, 41).convert("L")), tiff(6))
    camera = [(0x010F, 2, 4, b"Cam\0"), (0x0110, 2, 2, b"x\0\0\0")]
    thumbnail = struct.pack("<I", 1) + file[:400]
    yield "exif_behind_other_tags.jpg", with_exif(file, tiff(6, entries=camera) + thumbnail)
    lying = with_exif(file, tiff(6))
    yield "exif_behind_jfif.jpg", with_segment(lying, 0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    yield "exif_behind_xmp.jpg", with_segment(lying, 0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>")
    yield "exif_long_number.jpg", with_exif(file, tiff(6, kind="I"))
    yield "exif_with_a_second_number.jpg", with_exif(file, tiff(6, count=2))
    yield "exif_twice.jpg", with_exif(with_exif(file, tiff(3)), tiff(6))


def exif_without_orientation():
    """These are read as if they had no EXIF block."""
    file = jpeg(photo(19, 26), quality=90)
    block = tiff(6)
    yield "exif_orientation_0.jpg", with_exif(file, tiff(0))
    yield "exif_orientation_9.jpg", with_exif(file, tiff(9))
    for length in (0, 3, 8, 9, 14, 17):
        yield f"exif_of_{length}_bytes.jpg", with_exif(file, block[:length])
    yield "exif_of_nothing_known.jpg", with_exif(file, b"XX" + block[2:])
    yield "exif_no_numbers.jpg", with_exif(file, tiff(6, count=0))
    yield "exif_far_away.jpg", with_exif(file, block[:4] + b"\xfe\xff\xff\xff" + block[8:])
    yield "exif_many_entries.jpg", with_exif(file, tiff(6)[:8] + b"\xff\xff" + b"\1" * 100)
    yield "exif_of_3_bytes.png", with_exif(png(noise(8, RGB), 8, RGB), b"II*")
    yield "exif_no_segment_for_it.jpg", with_segment(file, 0xE1, b"Exif" + block)
    yield "exif_behind_the_pixels.jpg", file + with_exif(file, block)[2:]


# These images are refused with a reason that contains the given text.


def changed(file, at, byte):
    return file[:at] + bytes([file[at] ^ byte]) + file[at + 1:]


def refused():
    yield "empty.png", b"", "the file is empty"
    yield "empty.jpg", b"", "the file is empty"
    for name, kind in (("gif.png", "GIF"), ("bmp.jpg", "BMP"), ("tiff.jpg", "TIFF")):
        yield name, saved(photo(), kind), "this is no JPEG or PNG"
    yield "webp.png", b"RIFF\x24\0\0\0WEBPVP8 " + bytes(24), "this is no JPEG or PNG"
    yield "heic.jpg", b"\0\0\0\x18ftypheic" + bytes(12), "this is no JPEG or PNG"
    yield "text.png", b"a letter\n", "this is no JPEG or PNG"
    yield from refused_pngs()
    yield from refused_jpegs()


def refused_pngs():
    broken = "the PNG is broken"
    samples = noise(8, RGB, 64, 64)
    file = png(samples, 8, RGB)
    for share in (0.01, 0.1, 0.5, 0.99):
        yield f"png_{share}.png", file[:int(share * len(file))], broken
    yield "png_start_alone.png", PNG_START, "the PNG is broken: it ends early"
    behind = file[33:]
    yield "png_no_columns.png", PNG_START + header(5, 0, 8, RGB) + behind, broken
    yield "png_huge.png", PNG_START + header(100000, 100000, 8, RGB) + behind, "100000 x 100000 pixels is more than"
    yield "png_depth_3.png", PNG_START + header(64, 64, 3, RGB) + behind, broken
    yield "png_header_twice_as_high.png", PNG_START + header(128, 64, 8, RGB) + behind, broken
    yield "png_header_crc.png", changed(file, 19, 1), "the PNG is broken: IHDR: CRC error"
    yield "png_pixels_crc.png", changed(file, len(file) - 13, 1), "the PNG is broken: IDAT: CRC error"
    grey = png(noise(8, GREY), 8, GREY, before=chunk(b"tRNS", b"\0\7"))
    yield "png_trns_crc.png", changed(grey, 33 + 9, 1), "the PNG is broken: tRNS: CRC error"
    noted = png(samples, 8, RGB, before=chunk(b"tEXt", b"Title\0x", crc=1))
    yield "png_text_crc.png", noted, "the PNG is broken: tEXt: CRC error"
    yield "png_palette_missing.png", png(noise(8, PALETTE), 8, PALETTE), broken
    three = chunk(b"PLTE", bytes(range(9)))
    yield "png_colour_beyond_palette.png", png(noise(2, PALETTE), 2, PALETTE, False, three), "not in its palette"
    squeezed = zlib.compress(idat(samples, 8))
    wrong_sum = changed(squeezed, len(squeezed) - 1, 1)
    for name, data in (("no_pixels", b""), ("wrong_sum", wrong_sum), ("no_zlib", b"\xff" * 400)):
        yield f"png_{name}.png", file[:33] + chunk(b"IDAT", data) + chunk(b"IEND"), broken


def refused_jpegs():
    broken = "the JPEG is broken"
    file = jpeg(photo(64, 64))
    for share in (0.01, 0.1, 0.5, 0.99):
        yield f"jpeg_{share}.jpg", file[:int(share * len(file))], broken
    yield "jpeg_start_alone.jpg", b"\xff\xd8\xff", broken
    frame = file.index(b"\xff\xc0")
    at = frame + 4  # the precision is here, then rows and columns
    yield "jpeg_12_bits.jpg", file[:at] + b"\x0c" + file[at + 1:], broken
    yield "jpeg_no_rows.jpg", file[:at + 1] + b"\0\0" + file[at + 3:], broken
    yield "jpeg_no_tables.jpg", file[:2] + file[frame:], broken
    yield "jpeg_lossless.jpg", file.replace(b"\xff\xc0", b"\xff\xc3", 1), broken
    printed = Image.fromarray(noise(8, RGB_ALPHA).astype(numpy.uint8), "CMYK")
    yield "jpeg_cmyk.jpg", jpeg(printed), "the colours of a printer (CMYK)"


# Below, PIL decodes the images.


def upright(image):
    try:
        return ImageOps.exif_transpose(image)
    except (SyntaxError, struct.error):  # a damaged block, which PIL's open ignores
        return image


def as_pil_reads(file, orientation):
    """Returns the image as RGB [rows, columns, 3] and as grey [rows, columns]."""
    image = Image.open(io.BytesIO(file))
    if orientation == "exif":
        image = upright(image)
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return numpy.array(image.convert("RGB")), numpy.array(image.convert("L"))


def write_read(folder, images, orientation, lines):
    for name, file, *same in images:
        rgb, grey = as_pil_reads(same[0] if any(same) else file, orientation)
        (folder / name).write_bytes(file)
        (folder / f"{name}.{orientation}.rgb").write_bytes(rgb.tobytes())
        (folder / f"{name}.{orientation}.l").write_bytes(grey.tobytes())
        tolerance = 1 if file.startswith(b"\xff\xd8") else 0
        lines.append(f"{name}\t{orientation}\tread\t{rgb.shape[0]}\t{rgb.shape[1]}\t{tolerance}")


def main():
    warnings.simplefilter("ignore")  # PIL warns of damaged EXIF blocks
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for make in (png_kinds, png_transparent, png_colour_spaces, png_shapes, jpegs, exif_without_orientation):
        write_read(folder, make(), "exif", lines)
    turned = list(exif_images())
    write_read(folder, turned, "exif", lines)
    write_read(folder, turned, "ignore", lines)
    for name, file, reason in refused():
        (folder / name).write_bytes(file)
        lines.append(f"{name}\texif\trefused\t{reason}")
    (folder / "list.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
