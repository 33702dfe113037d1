#include "engine/device/cpu/layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "foundation/base/random.h"

namespace foliot {
namespace {

using Tag = dnnl::memory::format_tag;

Descriptor tagged_as(const Shape& shape, Tag tag) { return Descriptor(shape, dnnl::memory::data_type::f32, tag); }

TEST(Layout, DenseIsEmpty) {
  EXPECT_TRUE(is_dense(tagged_as({2, 3, 4, 5}, Tag::nchw)));
  EXPECT_EQ(layout_bytes(tagged_as({2, 3, 4, 5}, Tag::nchw)), "");
  EXPECT_FALSE(is_dense(tagged_as({2, 3, 4, 5}, Tag::nhwc)));
  EXPECT_FALSE(is_dense(tagged_as({2, 3, 4, 5}, Tag::nChw16c)));
}

TEST(Layout, ComesBackAsItWas) {
  for (const Tag tag : {Tag::nhwc, Tag::nChw16c, Tag::nChw8c, Tag::OIhw16i16o, Tag::cdba}) {
    const Descriptor descriptor = tagged_as({3, 20, 4, 5}, tag);
    const auto read = read_layout(DataType::kFloat32, layout_bytes(descriptor));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == descriptor);
    EXPECT_EQ(read->get_size(), descriptor.get_size());
  }
}

TEST(Layout, KnowsWhatLiesRowMajor) {
  EXPECT_TRUE(lies_row_major(tagged_as({2, 32, 1, 1}, Tag::nChw16c)));
  EXPECT_TRUE(lies_row_major(tagged_as({2, 32, 1, 1}, Tag::nhwc)));
  EXPECT_FALSE(lies_row_major(tagged_as({2, 24, 1, 1}, Tag::nChw16c)));  // padded
  EXPECT_FALSE(lies_row_major(tagged_as({2, 32, 2, 1}, Tag::nChw16c)));
  EXPECT_FALSE(lies_row_major(tagged_as({2, 32, 2, 2}, Tag::nhwc)));
}

TEST(Layout, FlattensWhatLiesRowMajor) {
  for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw16c}) {
    Descriptor from = tagged_as({2, 32, 1, 1}, tag),
               to = with_type(tagged_as({2, 32, 1, 1}, Tag::nchw), DataType::kUint8);
    flatten_rows(&from, &to);
    EXPECT_EQ(shape_of(from), Shape{64});
    EXPECT_EQ(shape_of(to), Shape{64});
    EXPECT_EQ(to.data_type(), dnnl::memory::data_type::u8);
  }
  Descriptor from = tagged_as({2, 32, 2, 2}, Tag::nhwc), to = tagged_as({2, 32, 2, 2}, Tag::nhwc);
  flatten_rows(&from, &to);
  EXPECT_EQ(shape_of(from), (Shape{2, 32, 2, 2}));
}

TEST(Layout, RefusesDamage) {
  const std::string sound = layout_bytes(tagged_as({3, 20, 4, 5}, Tag::nChw16c));
  EXPECT_FALSE(read_layout(DataType::kFloat32, sound.substr(8)).ok());
  EXPECT_FALSE(read_layout(DataType::kFloat32, sound + "x").ok());
  EXPECT_FALSE(read_layout(DataType::kInt64, sound).ok());
  for (size_t word = 0; word < sound.size() / 8; ++word)
    for (const int64_t value : {int64_t{-1}, int64_t{1} << 50}) {
      std::string damaged = sound;
      std::memcpy(damaged.data() + 8 * word, &value, 8);
      EXPECT_FALSE(read_layout(DataType::kFloat32, damaged).ok()) << "word " << word << " is " << value;
    }
}

TEST(Layout, SurvivesRandomDamage) {
  Random random(1);
  const std::string sound = layout_bytes(tagged_as({3, 20, 4, 5}, Tag::nChw16c));
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = sound;
    for (int flips = 0; flips < 3; ++flips) damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    const auto read = read_layout(DataType::kFloat32, damaged);
    if (!read.ok()) continue;
    ++accepted;
    EXPECT_LT(read->get_size(), size_t{1} << 43);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace foliot
