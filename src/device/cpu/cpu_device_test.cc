#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include "device/conformance/conformance.h"

namespace foliot {
namespace {

DeviceFactory with_threads(uint32_t threads) {
  return [threads] { return make_cpu_device({.threads = threads, .lock_memory = false}); };
}

const int kRegistered =
    register_conformance("cpu_1_thread", with_threads(1)) + register_conformance("cpu_2_threads", with_threads(2));

TEST(CpuDevice, RegistersTheConformanceSuite) { EXPECT_GT(kRegistered, 400); }

}  // namespace
}  // namespace foliot
