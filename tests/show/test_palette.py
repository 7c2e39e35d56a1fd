# SPDX-License-Identifier: Apache-2.0
"""Colours of pictures stand on light and on dark pages, and differ from each other."""

import re
from itertools import combinations

from sfumato.show.palette import LIGHT, PALETTE
from tests.architecture.structure import FILES


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:], 16)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = []
    for channel in channels(colour):
        share = channel / 255
        parts.append(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2, from 1 to 21."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_every_colour_has_contrast_to_light_and_to_dark_paper() -> None:
    for colour in PALETTE:
        assert contrast(colour, "#ffffff") > 2.4 and contrast(colour, "#1d2126") > 2.4, colour


def test_no_two_colours_are_near() -> None:
    for one, other in combinations(PALETTE, 2):
        apart = sum(abs(a - b) for a, b in zip(channels(one), channels(other), strict=True))
        assert apart > 60, (one, other)


def test_the_area_of_an_interval_lets_the_page_through() -> None:
    red, green, blue, share = re.fullmatch(r"rgba\((\d+),(\d+),(\d+),(\.\d+)\)", LIGHT).groups()
    assert (int(red), int(green), int(blue)) == channels(PALETTE[0]) and 0 < float(share) < 0.3


def test_colours_and_style_sheets_stand_in_one_room() -> None:
    coloured = {
        str(path.parent.name)
        for path in FILES
        if re.search(r"#[0-9a-fA-F]{6}\b|<style>|<!doctype", path.read_text("utf-8"))
    }
    assert coloured == {"show"}
