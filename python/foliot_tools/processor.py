"""What this processor multiplies fast and exactly, by its flags and ONEDNN_MAX_CPU_ISA,
independently of Foliot."""

import os
import pathlib

AVX512_CORE = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
# As oneDNN names them for ONEDNN_MAX_CPU_ISA, each with the flags of /proc/cpuinfo that it needs; from least to most.
INSTRUCTION_SETS = {
    "AVX2": {"avx2", "fma"},
    "AVX512_CORE": AVX512_CORE,
    "AVX512_CORE_VNNI": AVX512_CORE | {"avx512_vnni"},
    "AVX512_CORE_BF16": AVX512_CORE | {"avx512_vnni", "avx512_bf16"},
    "AVX512_CORE_AMX": AVX512_CORE | {"avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"},
}
# The least that multiplies a type.
NEEDED = {"UINT8": "AVX512_CORE_VNNI", "BF16": "AVX512_CORE_BF16"}
FLAG = {"UINT8": "AVX512_VNNI", "BF16": "AVX512_BF16"}


def flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()


def supported():
    """The instruction sets that this processor has, from least to most."""
    present = flags()
    return [name for name, needed in INSTRUCTION_SETS.items() if needed <= present]


def instruction_set():
    """The largest that may be used; None below AVX2."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    usable = supported()
    if limit in INSTRUCTION_SETS:
        order = list(INSTRUCTION_SETS)
        usable = [name for name in usable if order.index(name) <= order.index(limit)]
    return usable[-1] if usable else None


def has(name, type_name):
    """Whether this instruction set multiplies this type ("UINT8", "BF16")."""
    order = list(INSTRUCTION_SETS)
    return order.index(name) >= order.index(NEEDED[type_name])


def multiplies(type_name):
    """Whether products of this type are not left to float32 here."""
    own = instruction_set()
    return own is not None and has(own, type_name)


def reason_without(type_name):
    """What a test that needs products of this type says when it is skipped."""
    return f"products of {type_name} need {FLAG[type_name]}; this processor may use {instruction_set()}"
