#include "foundation/objectstore/s3_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace foliot {
namespace {

class S3AccessTest : public testing::Test {
 protected:
  S3AccessTest() {
    std::filesystem::create_directories(home_ / ".aws");
    variables_["HOME"] = home_.string();
  }
  ~S3AccessTest() override { std::filesystem::remove_all(home_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(home_ / ".aws" / name) << text; }
  Result<S3Access> read() {
    return S3Access::read([this](const char* name) { return variables_[name]; });
  }

  const std::filesystem::path home_ =
      std::filesystem::path(testing::TempDir()) / ("foliot_s3_access_" + std::to_string(::getpid()));
  std::map<std::string, std::string> variables_;
};

TEST_F(S3AccessTest, TheEnvironmentGoesFirst) {
  write("credentials",
        "[default]\naws_access_key_id = file\naws_secret_access_key = of-file\naws_session_token = old\n");
  variables_["AWS_ACCESS_KEY_ID"] = "id";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_DEFAULT_REGION"] = "eu-west-1";
  variables_["AWS_ENDPOINT_URL"] = "http://store";
  const auto access = read();
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access.value(), (S3Access{.key_id = "id",
                                      .secret = "secret",
                                      .token = "",
                                      .region = "eu-west-1",
                                      .endpoint = "http://store",
                                      .ca_file = ""}));
}

TEST_F(S3AccessTest, ReadsTheProfilesOfFiles) {
  write("credentials",
        "# of the team\n[default]\naws_access_key_id=a\naws_secret_access_key=b\n\n[ml]\n"
        "aws_access_key_id = c\naws_secret_access_key = d=/+\naws_session_token = e\n");
  write("config", "[default]\nregion = eu-north-1\n[profile ml]\nregion = us-west-2\nendpoint_url = https://store\n");
  auto access = read();
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->key_id, "a");
  EXPECT_EQ(access->token, "");
  EXPECT_EQ(access->region, "eu-north-1");
  variables_["AWS_PROFILE"] = "ml";
  access = read();
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->secret, "d=/+");
  EXPECT_EQ(access->token, "e");
  EXPECT_EQ(access->region, "us-west-2");
  EXPECT_EQ(access->endpoint, "https://store");
}

TEST_F(S3AccessTest, SaysWhereCredentialsAreLookedFor) {
  variables_["AWS_PROFILE"] = "ml";
  auto access = read();
  ASSERT_FALSE(access.ok());
  EXPECT_NE(access.status().message().find("[ml] of " + (home_ / ".aws/credentials").string()), std::string::npos)
      << access.status().message();
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  access = read();
  ASSERT_FALSE(access.ok());
  EXPECT_NE(access.status().message().find("only the second is set"), std::string::npos) << access.status().message();
}

}  // namespace
}  // namespace foliot
