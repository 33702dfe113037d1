#include "foundation/core/call_label.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(CallLabelTest, KeepsAnIdThatFits) {
  const std::string id(kCallLabelBytesMax, 'a');
  const CallLabel label = call_label(id);
  EXPECT_EQ(label.text, id);
  EXPECT_EQ(label.bytes, kCallLabelBytesMax);
  EXPECT_FALSE(label.cut());
}

TEST(CallLabelTest, CutsALongIdAndSaysHowLongItWas) {
  const CallLabel label = call_label(std::string(200, 'a'));
  EXPECT_EQ(label.text, std::string(kCallLabelBytesMax, 'a'));
  EXPECT_EQ(label.bytes, 200u);
  EXPECT_TRUE(label.cut());
}

TEST(CallLabelTest, CutsHowItsModelWasChosen) {
  EXPECT_EQ(call_label("", "by lot").selection, "by lot");
  EXPECT_EQ(call_label("", std::string(1000, 'a')).selection.size(), kSelectionTextBytesMax);
}

TEST(CallLabelTest, CutsBetweenCharacters) {
  for (const std::string character : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {  // é, €, an emoji
    std::string id(kCallLabelBytesMax - 1, 'a');  // the last of 64 bytes would be the first of it
    id += character;
    EXPECT_EQ(call_label(id).text, std::string(kCallLabelBytesMax - 1, 'a'));
    id.erase(0, character.size() - 1);  // now it is whole within 64
    EXPECT_EQ(call_label(id + "b").text, id);
  }
}

TEST(CallLabelTest, CutsWhatIsNoTextAnywhere) {
  const std::string id(100, '\x80');
  EXPECT_EQ(call_label(id).text, std::string(kCallLabelBytesMax, '\x80'));
}

}  // namespace
}  // namespace foliot
