#include "engine/device/cpu/instruction_set.h"

#include <fmt/format.h>

namespace foliot {
namespace {

Status lacks(std::string_view what, std::string_view needed, dnnl::cpu_isa set) {
  return Status::unimplemented(
      fmt::format("products of {} need a CPU with {}, and this one has {}", what, needed, name_of(set)));
}

}  // namespace

dnnl::cpu_isa instruction_set() {
  static const dnnl::cpu_isa set = dnnl::get_effective_cpu_isa();
  return set;
}

bool includes(dnnl::cpu_isa set, dnnl::cpu_isa part) {
  const auto bits = static_cast<unsigned>(part);
  return (static_cast<unsigned>(set) & bits) == bits;
}

std::string_view name_of(dnnl::cpu_isa set) {
  switch (set) {
    case dnnl::cpu_isa::sse41: return "sse41";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    default: return "another";
  }
}

Status supports_products(dnnl::cpu_isa set, DataType type) {
  switch (type) {
    case DataType::kFloat32: return Status();
    case DataType::kUint8:
      return includes(set, dnnl::cpu_isa::avx512_core_vnni) ? Status() : lacks("int8", "AVX512_VNNI", set);
    case DataType::kBfloat16:
      return includes(set, dnnl::cpu_isa::avx512_core_bf16) ? Status() : lacks("bfloat16", "AVX512_BF16", set);
    default: return Status::unimplemented(fmt::format("there are no fast kernels for products of {}", to_string(type)));
  }
}

}  // namespace foliot
