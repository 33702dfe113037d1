#include "foundation/config/repository_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RepositoryPathTest : public ::testing::Test {
 protected:
  RepositoryPathTest() {
    std::string name = ::testing::TempDir() + "repositoryXXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~RepositoryPathTest() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
  }
  // The file of the one model, relative to the root; "" of a folder of models.
  std::string lone(const std::string& path) {
    const auto found = find_lone_model(root_ / path);
    if (!found.ok()) return found.status().message();
    return *found ? (*found)->lexically_relative(root_).string() : "";
  }
  std::filesystem::path root_;
};

TEST_F(RepositoryPathTest, AFileIsOneModel) {
  file("net.onnx");
  file("digits/model.py");
  EXPECT_EQ(lone("net.onnx"), "net.onnx");
  EXPECT_EQ(lone("digits/model.py"), "digits/model.py");
  EXPECT_TRUE(list_repository(root_ / "net.onnx").value().empty());
  EXPECT_EQ(repository_folder(root_ / "net.onnx"), root_);
  EXPECT_EQ(repository_folder("net.onnx"), "net.onnx") << "there is none in this folder";
  EXPECT_EQ(cache_folder(root_ / "net.onnx", ""), root_ / ".foliot");
  EXPECT_EQ(cache_folder(root_ / "net.onnx", "/cache"), "/cache");
}

TEST_F(RepositoryPathTest, AFolderWithAModelInItIsOneModel) {
  file("graph/model.onnx");
  file("graph/data/weights.bin");
  file("code/model.py");
  file("named/resnet50.onnx");
  file("named/.foliot/x");
  file("named/labels.txt");
  EXPECT_EQ(lone("graph"), "graph/model.onnx");
  EXPECT_EQ(lone("code"), "code/model.py");
  EXPECT_EQ(lone("named"), "named/resnet50.onnx");
  EXPECT_TRUE(list_repository(root_ / "graph").value().empty());
}

TEST_F(RepositoryPathTest, AFolderWithSettingsOfAnotherServerIsOneModel) {
  file("mlserver/model-settings.json");
  file("mlserver/settings.json");
  file("mlserver/iris.joblib");
  file("triton/config.pbtxt");
  file("triton/1/model.onnx");
  file("both/model-settings.json");
  file("both/model.joblib");
  file("many/settings.json");
  file("many/a/model-settings.json");
  EXPECT_EQ(lone("mlserver"), "mlserver/model-settings.json");
  EXPECT_EQ(lone("triton"), "triton/config.pbtxt");
  EXPECT_EQ(lone("both"), "both/model.joblib");
  EXPECT_EQ(lone("many"), "");
  EXPECT_TRUE(list_repository(root_ / "triton").value().empty());
}

TEST_F(RepositoryPathTest, AFolderOfFoldersIsARepository) {
  file("models/a/model.onnx");
  file("models/b/1/model.onnx");
  file("models/stray.onnx");
  EXPECT_EQ(lone("models"), "");
  EXPECT_THAT(list_repository(root_ / "models").value(),
              ElementsAre(root_ / "models/a", root_ / "models/b", root_ / "models/stray.onnx"));
  EXPECT_EQ(repository_folder(root_ / "models"), root_ / "models");
  std::filesystem::create_directories(root_ / "empty");
  EXPECT_EQ(lone("empty"), "");
}

TEST_F(RepositoryPathTest, ErrorsNameThePathAndTheRemedy) {
  file("iris.joblib");
  file("notes.txt");
  file("two/a.onnx");
  file("two/b.onnx");
  file("both/model.onnx");
  file("both/model.py");
  std::filesystem::create_symlink("itself", root_ / "itself");
  EXPECT_EQ(find_lone_model(root_ / "absent").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(lone("absent"), HasSubstr("absent'; give a .onnx file"));
  EXPECT_THAT(lone("iris.joblib"), HasSubstr("iris.joblib' must be named model.joblib, in a folder of its own"));
  EXPECT_THAT(lone("notes.txt"), HasSubstr("notes.txt' is no model; give a .onnx file"));
  EXPECT_THAT(lone("two"), HasSubstr("has 2 .onnx files, such as a.onnx and b.onnx; give one of them"));
  EXPECT_THAT(lone("two"), HasSubstr("two/a/model.onnx"));
  EXPECT_THAT(lone("both"), HasSubstr("are two models; remove one of them"));
  EXPECT_THAT(lone("itself"), HasSubstr("itself' cannot be looked at"));
}

}  // namespace
}  // namespace foliot
