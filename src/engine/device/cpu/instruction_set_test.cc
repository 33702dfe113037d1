#include "engine/device/cpu/instruction_set.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

using dnnl::cpu_isa;

TEST(InstructionSet, IncludesItsPartsOnly) {
  EXPECT_TRUE(includes(cpu_isa::avx512_core_vnni, cpu_isa::avx512_core));
  EXPECT_TRUE(includes(cpu_isa::avx512_core_amx, cpu_isa::avx512_core_bf16));
  EXPECT_TRUE(includes(cpu_isa::avx2_vnni, cpu_isa::avx2));
  EXPECT_FALSE(includes(cpu_isa::avx2_vnni, cpu_isa::avx512_core)) << "a larger number, and a lesser set";
  EXPECT_FALSE(includes(cpu_isa::avx512_core, cpu_isa::avx512_core_vnni));
}

TEST(InstructionSet, MultipliesWhatItHasKernelsFor) {
  struct Row {
    cpu_isa set;
    bool int8, bfloat16;
  };
  const Row rows[] = {{cpu_isa::sse41, false, false},           {cpu_isa::avx2, false, false},
                      {cpu_isa::avx2_vnni, false, false},       {cpu_isa::avx512_core, false, false},
                      {cpu_isa::avx512_core_vnni, true, false}, {cpu_isa::avx512_core_bf16, true, true},
                      {cpu_isa::avx512_core_amx, true, true}};
  for (const Row& row : rows) {
    EXPECT_EQ(supports_products(row.set, DataType::kUint8).ok(), row.int8) << name_of(row.set);
    EXPECT_EQ(supports_products(row.set, DataType::kBfloat16).ok(), row.bfloat16) << name_of(row.set);
    EXPECT_TRUE(supports_products(row.set, DataType::kFloat32).ok()) << name_of(row.set);
    EXPECT_FALSE(supports_products(row.set, DataType::kInt64).ok()) << name_of(row.set);
  }
}

TEST(InstructionSet, ReportsWhatIsMissing) {
  EXPECT_EQ(supports_products(cpu_isa::avx2, DataType::kUint8).message(),
            "products of int8 need a CPU with AVX512_VNNI, and this one has avx2");
  EXPECT_EQ(supports_products(cpu_isa::avx512_core_vnni, DataType::kBfloat16).message(),
            "products of bfloat16 need a CPU with AVX512_BF16, and this one has avx512_core_vnni");
}

}  // namespace
}  // namespace foliot
