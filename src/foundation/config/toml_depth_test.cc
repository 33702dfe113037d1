#include "foundation/config/toml_depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

using testing::HasSubstr;

std::string key_of(size_t parts, const std::string& part, const std::string& dot = ".") {
  std::string key = part;
  for (size_t i = 1; i < parts; ++i) key += dot + part;
  return key;
}

TEST(TomlDepthTest, KeysHaveAsManyPartsAsAreAllowed) {
  for (const std::string part : {"a", "\"x.y\"", "'x.y'", "a-1"}) {
    for (const std::string dot : {".", " . "}) {
      const auto read = [&](size_t parts, const std::string& before, const std::string& after) {
        return parse_toml("x = 1\n" + before + key_of(parts, part, dot) + after, "a.toml").status().message();
      };
      EXPECT_EQ(read(kTomlKeyPartsMax, "", " = 1\n"), "");
      EXPECT_EQ(read(kTomlKeyPartsMax, "[", "]\n"), "");
      EXPECT_EQ(read(kTomlKeyPartsMax + 1, "", " = 1\n"), "a.toml:2: a key of more than 32 parts");
      EXPECT_EQ(read(kTomlKeyPartsMax + 1, "[[", "]]\n"), "a.toml:2: a key of more than 32 parts");
      EXPECT_THAT(read(200'000, "y = {", " = 1}\n"), HasSubstr("more than 32 parts"));
    }
  }
}

TEST(TomlDepthTest, WhatIsNoKeyDoesNotCount) {
  const std::string dots = key_of(1000, "a");
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "x" + std::to_string(i) + ".y = 1.5\n";
  for (const std::string& text : {"x = \"" + dots + "\"\n", "x = '" + dots + "'\n", "# " + dots + "\n",
                                  "x = \"\"\"\n\"" + dots + "\n\"\"\"\n", "x = '''\n'" + dots + "'''\n",
                                  "x = \"\\\"" + dots + "\"\n", "x = [" + key_of(100, "1.5", ", ") + "]\n", lines}) {
    EXPECT_EQ(parse_toml(text, "a.toml").status().message(), "") << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace foliot
