"""tf.image."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import ask, between, normal

_ULPS = {"float32": 256}
_IMAGES = between(0.05, 0.95, (2, 6, 8, 3))
_SEED = (1, 2)

_OF_IMAGES = {
    "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.1),
    "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 1.5),
    "adjust_gamma": lambda x: tf.image.adjust_gamma(x, 1.2),
    "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.1),
    "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 1.2),
    "central_crop": lambda x: tf.image.central_crop(x, 0.5),
    "convert_image_dtype": lambda x: tf.image.convert_image_dtype(x, tf.float64),
    "crop_and_resize": lambda x: tf.image.crop_and_resize(
        x, tf.constant([[0.1, 0.1, 0.9, 0.8]]), [0], [3, 4]
    ),
    "crop_to_bounding_box": lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 3, 4),
    "extract_patches": lambda x: tf.image.extract_patches(
        x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"
    ),
    "flip_left_right": tf.image.flip_left_right,
    "flip_up_down": tf.image.flip_up_down,
    "grayscale_to_rgb": lambda x: tf.image.grayscale_to_rgb(x[..., :1]),
    "hsv_to_rgb": tf.image.hsv_to_rgb,
    "image_gradients": tf.image.image_gradients,
    "pad_to_bounding_box": lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 9, 10),
    "per_image_standardization": tf.image.per_image_standardization,
    "psnr": lambda x: tf.image.psnr(x, x * 0.9, 1.0),
    "resize_bilinear": lambda x: tf.image.resize(x, [4, 5]),
    "resize_nearest": lambda x: tf.image.resize(x, [4, 5], "nearest"),
    "resize_bicubic": lambda x: tf.image.resize(x, [4, 5], "bicubic"),
    "resize_area": lambda x: tf.image.resize(x, [3, 4], "area"),
    "resize_lanczos3": lambda x: tf.image.resize(x, [4, 5], "lanczos3"),
    "resize_antialias": lambda x: tf.image.resize(x, [4, 5], antialias=True),
    "resize_with_pad": lambda x: tf.image.resize_with_pad(x, 7, 7),
    "resize_with_crop_or_pad": lambda x: tf.image.resize_with_crop_or_pad(x, 7, 7),
    "rgb_to_grayscale": tf.image.rgb_to_grayscale,
    "rgb_to_hsv": tf.image.rgb_to_hsv,
    "rgb_to_yiq": tf.image.rgb_to_yiq,
    "rgb_to_yuv": tf.image.rgb_to_yuv,
    "rot90": tf.image.rot90,
    "sobel_edges": tf.image.sobel_edges,
    "ssim": lambda x: tf.image.ssim(x, x[:, ::-1], 1.0, filter_size=3),
    "stateless_random_brightness": lambda x: tf.image.stateless_random_brightness(x, 0.2, _SEED),
    "stateless_random_contrast": lambda x: tf.image.stateless_random_contrast(x, 0.5, 1.5, _SEED),
    "stateless_random_crop": lambda x: tf.image.stateless_random_crop(x, [2, 3, 4, 3], _SEED),
    "stateless_random_flip_left_right": lambda x: tf.image.stateless_random_flip_left_right(
        x, _SEED
    ),
    "stateless_random_hue": lambda x: tf.image.stateless_random_hue(x, 0.2, _SEED),
    "stateless_random_saturation": lambda x: tf.image.stateless_random_saturation(
        x, 0.5, 1.5, _SEED
    ),
    "total_variation": tf.image.total_variation,
    "transpose": tf.image.transpose,
    "yiq_to_rgb": tf.image.yiq_to_rgb,
    "yuv_to_rgb": tf.image.yuv_to_rgb,
}


@family.builder
def functions_of_images() -> None:
    """Functions of one batch of images."""
    for name, function in _OF_IMAGES.items():
        ask(f"tf.image.{name}", function, _IMAGES, ulps=_ULPS)


@family.builder
def boxes() -> None:
    """Boxes chosen by their scores."""
    ask(
        "tf.image.non_max_suppression_padded",
        lambda b, s: tf.image.non_max_suppression_padded(b, s, 3, pad_to_max_output_size=True)[0],
        normal((4, 4), (4,)),
        tags=("not_grad", "not_jvp"),
    )
