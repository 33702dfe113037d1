// InstructionSet: the instructions that oneDNN uses, and the products in lower
// precision than float32 that they allow. The environment variable ONEDNN_MAX_CPU_ISA
// limits them, so that a processor can be tested as a lesser one.
//
// oneDNN's constants are sets of bits, not degrees: avx2_vnni is a larger number than
// avx512_core_bf16 and has no AVX-512. So they are compared by includes() alone.
//
// Threading: any.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_INSTRUCTION_SET_H_
#define FOLIOT_ENGINE_DEVICE_CPU_INSTRUCTION_SET_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// This process's, the same from the first call on.
dnnl::cpu_isa instruction_set();

bool includes(dnnl::cpu_isa set, dnnl::cpu_isa part);
std::string_view name_of(dnnl::cpu_isa set);  // "avx512_core_vnni"

// As Device::supports_products(), of a CPU with this instruction set.
//
// uint8 by int8: without VNNI, oneDNN's kernels add up pairs of products in int16, which
// saturates for codes and weights that are both large (255 * 127 * 2 > 32767). AVX2_VNNI
// counts as without, since nothing has shown that all kernels use it. bfloat16: without
// AVX512_BF16 oneDNN emulates it, which takes longer than float32, or has no kernels.
Status supports_products(dnnl::cpu_isa set, DataType type);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_INSTRUCTION_SET_H_
