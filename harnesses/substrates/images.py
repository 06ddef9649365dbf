"""tf.image: sizes, layout, colours and measures of images."""

from typing import Any

from harnesses.harness import Integers, Uniform
from harnesses.harness.arguments import Arg
from harnesses.substrates import family
from harnesses.substrates.asking import FLOAT64, FLOATS, NO_DERIVATIVES, ask, ask_raises, call

_SHAPE = (2, 6, 7, 3)
_KINDS = ("float32", "uint8", "int32")
# The adjustments compute in float32, whatever the dtype.
_IN_FLOAT32 = {"float32": 64, "float64": 1 << 36, "uint8": 1, "int32": 0}


def images(dtype: str) -> list[Arg]:
    """A batch of images: floats from 0 to 1, integers from 0 to 200."""
    if dtype.startswith(("int", "uint")):
        return [Integers(_SHAPE, dtype, 0, 200)]
    return [Uniform(_SHAPE, dtype, 0, 1)]


@family.builder
def sizes() -> None:
    """Images made larger and smaller by each method, with and without smoothing."""
    for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",
                   "mitchellcubic"):  # fmt: skip
        # What TensorFlow has no second derivative of, or none at all.
        tags = ("not_jvp",) if method == "bilinear" else NO_DERIVATIVES
        for case, size in (("larger", [13, 9]), ("smaller", [4, 3]), ("same", [6, 7])):
            ask("image.resize", images, case=f"{method}_{case}", size=size, method=method,
                dtypes=("float32", "uint8"), ulps={"float32": 256}, tags=tags)  # fmt: skip
    for method in ("bilinear", "bicubic", "lanczos3", "gaussian", "mitchellcubic"):
        ask("image.resize", images, case=f"{method}_smooth", size=[3, 4], method=method,
            antialias=True, ulps={"float32": 256}, tags=NO_DERIVATIVES)  # fmt: skip
    ask("image.resize", images, case="aspect", size=[9, 9], preserve_aspect_ratio=True,
        ulps={"float32": 256}, tags=("not_jvp",))  # fmt: skip
    ask("image.resize", images, case="one", size=[1, 1], ulps={"float32": 256}, tags=("not_jvp",))


@family.builder
def layout() -> None:
    """Images turned, cut and padded."""
    for op in ("flip_left_right", "flip_up_down", "transpose"):
        ask(f"image.{op}", images, dtypes=_KINDS)
    for k in (1, 2, 3):
        ask("image.rot90", images, case=str(k), k=k, dtypes=_KINDS)
    for fraction in (0.3, 0.5, 1.0):
        ask("image.central_crop", images, case=str(fraction), central_fraction=fraction,
            dtypes=_KINDS)  # fmt: skip
    ask("image.crop_to_bounding_box", images, offset_height=1, offset_width=2, target_height=3,
        target_width=4, dtypes=_KINDS)  # fmt: skip
    ask("image.pad_to_bounding_box", images, offset_height=1, offset_width=2, target_height=9,
        target_width=10, dtypes=_KINDS)  # fmt: skip
    for case, rows, columns in (("wide", 4, 9), ("high", 9, 4), ("small", 3, 3)):
        ask("image.resize_with_crop_or_pad", images, case=case, target_height=rows,
            target_width=columns, dtypes=_KINDS)  # fmt: skip


@family.builder
def dtypes() -> None:
    """Images that fill the range of another dtype."""
    for dtype in ("float32", "uint8", "int16", "int32"):
        for wanted in ("float32", "float64", "uint8", "int16", "int32"):
            ask("image.convert_image_dtype", images,
                lambda tf, x, wanted=wanted: tf.image.convert_image_dtype(x, wanted),
                case=wanted, dtypes=(dtype,), tags=NO_DERIVATIVES)  # fmt: skip
    ask("image.convert_image_dtype", images,
        lambda tf, x: tf.image.convert_image_dtype(x * 2, "uint8", saturate=True),
        case="saturated", dtypes=("float32",), tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def colours() -> None:
    """Spaces of colours, and adjustments."""
    for op in ("rgb_to_yuv", "yuv_to_rgb", "rgb_to_yiq", "yiq_to_rgb"):
        ask(f"image.{op}", images, dtypes=FLOATS)
    for op in ("rgb_to_hsv", "hsv_to_rgb"):
        ask(f"image.{op}", images, dtypes=FLOAT64, tags=NO_DERIVATIVES)
    ask("image.rgb_to_grayscale", images, dtypes=_KINDS, ulps=_IN_FLOAT32)
    ask("image.grayscale_to_rgb", images,
        lambda tf, x: tf.image.grayscale_to_rgb(x[..., :1]), dtypes=_KINDS)  # fmt: skip
    for op, options in (
        ("adjust_brightness", {"delta": 0.1}),
        ("adjust_contrast", {"contrast_factor": 0.5}),
        ("adjust_gamma", {"gamma": 2.0}),
        ("adjust_saturation", {"saturation_factor": 0.5}),
        ("adjust_hue", {"delta": 0.2}),
    ):
        ask(f"image.{op}", images, dtypes=("float32", "float64", "uint8"), ulps=_IN_FLOAT32,
            tags=NO_DERIVATIVES, **options)  # fmt: skip
    ask("image.per_image_standardization", images, dtypes=_KINDS, ulps={"float32": 128})


@family.builder
def measures() -> None:
    """Differences between images, and between neighbours."""
    for dtype in ("float32", "uint8"):
        ask("image.psnr", lambda d: images(d) * 2,
            lambda tf, x, y: tf.image.psnr(x, y // 2 if y.dtype == "uint8" else y / 2, 1),
            dtypes=(dtype,), ulps={"float32": 64}, tags=NO_DERIVATIVES)  # fmt: skip
    ask("image.total_variation", images, dtypes=(*FLOAT64, "int32"))
    ask("image.image_gradients", images, dtypes=(*FLOAT64, "int32"))
    ask("image.sobel_edges", images, dtypes=FLOAT64, ulps={"float32": 64, "float64": 64})


def _pair_of_images(dtype: str) -> list:
    return [Uniform((2, 15, 12, 2), dtype, 0, 1), Uniform((2, 15, 12, 2), dtype, 0, 1)]


@family.builder
def structural_similarities() -> None:
    """Structural similarities: of unlike images, small quotients of differences of means."""
    loose = {"float32": 512, "float64": 1 << 37, "float16": 6}
    ask("image.ssim", _pair_of_images, call("image.ssim", 1.0), dtypes=(*FLOAT64, "float16"),
        ulps=loose)  # fmt: skip
    ask("image.ssim", _pair_of_images, call("image.ssim", 1.0, 4, 0.7, 0.02, 0.1, True),
        case="map", ulps=loose)  # fmt: skip
    ask("image.ssim_multiscale", _pair_of_images,
        call("image.ssim_multiscale", 1.0, (0.4, 0.6), 4), dtypes=FLOAT64, ulps=loose)  # fmt: skip


def _ones(tf: Any) -> Any:
    return tf.ones([1, 5, 6, 3])


@family.builder
def refused_programs() -> None:
    """Programs with shapes, sizes or methods that do not fit."""
    for op, case, program in (
        ("resize", "rank", lambda tf, x: tf.image.resize(x[0, 0], [3, 3])),
        ("resize", "size", lambda tf, x: tf.image.resize(x, [3])),
        ("resize", "method", lambda tf, x: tf.image.resize(x, [3, 3], "no")),
        ("crop_to_bounding_box", "large",
         lambda tf, x: tf.image.crop_to_bounding_box(x, 0, 0, 9, 9)),
        ("pad_to_bounding_box", "small",
         lambda tf, x: tf.image.pad_to_bounding_box(x, 0, 0, 2, 2)),
        ("central_crop", "nothing", lambda tf, x: tf.image.central_crop(x, 0.0)),
        ("adjust_gamma", "negative", lambda tf, x: tf.image.adjust_gamma(x, -1.0)),
        ("adjust_contrast", "rank", lambda tf, x: tf.image.adjust_contrast(x[0, 0], 0.5)),
        ("rgb_to_grayscale", "channels", lambda tf, x: tf.image.rgb_to_grayscale(x[..., :2])),
        ("rgb_to_hsv", "channels", lambda tf, x: tf.image.rgb_to_hsv(x[..., :2])),
        ("rgb_to_yuv", "integers", lambda tf, x: tf.image.rgb_to_yuv(tf.cast(x, tf.uint8))),
        ("image_gradients", "rank", lambda tf, x: tf.image.image_gradients(x[0])),
        ("total_variation", "rank", lambda tf, x: tf.image.total_variation(x[0, 0])),
        ("resize_with_crop_or_pad", "nothing",
         lambda tf, x: tf.image.resize_with_crop_or_pad(x, 0, 2)),
        ("ssim", "rank", lambda tf, x: tf.image.ssim(x[0, 0], x[0, 0], 1.0)),
        ("ssim", "small", lambda tf, x: tf.image.ssim(x, x, 1.0)),
        ("ssim", "channels", lambda tf, x: tf.image.ssim(x, x[..., :1], 1.0, 2)),
        ("flip_left_right", "rank", lambda tf, x: tf.image.flip_left_right(x[0, 0])),
    ):  # fmt: skip
        ask_raises(f"image.{op}", case, lambda tf, program=program: program(tf, _ones(tf)))
