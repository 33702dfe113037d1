#include "engine/device/cpu/channel_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/device/cpu/instruction_set.h"

namespace foliot {
namespace {

using Tag = dnnl::memory::format_tag;

constexpr float kUnwritten = -1;

Descriptor descriptor_of(const Shape& shape, Tag tag) { return Descriptor(shape, dnnl::memory::data_type::f32, tag); }

// Those of every instruction set that this processor has.
std::vector<ChannelCopies> all_channel_copies() {
  std::vector<ChannelCopies> result;
  for (const auto set : {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2})
    if (includes(instruction_set(), set)) result.push_back(find_channel_copies(set));
  return result;
}

// Where oneDNN says that channel `c` of place `p` of image `n` is.
int64_t place_in(const Descriptor& descriptor, int64_t n, int64_t c, int64_t p) {
  const dnnl_blocking_desc_t& blocking = descriptor.data.format_desc.blocking;
  const int64_t lanes = blocking.inner_nblks == 0 ? 1 : blocking.inner_blks[0];
  return n * blocking.strides[0] + c / lanes * blocking.strides[1] + c % lanes + p * blocking.strides[3];
}

void expect_copies(const Shape& shape, Tag tag) {
  const Descriptor descriptor = descriptor_of(shape, tag);
  const std::optional<ChannelOrder> order = channel_order(descriptor);
  ASSERT_TRUE(order.has_value());
  const int64_t places = shape[2] * shape[3];
  std::vector<float> dense(element_count(shape));
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<float>(i + 1);
  std::vector<float> expected(descriptor.get_size() / sizeof(float), 0);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t p = 0; p < places; ++p)
        expected[static_cast<size_t>(place_in(descriptor, n, c, p))] =
            dense[static_cast<size_t>((n * shape[1] + c) * places + p)];
  for (const ChannelCopies& copies : all_channel_copies()) {
    std::vector<float> together(expected.size(), kUnwritten), apart(dense.size(), kUnwritten);
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t part = order->parts(); part-- > 0;) copies.together(*order, n, part, dense.data(), together.data());
    EXPECT_EQ(together, expected) << to_string(shape);
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t part = 0; part < order->parts(); ++part)
        copies.apart(*order, n, part, together.data(), apart.data());
    EXPECT_EQ(apart, dense) << to_string(shape);
  }
}

TEST(ChannelOrderTest, CopiesThereAndBack) {
  for (const Tag tag : {Tag::nhwc, Tag::nChw16c, Tag::nChw8c})
    for (const int64_t channels : {8, 9, 15, 16, 17, 24, 31, 40})
      for (const int64_t width : {2, 3, 4, 5, 6, 8, 9}) expect_copies({2, channels, 4, width}, tag);
}

TEST(ChannelOrderTest, KnowsOneToThreeSpatialDimensions) {
  EXPECT_EQ(channel_order(descriptor_of({2, 24, 10}, Tag::nwc))->places, 10);
  EXPECT_EQ(channel_order(descriptor_of({2, 24, 2, 3, 5}, Tag::nCdhw16c))->places, 30);
}

TEST(ChannelOrderTest, LeavesOthersToOneDnn) {
  EXPECT_FALSE(channel_order(descriptor_of({1, 16, 4, 4}, Tag::nchw)));
  EXPECT_FALSE(channel_order(descriptor_of({1, 16, 4, 4}, Tag::nChw4c)));
  EXPECT_FALSE(channel_order(descriptor_of({1, 7, 4, 4}, Tag::nhwc)));
  EXPECT_FALSE(channel_order(descriptor_of({1, 16, 1, 7}, Tag::nhwc)));
  EXPECT_FALSE(channel_order(Descriptor({1, 16, 4, 4}, dnnl::memory::data_type::bf16, Tag::nhwc)));
}

}  // namespace
}  // namespace foliot
