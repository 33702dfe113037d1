#include "foundation/config/toml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The error of finish() after `read` has read `text`.
template <typename Read>
std::string error_of(std::string_view text, Read read) {
  const toml::table table = toml::parse(text);
  TomlReader reader(table, "a.toml");
  read(reader);
  return reader.finish().message();
}

TEST(TomlReaderTest, ReadsWhatIsThereAndKeepsDefaults) {
  const toml::table table = toml::parse(R"(
name = "x"
list = ["a", "b"]
one = "c"
rate = 3
yes = true
count = 7
sizes = [1, 2, 16]
slo = "50ms"
steps = ["1ms", "2ms"]
memory = "2MiB"
[inner]
rate = 0.5
[[many]]
[[many]]
)");
  TomlReader reader(table, "a.toml");
  std::string name;
  std::vector<std::string> list, one;
  double rate = 1, absent = 4;
  bool yes = false;
  uint32_t count = 0;
  std::vector<uint32_t> sizes;
  Duration slo;
  std::optional<Duration> stop;
  std::vector<Duration> steps;
  uint64_t memory = 0;
  reader.text("name", name);
  reader.texts("list", list);
  reader.texts("one", one);
  reader.positive("rate", rate);
  reader.positive("absent", absent);
  reader.flag("yes", yes);
  reader.whole("count", count, 1, 9);
  reader.ascending("sizes", sizes);
  reader.positive("slo", slo);
  reader.duration("stop", stop);
  reader.durations("steps", steps);
  reader.bytes("memory", memory);
  auto inner = reader.table("inner");
  ASSERT_TRUE(inner);
  double share = 0;
  inner->share("rate", share);
  EXPECT_EQ(reader.tables("many").size(), 2u);
  EXPECT_EQ(reader.tables("none").size(), 0u);
  ASSERT_TRUE(reader.finish().ok()) << reader.finish().message();
  EXPECT_TRUE(inner->finish().ok());

  EXPECT_EQ(name, "x");
  EXPECT_THAT(list, ElementsAre("a", "b"));
  EXPECT_THAT(one, ElementsAre("c"));
  EXPECT_EQ(rate, 3);
  EXPECT_EQ(absent, 4);
  EXPECT_TRUE(yes);
  EXPECT_EQ(count, 7u);
  EXPECT_THAT(sizes, ElementsAre(1, 2, 16));
  EXPECT_EQ(slo, Duration::milliseconds(50));
  EXPECT_FALSE(stop);
  EXPECT_THAT(steps, ElementsAre(Duration::milliseconds(1), Duration::milliseconds(2)));
  EXPECT_EQ(memory, uint64_t{2} << 20);
  EXPECT_EQ(share, 0.5);
}

TEST(TomlReaderTest, ErrorsNameFileLineAndKey) {
  double rate = 1;
  uint32_t count = 1;
  Duration slo;
  EXPECT_EQ(error_of("\nrate = -1", [&](TomlReader& r) { r.positive("rate", rate); }),
            "a.toml:2: 'rate' must be above 0, not -1");
  EXPECT_EQ(error_of("rate = \"1\"", [&](TomlReader& r) { r.number("rate", rate); }),
            "a.toml:1: 'rate' must be a number, not '1'");
  EXPECT_EQ(error_of("rate = nan", [&](TomlReader& r) { r.number("rate", rate); }),
            "a.toml:1: 'rate' must be a number, not nan");
  EXPECT_EQ(error_of("count = -3", [&](TomlReader& r) { r.whole("count", count, 0, 10); }),
            "a.toml:1: 'count' must be a whole number from 0 to 10, not -3");
  EXPECT_THAT(error_of("\n\nslo = \"5\"", [&](TomlReader& r) { r.duration("slo", slo); }),
              HasSubstr("a.toml:3: 'slo' is wrong: '5' is not a duration"));
  EXPECT_THAT(error_of("a = 1\nrat = 1", [&](TomlReader& r) { r.number("a", rate), r.number("rate", rate); }),
              HasSubstr("a.toml:2: unknown key 'rat'; known here are a, rate"));
  EXPECT_THAT(error_of("models = 1", [&](TomlReader& r) { r.tables("models"); }), HasSubstr("[[models]]"));
}

TEST(TomlReaderTest, ErrorsShowTheValueCutOffWhereItIsLong) {
  bool flag = false;
  const auto of = [&](const std::string& value) {
    return error_of("flag = " + value, [&](TomlReader& r) { r.flag("flag", flag); });
  };
  EXPECT_EQ(of("'yes'"), "a.toml:1: 'flag' must be true or false, not 'yes'");
  EXPECT_EQ(of("''"), "a.toml:1: 'flag' must be true or false, not ''");
  EXPECT_EQ(of("{ a = 1 }"), "a.toml:1: 'flag' must be true or false, not a table");
  EXPECT_EQ(of("[1, 'b', [2], true, 5.5, 6, 7, 8, 9]"),
            "a.toml:1: 'flag' must be true or false, not [1, 'b', a list, true, 5.5, 6, 7, 8, ...]");
  EXPECT_EQ(of("'" + std::string(61, 'x') + "'"),
            "a.toml:1: 'flag' must be true or false, not '" + std::string(60, 'x') + "...' (61 bytes)");
  double rate = 0;
  EXPECT_EQ(error_of("", [&](TomlReader& r) { r.positive("rate", rate); }), "a.toml:1: 'rate' must be above 0");
}

TEST(TomlReaderTest, TheFirstErrorStays) {
  double rate = 1;
  EXPECT_EQ(error_of("b = 1\na = 1\nrate = -1",
                     [&](TomlReader& r) {
                       r.positive("rate", rate);
                       r.fail("a", "is wrong");
                     }),
            "a.toml:3: 'rate' must be above 0, not -1");
}

TEST(TomlFileTest, NamesAnAbsentFile) {
  EXPECT_EQ(read_toml_file("no/such.toml").status().message(), "no/such.toml: no such file; check the path");
  EXPECT_EQ(read_toml_file("/").status().message(), "/: a folder, not a file");
}

TEST(TomlReaderTest, WeightsAreNumbersFromZeroOnOfWhichOneIsAbove) {
  const auto read = [](const std::string& value, std::vector<double>& to) {
    const Result<toml::table> table = parse_toml("w = " + value, "a.toml");
    TomlReader reader(*table, "a.toml");
    reader.weights("w", to);
    return reader.finish().message();
  };
  std::vector<double> weights;
  EXPECT_EQ(read("[0, 0.5, 2]", weights), "");
  EXPECT_THAT(weights, ElementsAre(0, 0.5, 2));
  for (const std::string wrong : {"1", "[]", "[0, 0]", "[1, -1]", "[1, nan]", "[1, inf]", "[1, '2']"}) {
    EXPECT_EQ(read(wrong, weights),
              "a.toml:1: 'w' must be a list of numbers from 0 on, of which one is above 0, not " + wrong);
  }
}

}  // namespace
}  // namespace foliot
