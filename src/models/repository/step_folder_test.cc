#include "models/repository/step_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace foliot {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StepFolderTest : public testing::Test {
 protected:
  StepFolderTest() {
    std::string name = testing::TempDir() + "foliot_step_folder_XXXXXX";
    root_ = ::mkdtemp(name.data());
    fs::create_directories(root_ / "photos");
  }
  ~StepFolderTest() override { fs::remove_all(root_); }

  void write(int width) const {
    std::ofstream(root_ / "photos" / "pipeline.toml")
        << "[[stage]]\nname = 'decode'\nstep = 'decode'\nwidth = " << width
        << "\nheight = 4\nbytes = [2048]\ninputs = { bytes = 'photo' }\n"
           "[[output]]\nname = 'image'\nfrom = 'decode.image'\n";
  }
  std::vector<ModelFolder> scan() const { return scan_repository(root_, ModelConfig()).value(); }
  static std::string content_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path root_;
};

TEST_F(StepFolderTest, StepsAreModels) {
  write(6);
  const auto models = scan();
  ASSERT_EQ(models.size(), 1u) << "the pipeline itself is none";
  EXPECT_TRUE(models[0].status.ok()) << models[0].status.message();
  EXPECT_EQ(models[0].name, "photos.decode");
  EXPECT_EQ(models[0].pipeline, "photos");
  EXPECT_THAT(models[0].model.string(), HasSubstr(".foliot/steps/photos.decode."));
  EXPECT_THAT(models[0].config.compile.buckets.at("bytes"), testing::ElementsAre(2048));
  EXPECT_FALSE(content_of(models[0].model).empty());
}

TEST_F(StepFolderTest, AFolderNeverChanges) {
  write(6);
  const ModelFolder before = scan()[0];
  const std::string signature = signature_of(before);
  EXPECT_EQ(signature_of(scan()[0]), signature);
  write(7);
  const ModelFolder after = scan()[0];
  EXPECT_NE(after.folder, before.folder);
  EXPECT_TRUE(fs::exists(before.model));
  write(6);
  EXPECT_EQ(signature_of(scan()[0]), signature);
}

TEST_F(StepFolderTest, NothingElseIsLeft) {
  write(6);
  scan();
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(root_ / ".foliot" / "steps")) entries += entry.is_directory();
  EXPECT_EQ(entries, 1u);
}

TEST_F(StepFolderTest, AStepThatIsWrongSaysWhere) {
  write(0);
  const auto models = scan();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_THAT(models[0].status.message(), HasSubstr("photos/pipeline.toml:1: stage 'decode': step 'decode': width 0"));
}

TEST_F(StepFolderTest, SaysThatItCannotWrite) {
  write(6);
  std::ofstream(root_ / ".foliot") << "a file";
  const auto models = scan();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_THAT(models[0].status.message(), HasSubstr("name another folder with --cache"));
}

}  // namespace
}  // namespace foliot
