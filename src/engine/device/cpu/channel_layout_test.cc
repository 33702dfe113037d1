#include "engine/device/cpu/channel_layout.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

using LayoutKind = ChannelLayout::Kind;
using Tag = dnnl::memory::format_tag;

Descriptor tagged(const Shape& shape, Tag tag) { return Descriptor(shape, dnnl::memory::data_type::f32, tag); }

void expect_layout(const Descriptor& descriptor, LayoutKind kind, std::vector<int64_t> extents) {
  const auto layout = channel_layout(descriptor);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->kind, kind);
  EXPECT_EQ((std::vector{layout->rows, layout->groups, layout->places, layout->lanes}), extents);
  const auto same = with_channels(*layout, DataType::kFloat32, shape_of(descriptor));
  ASSERT_TRUE(same.has_value());
  EXPECT_TRUE(*same == descriptor);
}

TEST(ChannelLayout, SeesHowChannelsLie) {
  const Shape shape{2, 32, 4, 5};
  expect_layout(tagged(shape, Tag::nchw), LayoutKind::kDense, {2, 32, 20, 1});
  expect_layout(tagged(shape, Tag::nhwc), LayoutKind::kLast, {2, 1, 20, 32});
  expect_layout(tagged(shape, Tag::nChw16c), LayoutKind::kBlocked, {2, 2, 20, 16});
  expect_layout(tagged(shape, Tag::nChw8c), LayoutKind::kBlocked, {2, 4, 20, 8});
}

TEST(ChannelLayout, IsNoneWhereChannelsLieOtherwise) {
  EXPECT_FALSE(channel_layout(tagged({2, 20, 4, 5}, Tag::nChw16c)).has_value()) << "a block is not filled";
  EXPECT_FALSE(channel_layout(tagged({2, 32, 4, 5}, Tag::cdba)).has_value());
  EXPECT_FALSE(channel_layout(tagged({2}, Tag::a)).has_value());
  EXPECT_FALSE(
      with_channels({.kind = LayoutKind::kBlocked, .lanes = 16}, DataType::kFloat32, {2, 24, 4, 5}).has_value());
}

}  // namespace
}  // namespace foliot
