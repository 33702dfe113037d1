"""XXH3, 64 bits, seed 0, of at least 17 bytes: the checksum of tables that Foliot maps (src/answer/personal/weights/mapped_rows.h).

Its inner loop is numpy's, over a thousand bytes at a time.
"""

import struct

import numpy as np

_MASK = (1 << 64) - 1
_PRIME32_1 = 0x9E3779B1
_PRIME32_2 = 0x85EBCA77
_PRIME32_3 = 0xC2B2AE3D
_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME64_2 = 0xC2B2AE3D27D4EB4F
_PRIME64_3 = 0x165667B19E3779F9
_PRIME64_4 = 0x85EBCA77C2B2AE63
_PRIME64_5 = 0x27D4EB2F165667C5
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE = 64
_STRIPES = (len(_SECRET) - _STRIPE) // 8  # of a block


def _u64(data, offset):
    return struct.unpack_from("<Q", data, offset)[0]


def _avalanche(value):
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & _MASK
    return value ^ value >> 32


def _fold(a, b):
    product = a * b
    return (product ^ product >> 64) & _MASK


def _mix(data, offset, secret):
    return _fold(_u64(data, offset) ^ _u64(_SECRET, secret), _u64(data, offset + 8) ^ _u64(_SECRET, secret + 8))


def _short(data):
    """Of 17 to 128 bytes."""
    size = len(data)
    total = size * _PRIME64_1
    for i in reversed(range((size - 1) // 32 + 1)):
        total += _mix(data, 16 * i, 32 * i) + _mix(data, size - 16 * (i + 1), 32 * i + 16)
    return _avalanche(total & _MASK)


def _middle(data):
    """Of 129 to 240 bytes."""
    size = len(data)
    total = size * _PRIME64_1 + sum(_mix(data, 16 * i, 16 * i) for i in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mix(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    total += _mix(data, size - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _products(words, keys):
    """Of stripes (rows of eight words): what each adds to the accumulators."""
    keyed = words ^ keys
    products = (keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))
    return (products + words[:, [1, 0, 3, 2, 5, 4, 7, 6]]).sum(axis=0, dtype=np.uint64)


def _keys(offset):
    return np.frombuffer(_SECRET, "<u8", 8, offset).astype(np.uint64)


def _long(data):
    sums = np.array(
        [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1], np.uint64
    )
    keys = np.stack([_keys(8 * i) for i in range(_STRIPES)])
    last_keys = _keys(len(_SECRET) - _STRIPE)
    block = _STRIPE * _STRIPES
    blocks = (len(data) - 1) // block
    for i in range(blocks):
        words = np.frombuffer(data, "<u8", 8 * _STRIPES, i * block).reshape(-1, 8)
        sums += _products(words, keys)
        sums = (sums ^ sums >> np.uint64(47) ^ last_keys) * np.uint64(_PRIME32_1)
    stripes = (len(data) - 1 - block * blocks) // _STRIPE
    if stripes > 0:
        words = np.frombuffer(data, "<u8", 8 * stripes, blocks * block).reshape(-1, 8)
        sums += _products(words, keys[:stripes])
    words = np.frombuffer(data, "<u8", 8, len(data) - _STRIPE).reshape(-1, 8)
    sums += _products(words, _keys(len(_SECRET) - _STRIPE - 7))
    values = [int(value) for value in sums]
    total = len(data) * _PRIME64_1
    for i in range(4):
        total += _fold(values[2 * i] ^ _u64(_SECRET, 11 + 16 * i), values[2 * i + 1] ^ _u64(_SECRET, 19 + 16 * i))
    return _avalanche(total & _MASK)


def hash64(data):
    """The hash of these bytes. ValueError for fewer than 17."""
    data = bytes(data)
    if len(data) < 17:
        raise ValueError(f"{len(data)} bytes; hash64() takes 17 or more")
    if len(data) <= 128:
        return _short(data)
    return _middle(data) if len(data) <= 240 else _long(data)
