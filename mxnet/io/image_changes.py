"""What `ImageRecordIter` does to an image before it goes into the batch: MXNet's ``aug_default``.

Pixels are uint8 (height, width, channels), red first. Each image has a generator of its own, so
results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..error import MXNetError
from ..formats.image_codec import opencv

ATTEMPTS = 10
NO_LIMIT = 1e10
# MXNet weighs channels in the order blue, green, red with the weights of red, green, blue.
GRAY = np.array([0.114, 0.587, 0.299], np.float32)
PCA = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.814], [-0.5836, -0.6948, 0.4203]])
PCA = PCA * (55.46, 4.794, 1.148)


class Changes(NamedTuple):
    """The parameters of the changes; `ImageRecordIter` documents them."""

    data_shape: tuple[int, int, int]
    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    max_img_size: float = NO_LIMIT
    min_img_size: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    rotate: int = -1
    fill_value: int = 255
    inter_method: int = 1
    pad: int = 0

    def applied(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        """Return the changed image, of the height and width of ``data_shape``."""
        if self.resize > 0:
            pixels = resized_short(pixels, self.resize, self.inter_method, chance)
        if self._bends:
            pixels = self._bent(pixels, chance)
        if self.pad > 0:
            pixels = bordered(pixels, self.pad, self.pad, self.pad, self.pad, self.fill_value)
        pixels = self._cropped(pixels, chance)
        if self._colors:
            pixels = self._colored(pixels, chance)
        return pixels

    # -- rotation, shear and scale ---------------------------------------------------------------

    @property
    def _bends(self) -> bool:
        aspect = not self.random_resized_crop and (
            self.max_aspect_ratio != 0 or self.min_aspect_ratio is not None
        )
        return (
            aspect
            or self.max_rotate_angle > 0
            or self.max_shear_ratio > 0
            or self.rotate > 0
            or (self.max_random_scale, self.min_random_scale) != (1.0, 1.0)
            or self.max_img_size != NO_LIMIT
            or self.min_img_size != 0.0
        )

    def _bent(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        shear = chance.uniform(-self.max_shear_ratio, self.max_shear_ratio)
        angle = chance.integers(-self.max_rotate_angle, self.max_rotate_angle, endpoint=True)
        angle = math.radians(self.rotate if self.rotate > 0 else angle)
        scale, ratio = (
            self._scale(chance),
            1.0 if self.random_resized_crop else self._aspect(chance),
        )
        across = 2 * scale / (1 + ratio)
        down = ratio * across
        a, b = math.cos(angle), math.sin(angle)
        height, width = pixels.shape[:2]
        new_width, new_height = (
            max(self.min_img_size, min(self.max_img_size, _scaled(edge, scale)))
            for edge in (width, height)
        )
        matrix = np.array(
            [
                [across * a - shear * b * down, across * b + shear * a * down, 0.0],
                [-b * down, a * down, 0.0],
            ],
            np.float32,
        )
        matrix[:, 2] = (np.array([new_width, new_height]) - matrix[:, :2] @ [width, height]) / 2
        size = max(1, int(new_width)), max(1, int(new_height))
        method = interpolation(self.inter_method, pixels, *size, chance)
        made = opencv().warpAffine(
            pixels,
            matrix,
            size,
            flags=method,
            borderMode=opencv().BORDER_CONSTANT,
            borderValue=[self.fill_value] * 4,
        )
        return made[:, :, None] if made.ndim == 2 else made

    def _scale(self, chance: np.random.Generator) -> float:
        return chance.uniform(self.min_random_scale, self.max_random_scale)

    def _aspect(self, chance: np.random.Generator) -> float:
        if self.min_aspect_ratio is None:
            return chance.uniform(1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio)
        return chance.uniform(self.min_aspect_ratio, self.max_aspect_ratio)

    # -- crops -----------------------------------------------------------------------------------

    def _cropped(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        _, height, width = self.data_shape
        if self.random_resized_crop:
            crop = self._random_area(pixels, chance)
            if crop is not None:
                return resized(crop, width, height, self.inter_method, chance)
        elif self.max_crop_size != -1 or self.min_crop_size != -1:
            return self._square(pixels, chance)
        pixels = self._large_enough(pixels, chance)
        if pixels.shape[:2] == (height, width):
            return pixels
        return self._placed(pixels, height, width, chance)

    def _large_enough(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        """Enlarge an image that is lower or narrower than the crop."""
        _, height, width = self.data_shape
        if pixels.shape[0] < height:
            new_width = _in_proportion(height, *pixels.shape[:2])
            pixels = resized(pixels, new_width, height, self.inter_method, chance)
        if pixels.shape[1] < width:
            new_height = _in_proportion(width, *pixels.shape[1::-1])
            pixels = resized(pixels, width, new_height, self.inter_method, chance)
        return pixels

    def _placed(
        self, pixels: np.ndarray, height: int, width: int, chance: np.random.Generator
    ) -> np.ndarray:
        """Cut a rectangle out of the middle, or of any place."""
        y, x = pixels.shape[0] - height, pixels.shape[1] - width
        if self.rand_crop:
            y, x = chance.integers(0, y, endpoint=True), chance.integers(0, x, endpoint=True)
        else:
            y, x = y // 2, x // 2
        return pixels[y : y + height, x : x + width]

    def _square(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        smallest, largest = self.min_crop_size, self.max_crop_size
        if not 1 <= smallest <= largest <= min(pixels.shape[:2]):
            raise MXNetError(
                f"min_crop_size {smallest} and max_crop_size {largest} do not go with an image of "
                f"{pixels.shape[1]} x {pixels.shape[0]}."
            )
        size = int(chance.integers(smallest, largest, endpoint=True))
        crop = self._placed(pixels, size, size, chance)
        return resized(crop, self.data_shape[2], self.data_shape[1], self.inter_method, chance)

    def _random_area(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray | None:
        """Cut out a rectangle of random area and form anywhere, or None if none was found."""
        height, width = pixels.shape[:2]
        for _ in range(ATTEMPTS):
            area = chance.uniform(self.min_random_area, self.max_random_area) * height * width
            ratio = self._aspect(chance)
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if chance.random() > 0.5:
                w, h = h, w
            if 1 <= w < width and 1 <= h < height:  # MXNet leaves out the whole image
                y = chance.integers(0, height - h, endpoint=True)
                x = chance.integers(0, width - w, endpoint=True)
                return pixels[y : y + h, x : x + w]
        return None

    # -- colors ---------------------------------------------------------------------------------

    @property
    def _colors(self) -> bool:
        return any(
            (
                self.brightness,
                self.contrast,
                self.saturation,
                self.pca_noise,
                self.random_h,
                self.random_s,
                self.random_l,
            )
        )

    def _colored(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        if pixels.shape[2] != 3:
            raise MXNetError("Colors can be changed in images of 3 channels only.")
        steps = [
            step
            for step, amount in (
                (self._brightened, self.brightness),
                (self._contrasted, self.contrast),
                (self._saturated, self.saturation),
            )
            if amount
        ]
        for number in chance.permutation(len(steps)):
            pixels = steps[number](pixels, chance)
        if self.random_h or self.random_s or self.random_l:
            pixels = self._turned_hue(pixels, chance)
        if self.pca_noise > 0:
            shift = PCA @ chance.normal(0, self.pca_noise, 3)
            pixels = _bytes(pixels + shift.astype(np.float32))
        return pixels

    def _brightened(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.brightness, self.brightness)
        return opencv().convertScaleAbs(pixels, alpha=factor)

    def _contrasted(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.contrast, self.contrast)
        gray = float((pixels @ GRAY).mean())
        return _bytes(pixels * np.float32(factor) + np.float32((1 - factor) * gray))

    def _saturated(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.saturation, self.saturation)
        gray = (pixels @ GRAY)[:, :, None]
        return _bytes(pixels * np.float32(factor) + gray * np.float32(1 - factor))

    def _turned_hue(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        cv2 = opencv()
        limits = (self.random_h, self.random_l, self.random_s)  # OpenCV's order
        shift = [int(chance.integers(-limit, limit)) if limit else 0 for limit in limits]
        hls = cv2.cvtColor(pixels, cv2.COLOR_RGB2HLS).astype(np.int16) + np.array(shift, np.int16)
        hls = np.clip(hls, 0, (180, 255, 255)).astype(np.uint8)
        return cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)


def _scaled(edge: int, scale: float) -> float:
    """Return an edge times a scale in float32: 100 * 0.29 is 29 in it, and is cut to 29."""
    return float(np.float32(scale) * np.float32(edge))


def _in_proportion(new: int, old: int, other: int) -> int:
    """Return the other edge where one grows from `old` to `new`; float32 decides what is cut."""
    return int(np.float32(new) / np.float32(old) * np.float32(other))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def interpolation(
    method: int, pixels: np.ndarray, width: int, height: int, chance: np.random.Generator
) -> int:
    """Return OpenCV's method: 9 picks by the sizes, 10 at random."""
    if method == 9:
        old_height, old_width = pixels.shape[:2]
        if width > old_width and height > old_height:
            return 2
        return 3 if width < old_width and height < old_height else 1
    if method == 10:
        return int(chance.integers(0, 5))
    if method not in (0, 1, 2, 3, 4):
        raise MXNetError(f"inter_method is 0 to 4, 9 or 10, not {method}.")
    return method


def resized(
    pixels: np.ndarray, width: int, height: int, method: int, chance: np.random.Generator
) -> np.ndarray:
    """Return the image in another size, with its channel axis."""
    method = interpolation(method, pixels, width, height, chance)
    made = opencv().resize(pixels, (width, height), interpolation=method)
    return made[:, :, None] if made.ndim == 2 else made


def resized_short(
    pixels: np.ndarray, size: int, method: int, chance: np.random.Generator
) -> np.ndarray:
    """Return the image with its shorter edge of ``size``."""
    height, width = pixels.shape[:2]
    if height > width:
        return resized(pixels, size, size * height // width, method, chance)
    return resized(pixels, size * width // height, size, method, chance)


def bordered(
    pixels: np.ndarray, top: int, bottom: int, left: int, right: int, value: float
) -> np.ndarray:
    """Return the image with a border of one color."""
    cv2 = opencv()
    kind = cv2.BORDER_CONSTANT
    made = cv2.copyMakeBorder(pixels, top, bottom, left, right, kind, value=[value] * 4)
    return made[:, :, None] if made.ndim == 2 else made
