# SPDX-License-Identifier: Apache-2.0
"""Bounds of e^-x in integer arithmetic, to any precision. Proof: exponential.proof.md."""


def exp_scaled(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Returns integer bounds, at most 2 apart, of 2^precision e^-(numerator/denominator).

    Guarantees:
        the scaled exponential lies between its bounds

    ``numerator`` >= 0, ``denominator`` > 0, ``precision`` >= 0.

    >>> exp_scaled(1, 1, 20)
    (385749, 385750)
    >>> exp_scaled(0, 1, 3)
    (8, 8)
    """
    if numerator == 0:
        return 1 << precision, 1 << precision
    if numerator >= denominator * (precision + 2):
        return 0, 1
    # e^-x = (e^-(x/2^k))^(2^k) with x/2^k < 2^-7, where the series needs few terms
    halvings = (numerator // denominator).bit_length() + 7
    work = precision + 2 * halvings + 40
    small = (numerator << (work - halvings)) // denominator
    term = value = 1 << work
    index = 0
    while term:
        index += 1
        term = (term * small >> work) // index
        value += -term if index % 2 else term
    error = 2 * index + 4
    for _ in range(halvings):
        value = value * value >> work
        error = 2 * error + 2
    extra = work - precision
    if 2 * error >= 1 << extra:
        raise OverflowError("An exponential whose guard bits are not enough.")
    least = max(value - error >> extra, 0)
    most = (value + error >> extra) + 1
    return least, most
