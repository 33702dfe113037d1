#include "engine/device/cpu/thread_limit.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

namespace foliot {
namespace {

using Kind = OperatorKind;

TEST(ThreadLimit, ProductsAreShortByTheirMultiplications) {
  EXPECT_TRUE(is_short(Kind::kMatMul, {4, 100}, {100, 512}, {4, 512}));
  EXPECT_FALSE(is_short(Kind::kBlockMatMul, {1, 768}, {48, 96, 16, 4}, {1, 768}));
  EXPECT_FALSE(is_short(Kind::kMatMul, {128, 768}, {768, 768}, {128, 768}));
  // One matrix for many of the other operand.
  EXPECT_FALSE(is_short(Kind::kMatMul, {64, 64, 64}, {64, 64}, {64, 64, 64}));
  EXPECT_FALSE(is_short(Kind::kMatMul, {64, 64}, {64, 64, 64}, {64, 64, 64}));
  EXPECT_TRUE(is_short(Kind::kConvolution, {1, 96, 1, 1}, {4, 96, 1, 1}, {1, 4, 1, 1}));
  EXPECT_FALSE(is_short(Kind::kConvolution, {1, 64, 56, 56}, {64, 64, 3, 3}, {1, 64, 56, 56}));
  EXPECT_FALSE(is_short(Kind::kConvolutionTranspose, {1, 64, 28, 28}, {64, 32, 2, 2}, {1, 32, 56, 56}));
}

TEST(ThreadLimit, OthersAreShortByTheirElements) {
  EXPECT_TRUE(is_short(Kind::kSoftmax, {1, 1000}, {}, {1, 1000}));
  EXPECT_FALSE(is_short(Kind::kSoftmax, {12, 128, 128}, {}, {12, 128, 128}));
  // What reads much and gives little.
  EXPECT_FALSE(is_short(Kind::kAveragePool, {1, 1280, 7, 7}, {}, {1, 1280, 1, 1}));
}

TEST(ThreadLimit, FewerLanesHaveFewerThreads) {
  using Threads = std::vector<uint32_t>;
  EXPECT_EQ(threads_of_fewer_lanes(1), Threads{});
  EXPECT_EQ(threads_of_fewer_lanes(2), Threads{1});
  EXPECT_EQ(threads_of_fewer_lanes(8), (Threads{1, 2, 4}));
  EXPECT_EQ(threads_of_fewer_lanes(6), (Threads{1, 2, 3, 4})) << "2, 3 or 6 lanes";
}

TEST(ThreadLimit, HoldsWhileItLives) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  {
    const ThreadLimit none(false);
    EXPECT_EQ(omp_get_max_threads(), 2);
    const ThreadLimit limit(true);
    EXPECT_EQ(omp_get_max_threads(), 1);
    const ThreadLimit more = ThreadLimit::at_most(2);
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 2);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace foliot
