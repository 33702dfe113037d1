// A seed of random tests: another one in each run, printed, so that a failure can be run again with FOLIOT_TEST_SEED.
#ifndef FOLIOT_FOUNDATION_BASE_TEST_SEED_H_
#define FOLIOT_FOUNDATION_BASE_TEST_SEED_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace foliot {

inline uint64_t fresh_seed() {
  const char* const given = std::getenv("FOLIOT_TEST_SEED");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("FOLIOT_TEST_SEED=%lu\n", seed);
  return seed;
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_TEST_SEED_H_
