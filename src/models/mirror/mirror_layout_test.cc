#include "models/mirror/mirror_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foliot {
namespace {

std::vector<StoredObject> objects_of(const std::vector<std::string>& keys) {
  std::vector<StoredObject> objects;
  for (const std::string& key : keys) objects.push_back({.key = key, .etag = "e", .bytes = 1});
  return objects;
}

std::vector<std::string> paths_of(const MirroredFolder& folder) {
  std::vector<std::string> paths;
  for (const auto& [path, index] : folder.paths) paths.push_back(path);
  return paths;
}

TEST(MirrorLayoutTest, FoldersAreTheFirstPartsOfKeys) {
  const auto folders = lay_out(objects_of({"README", "a/", "a/1/model.onnx", "a/2/model.onnx", "a/model.toml",
                                           "b/.cache/x", ".foliot/k", "c/.x"}),
                               "vision");
  ASSERT_EQ(folders.size(), 1u);
  EXPECT_TRUE(folders.at("a").status.ok());
  EXPECT_EQ(paths_of(folders.at("a")), (std::vector<std::string>{"a/1/model.onnx", "a/2/model.onnx", "a/model.toml"}));
}

TEST(MirrorLayoutTest, AModelDirectlyUnderThePrefixIsOneModel) {
  for (const char* const file : {"model.onnx", "resnet.onnx", "model.py", "MLmodel"}) {
    const auto folders = lay_out(objects_of({file, "data/weights.bin", "model.toml"}), "resnet");
    ASSERT_EQ(folders.size(), 1u) << file;
    EXPECT_EQ(folders.at("resnet").paths.count("resnet/data/weights.bin"), 1u);
    EXPECT_EQ(folders.at("resnet").paths.count("resnet/" + std::string(file)), 1u);
  }
}

TEST(MirrorLayoutTest, RefusesKeysThatLeaveTheirFolder) {
  const auto folders = lay_out(objects_of({"../x", "a/../../x", "a/model.onnx", "b/model.onnx", "c//x", "d/\n"}), "v");
  for (const char* const refused : {"..", "a", "c", "d"}) {
    ASSERT_TRUE(folders.contains(refused)) << refused;
    EXPECT_FALSE(folders.at(refused).status.ok()) << refused;
  }
  EXPECT_NE(folders.at("a").status.message().find("a/../../x"), std::string::npos);
  EXPECT_TRUE(folders.at("b").status.ok()) << "others are none the worse for it";
}

TEST(MirrorLayoutTest, RefusesWhatIsAFileAndAFolder) {
  const auto folders = lay_out(objects_of({"a/1", "a/1-x", "a/1/model.onnx", "b/x/y", "b/xy"}), "v");
  ASSERT_FALSE(folders.at("a").status.ok());
  EXPECT_NE(folders.at("a").status.message().find("'a/1'"), std::string::npos) << folders.at("a").status.message();
  EXPECT_TRUE(folders.at("b").status.ok());
}

TEST(MirrorLayoutTest, RefusesObjectsWithoutAnEtag) {
  auto objects = objects_of({"a/model.onnx"});
  objects[0].etag = "";
  EXPECT_FALSE(lay_out(objects, "v").at("a").status.ok());
}

}  // namespace
}  // namespace foliot
