#include "engine/device/cpu/layout_name.h"

#include <gtest/gtest.h>

#include "engine/device/cpu/layout.h"

namespace foliot {
namespace {

using Tag = dnnl::memory::format_tag;

std::string name_of(Tag tag) {
  return layout_name(layout_bytes(Descriptor({2, 32, 5, 7}, dnnl::memory::data_type::f32, tag)));
}

TEST(LayoutNameTest, NamesAsOneDnnDoes) {
  EXPECT_EQ(name_of(Tag::abcd), "dense");
  EXPECT_EQ(name_of(Tag::acdb), "acdb");
  EXPECT_EQ(name_of(Tag::aBcd16b), "aBcd16b");
  EXPECT_EQ(name_of(Tag::ABcd16b16a), "ABcd16b16a");
}

TEST(LayoutNameTest, ReportsWhatIsDamaged) {
  EXPECT_EQ(layout_name("x"), "damaged");
  EXPECT_EQ(layout_name(std::string(16, '\x7f')), "damaged");
}

}  // namespace
}  // namespace foliot
