#include "load/workload/profile_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "model,input_bytes,output_bytes,weights_bytes,load_ms,b1_ms,b4_ms\n";

std::string table_error(const std::string& rows) { return parse_profile_table(kHeader + rows).status().message(); }

TEST(ProfileTableTest, HoldsClockworksModels) {
  const ModelProfile* profile = ProfileTable::v100().find("resnet50");
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->batch_sizes, (std::vector<uint32_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(profile->exec.back(), Duration::microseconds(15'670));
  EXPECT_EQ(profile->load, Duration::microseconds(8'330));
  EXPECT_EQ(ProfileTable::v100().profiles().size(), 6u);
  EXPECT_EQ(ProfileTable::v100().find("resnet51"), nullptr);
  const auto model = make_model_info(*profile, ModelId(3), "a", uint64_t{16} << 20);
  EXPECT_EQ(model->only().pages, 7u);
  EXPECT_EQ(model->only().seed_exec.at(0), profile->exec);
}

TEST(ProfileTableTest, ReadsCsv) {
  const auto table = parse_profile_table(std::string(kHeader) + "# mine\n\nsmall, 4, 8, 1000, 0.5, 1, 2.5\r\n");
  ASSERT_TRUE(table.ok()) << table.status().message();
  const ModelProfile* profile = table->find("small");
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->batch_sizes, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(profile->exec[1], Duration::microseconds(2'500));
}

TEST(ProfileTableTest, ReportsWhatIsWrongAndWhere) {
  EXPECT_THAT(table_error("a,1,1,1000,1,1\n"), HasSubstr("line 2: 6 fields where there are 7 columns"));
  EXPECT_THAT(table_error("a,1,1,1000,1,1,\n"), HasSubstr("line 2: b4_ms '' is no number of milliseconds"));
  EXPECT_THAT(table_error("a,1,1,1000,1,-1,2\n"), HasSubstr("line 2: b1_ms '-1'"));
  EXPECT_THAT(table_error("a,1,x,1000,1,1,2\n"), HasSubstr("line 2: output_bytes 'x' is no number of bytes"));
  EXPECT_THAT(table_error("a,1,1,1000,1,2,1\n"), HasSubstr("EXEC of batch size 4 takes less than of 1"));
  EXPECT_THAT(table_error("a,1,1,1000,1,1,2\na,1,1,1000,1,1,2\n"), HasSubstr("line 3: profile 'a' is given twice"));
  EXPECT_THAT(table_error(""), HasSubstr("holds no profile"));
  EXPECT_THAT(parse_profile_table("model,b1_ms\n").status().message(), HasSubstr("line 1: the columns must be model"));
  EXPECT_THAT(parse_profile_table("model,input_bytes,output_bytes,weights_bytes,load_ms,b2_ms\na,1,1,1,1,1\n")
                  .status()
                  .message(),
              HasSubstr("line 1: column 'b2_ms': batch sizes must begin with 1 and ascend"));
  EXPECT_THAT(read_profile_table("/nowhere.csv").status().message(), HasSubstr("/nowhere.csv"));
}

}  // namespace
}  // namespace foliot
