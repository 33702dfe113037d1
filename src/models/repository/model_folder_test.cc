#include "models/repository/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "models/repository/foreign_files.h"

namespace foliot {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() {
    std::string name = ::testing::TempDir() + "repositoryXXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~ModelFolderTest() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text = "x") {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<ModelFolder> scan() {
    auto result = scan_repository(root_, ModelConfig());
    EXPECT_TRUE(result.ok());
    return std::move(result).value();
  }
  std::filesystem::path root_;
};

TEST_F(ModelFolderTest, FindsBothForms) {
  file("b/model.onnx");
  file("a/1/model.onnx");
  file("a/10/model.onnx");
  file("a/9/model.onnx");
  file("a/model.toml", "batch_sizes = [1]");
  file(".foliot/x/model.onnx");
  file("readme.txt");
  const auto models = scan();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[0].version, "10");
  EXPECT_EQ(models[0].model, root_ / "a/10/model.onnx");
  EXPECT_EQ(models[0].config.compile.batch_sizes, std::vector<uint32_t>{1});
  EXPECT_EQ(models[1].name, "b");
  EXPECT_EQ(models[1].version, "1");
  for (const ModelFolder& model : models) EXPECT_TRUE(model.status.ok());
}

TEST_F(ModelFolderTest, NamesWhatOtherServersWouldRead) {
  file("flow/model.onnx");
  file("flow/MLmodel");
  file("plain/model.onnx");
  file("torch/model.pt");
  const auto models = scan();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_THAT(notes_of_foreign_settings(models[0]),
              ::testing::ElementsAre(HasSubstr("MLmodel is a file of MLflow's and is not read")));
  EXPECT_THAT(notes_of_foreign_settings(models[1]), ::testing::IsEmpty());
  EXPECT_THAT(models[2].status.message(), HasSubstr("model.pt is there: export it to ONNX, or serve it by a model.py"));
}

TEST_F(ModelFolderTest, FilesOfFrameworksAreContainers) {
  file("boosted/2/model.ubj");
  file("coded/model.py");
  file("coded/model.joblib");
  file("graph/model.onnx");
  file("graph/model.txt");
  file("tracked/MLmodel");
  file("tracked/model.pt");
  file("two/model.joblib");
  file("two/model.json");
  const auto models = scan();
  ASSERT_EQ(models.size(), 5u);
  EXPECT_EQ(models[0].model, root_ / "boosted/2/model.ubj");
  EXPECT_TRUE(models[0].is_container());
  EXPECT_EQ(models[1].model, root_ / "coded/model.py") << "which may load the other";
  EXPECT_FALSE(models[2].is_container()) << "a note beside the graph";
  EXPECT_TRUE(models[3].is_container()) << models[3].status.message();
  EXPECT_EQ(models[3].model, root_ / "tracked/MLmodel") << "which names the other";
  EXPECT_THAT(models[4].status.message(), HasSubstr("are two models; remove one of them"));
  const auto lone = scan_repository(root_ / "boosted/2", ModelConfig()).value();
  ASSERT_EQ(lone.size(), 1u);
  EXPECT_TRUE(lone[0].is_container()) << lone[0].status.message();
}

constexpr const char* kTritonSettings =
    "max_batch_size: 4\ninput { name: 'x' data_type: TYPE_FP32 dims: 3 }\nresponse_cache { enable: true }\n"
    "dynamic_batching { default_queue_policy { default_timeout_microseconds: 50000 } }\nmodel_warmup { name: 'x' }\n";

TEST_F(ModelFolderTest, SettingsOfTritonAreReadAndModelTomlGoesOverThem) {
  file("a/1/model.onnx");
  file("a/config.pbtxt", kTritonSettings);
  file("b/1/model.onnx");
  file("b/config.pbtxt", kTritonSettings);
  file("b/model.toml", "default_slo = \"20ms\"\nbatch_sizes = [1, 2, 4]\nweight = 2");
  file("c/model.onnx");
  const auto models = scan();
  ASSERT_EQ(models.size(), 3u);
  for (const ModelFolder& model : models) EXPECT_TRUE(model.status.ok()) << model.status.message();
  const ModelConfig& a = models[0].config;
  EXPECT_EQ(a.compile.batch_sizes, (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_EQ(a.default_slo, Duration::milliseconds(50));
  EXPECT_TRUE(a.cache);
  ASSERT_EQ(a.compile.declared.size(), 1u);
  EXPECT_THAT(notes_of_foreign_settings(models[0]),
              ::testing::ElementsAre(HasSubstr("config.pbtxt:5: 'model_warmup' is not read")));
  const ModelConfig& b = models[1].config;
  EXPECT_EQ(b.default_slo, Duration::milliseconds(20));
  EXPECT_EQ(b.weight, 2);
  EXPECT_TRUE(b.cache) << "field by field";
  EXPECT_THAT(notes_of_foreign_settings(models[1]),
              ::testing::ElementsAre(HasSubstr("model_warmup"),
                                     "config.pbtxt:4: default_timeout_microseconds is not heeded: "
                                     "model.toml sets default_slo"))
      << "what both say alike is no contradiction";
  EXPECT_TRUE(models[2].config.compile.declared.empty()) << "nothing is left of another model's";
}

TEST_F(ModelFolderTest, SettingsOfTritonChooseVersionAndFile) {
  for (const char* path : {"a/1/net.onnx", "a/2/net.onnx", "a/3/net.onnx", "b/1/model.onnx", "c/1/model.onnx"})
    file(path);
  file("a/config.pbtxt", "default_model_filename: 'net.onnx' version_policy { specific { versions: [1, 2] } }");
  file("b/config.pbtxt", "version_policy { specific { versions: 7 } }");
  file("c/config.pbtxt", "default_model_filename: 'net.onnx'");
  const auto models = scan();
  ASSERT_EQ(models.size(), 4u);
  EXPECT_TRUE(models[0].status.ok()) << models[0].status.message();
  EXPECT_EQ(models[0].name, "a/1");
  EXPECT_EQ(models[1].name, "a/2");
  EXPECT_EQ(models[1].model, root_ / "a/2/net.onnx");
  EXPECT_THAT(models[2].status.message(), HasSubstr("version 7 is to be served, and there is a model of 1"));
  EXPECT_THAT(models[3].status.message(), HasSubstr("no net.onnx"));
}

TEST_F(ModelFolderTest, EachOfSeveralVersionsIsAModel) {
  for (const char* path : {"a/1/model.onnx", "a/3/model.onnx", "a/4/model.py", "b/1/model.onnx", "b/2/model.onnx"})
    file(path);
  file("a/model.toml", "name = 'net'\nversions = [1, 4, 9]\n[labels]\nstable = 1\n[split]\nstable = 95\n4 = 5");
  file("b/model.toml", "versions = 'latest'");
  const auto models = scan();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "b");
  EXPECT_FALSE(models[0].is_version());
  EXPECT_EQ(models[1].name, "net/1");
  EXPECT_EQ(models[1].model, root_ / "a/1/model.onnx");
  EXPECT_EQ(models[2].name, "net/4");
  EXPECT_TRUE(models[2].is_container());
  for (const ModelFolder& model : {models[1], models[2]}) {
    EXPECT_TRUE(model.status.ok()) << model.status.message();
    EXPECT_TRUE(model.is_version());
    EXPECT_EQ(model.rules, (VersionRules{.labels = {{"stable", 1}}, .split = {{4, 5}, {1, 95}}}));
  }
  EXPECT_TRUE(models[1].foreign.notes.empty()) << "they are said once";
  EXPECT_THAT(models[2].foreign.notes, Contains(HasSubstr("no model of version 9")));
}

TEST_F(ModelFolderTest, ALabelOfOneVersionMakesItAVersion) {
  file("a/1/model.onnx");
  file("a/2/model.onnx");
  file("a/model.toml", "[labels]\nstable = 2");
  file("b/model.onnx");
  file("b/model.toml", "versions = 'all'");
  const auto models = scan();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a/2");
  EXPECT_EQ(models[1].name, "b/1");
}

TEST_F(ModelFolderTest, WhatIsWrongWithVersionsIsSaid) {
  const auto message = [this](const std::string& settings) {
    file("a/1/model.onnx");
    file("a/3/model.onnx");
    file("a/model.toml", settings);
    return scan().front().status.message();
  };
  EXPECT_THAT(message("versions = 'all'\n[labels]\ncanary = 2"),
              HasSubstr("model.toml: label 'canary' is version 2, which is not served; served are 1 and 3"));
  EXPECT_THAT(message("[labels]\ncanary = 1"),
              HasSubstr("label 'canary' is version 1, which is not served; served are 3"));
  EXPECT_THAT(message("versions = 'all'\n[split]\n1 = 95\n3 = 4"), HasSubstr("model.toml:2: [split] adds up to 99"));
  EXPECT_THAT(message("versions = 'all'\n[split]\nbeta = 100"), HasSubstr("[split] has 'beta', which is no label"));
  EXPECT_THAT(message("versions = 'all'\n[labels]\n3 = 1"), HasSubstr("model.toml:3: '3' is no label"));
  EXPECT_THAT(message("versions = 'all'\nshadow = 'beta'\n[split]\n1 = 100"),
              HasSubstr("shadow is 'beta', which is no"));
  EXPECT_THAT(message("versions = 'all'\nshadow = '3'"), HasSubstr("shadow is '3', and another version must answer"));
  EXPECT_THAT(message("versions = 'all'\nshadow = '3'\n[split]\n1 = 95\n3 = 5"),
              HasSubstr("another version must answer"));
  EXPECT_THAT(message("versions = 'all'\nrollback = true\n[split]\n1 = 100"),
              HasSubstr("rollback compares the versions of a [split], which has 1"));
  EXPECT_THAT(message("versions = [7]"), HasSubstr("version 7 is to be served, and there is a model of 1 and 3"));
  for (const char* versions : {"'newest'", "[0]", "[1, 1]", "[]", "{oldest = 2}", "{latest = 0}", "2"}) {
    EXPECT_THAT(message(std::string("versions = ") + versions), HasSubstr("model.toml:1: ")) << versions;
  }
}

TEST_F(ModelFolderTest, TwoModelsOfOneNameAreBrokenWithAllTheirVersions) {
  for (const char* path : {"a/1/model.onnx", "a/2/model.onnx", "b/1/model.onnx"}) file(path);
  file("a/model.toml", "versions = 'all'");
  file("b/model.toml", "name = 'a'");
  for (const ModelFolder& model : scan()) {
    if (model.name == "a/2") continue;
    EXPECT_THAT(model.status.message(), HasSubstr("two models of one name, 'a'")) << model.name;
  }
}

TEST_F(ModelFolderTest, BrokenSettingsOfTritonBreakTheirModelAlone) {
  file("a/1/model.onnx");
  file("b/1/model.onnx");
  file("b/config.pbtxt", "max_batch_size: 8\ninput {");
  file("c/config.pbtxt", std::string(kForeignBytesMax + 1, ' '));
  file("c/model.onnx");
  file("d/config.pbtxt", "platform: 'ensemble'");
  file("e/model.onnx");
  std::string name = ::testing::TempDir() + "outsideXXXXXX";
  const std::filesystem::path outside = mkdtemp(name.data());
  std::ofstream(outside / "config.pbtxt") << "secret";
  std::filesystem::create_symlink(outside / "config.pbtxt", root_ / "e/config.pbtxt");
  const auto models = scan();
  std::filesystem::remove_all(outside);
  ASSERT_EQ(models.size(), 5u);
  EXPECT_TRUE(models[0].status.ok());
  EXPECT_THAT(models[1].status.message(), HasSubstr("b/config.pbtxt:2:"));
  EXPECT_THAT(models[2].status.message(), HasSubstr("c/config.pbtxt has more than 65536 bytes"));
  EXPECT_THAT(models[3].status.message(), HasSubstr("pipeline.toml")) << "not that there is no model.onnx";
  EXPECT_THAT(models[4].status.message(), HasSubstr("leads out of the repository"));
}

TEST_F(ModelFolderTest, SettingsOfTritonBelongToTheModelButAreNoPartOfIt) {
  file("a/model.onnx");
  file("a/config.pbtxt", "max_batch_size: 4");
  const auto before = scan();
  EXPECT_THAT(list_model_files(before[0].model).value(), ::testing::ElementsAre(root_ / "a/model.onnx"));
  const std::string signature = signature_of(before[0]);
  file("a/config.pbtxt", "max_batch_size: 16");
  EXPECT_NE(signature_of(scan()[0]), signature) << "it is loaded again";
  const auto lone = scan_repository(root_ / "a", ModelConfig()).value();
  ASSERT_EQ(lone.size(), 1u);
  EXPECT_EQ(lone[0].config.compile.batch_sizes.back(), 16u);
}

TEST_F(ModelFolderTest, SettingsOfMlserverAreReadWhereThereIsNoFileOfTriton) {
  file("a/net.onnx");
  file("a/model-settings.json", R"({"name": "renamed", "parameters": {"uri": "./net.onnx", "version": "4"}})");
  file("b/model.joblib");
  file("b/model-settings.json", R"({"implementation": "mlserver_sklearn.SKLearnModel"})");
  file("c/model.py");
  file("c/model-settings.json", R"({"implementation": "mlserver_sklearn.SKLearnModel", "max_batch_size": 3})");
  file("d/model.onnx");
  file("d/config.pbtxt", "max_batch_size: 2");
  file("d/model-settings.json", "no JSON");
  file("e/model.onnx");
  file("e/model-settings.json", "no JSON");
  std::map<std::string, ModelFolder> models;
  for (ModelFolder& model : scan()) models[model.name] = model;
  EXPECT_EQ(models["renamed"].model, root_ / "a/net.onnx");
  EXPECT_EQ(models["renamed"].version, "4");
  EXPECT_TRUE(models["b"].is_container()) << models["b"].status.message();
  EXPECT_EQ(models["b"].foreign.runtime, "mlserver_sklearn");
  EXPECT_TRUE(models["c"].status.ok()) << "a model.py was written: " << models["c"].status.message();
  EXPECT_EQ(models["c"].config.container->batch_size_max, 3u);
  EXPECT_TRUE(models["d"].status.ok()) << models["d"].status.message();
  EXPECT_THAT(notes_of_foreign_settings(models["d"]),
              ::testing::ElementsAre(HasSubstr("model-settings.json is a file of MLServer's and is not read")));
  EXPECT_THAT(models["e"].status.message(), HasSubstr("e/model-settings.json:1:2: this is no JSON"));
}

TEST_F(ModelFolderTest, SettingsOfTritonGiveAContainerItsBatches) {
  file("a/1/model.py");
  file("a/config.pbtxt",
       "max_batch_size: 12\noutput { name: 'y' }\ndynamic_batching { max_queue_delay_microseconds: 500 }");
  const auto models = scan();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_TRUE(models[0].status.ok()) << models[0].status.message();
  EXPECT_EQ(models[0].config.container->batch_size_max, 12u);
  EXPECT_EQ(models[0].config.batch_delay, Duration::microseconds(500));
  EXPECT_THAT(
      notes_of_foreign_settings(models[0]),
      ::testing::ElementsAre(HasSubstr("config.pbtxt:2: inputs and outputs are those that model.py describes")));
}

TEST_F(ModelFolderTest, FindsContainers) {
  file("a/model.py");
  file("a/model.toml", "[container]\nreplicas = 2");
  file("b/3/model.py");
  file("b/2/model.onnx");
  file("b/model.toml", "batch_delay = \"3ms\"");
  file("c/model.py");
  file("c/model.onnx");
  file("d/model.onnx");
  file("d/model.toml", "[container]\nreplicas = 2");
  const auto models = scan();
  ASSERT_EQ(models.size(), 4u);
  EXPECT_TRUE(models[0].status.ok()) << models[0].status.message();
  EXPECT_TRUE(models[0].is_container());
  EXPECT_EQ(models[0].config.container->replicas, 2u);
  EXPECT_EQ(models[0].config.batch_delay, std::nullopt) << "the policy's to choose, unless it is said";
  EXPECT_TRUE(models[1].is_container()) << "the highest version is one";
  EXPECT_EQ(models[1].version, "3");
  EXPECT_EQ(models[1].config.batch_delay, Duration::milliseconds(3));
  EXPECT_THAT(models[2].status.message(), HasSubstr("are two models of one name"));
  EXPECT_THAT(models[3].status.message(), HasSubstr("has a table [container]"));
}

TEST_F(ModelFolderTest, ApplicationsAndPipelinesAreNoModels) {
  file("a/model.onnx");
  file("b/application.toml");
  file("c/application.toml");
  file("c/model.onnx");
  file("d/pipeline.toml");
  file("d/model.onnx");
  EXPECT_EQ(scan().size(), 1u);
}

TEST_F(ModelFolderTest, ABrokenModelIsSaidAndTheOthersGoOn) {
  file("a/model.onnx");
  file("b/model.toml", "nonsense = 1");
  file("b/model.onnx");
  file("c/weights.bin");
  const auto models = scan();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_TRUE(models[0].status.ok());
  EXPECT_THAT(models[1].status.message(), HasSubstr("nonsense"));
  EXPECT_THAT(models[2].status.message(), HasSubstr("no model.onnx"));
}

TEST_F(ModelFolderTest, AnEntryThatCannotBeLookedAtIsABrokenModel) {
  file("good/model.onnx");
  file("version/1/model.onnx");
  file("settings/model.onnx");
  file("notes.txt");
  std::filesystem::create_symlink("itself", root_ / "itself");
  std::filesystem::create_symlink("nowhere", root_ / "to_nothing");
  std::filesystem::create_symlink("2", root_ / "version/2");
  std::filesystem::create_symlink("model.toml", root_ / "settings/model.toml");
  std::map<std::string, std::string> said;
  for (const ModelFolder& model : scan()) said[model.name] = model.status.message();
  EXPECT_EQ(said.size(), 5u);
  EXPECT_EQ(said["good"], "");
  EXPECT_THAT(said["itself"], HasSubstr("itself: Too many levels of symbolic links"));
  EXPECT_THAT(said["to_nothing"], HasSubstr("to_nothing is a link that leads to nothing"));
  EXPECT_THAT(said["version"], HasSubstr("version/2/model.onnx: Too many levels of symbolic links"));
  EXPECT_THAT(said["settings"], HasSubstr("settings/model.toml: Too many levels of symbolic links"));
}

TEST_F(ModelFolderTest, NoFifoIsOpened) {
  file("a/model.onnx");
  file("b/1/weights");
  ASSERT_EQ(mkfifo((root_ / "a/model.toml").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((root_ / "b/1/model.onnx").c_str(), 0600), 0);
  const auto models = scan();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_THAT(models[0].status.message(), HasSubstr("a/model.toml is no regular file"));
  EXPECT_THAT(models[1].status.message(), HasSubstr("no model.onnx"));
}

TEST_F(ModelFolderTest, TwoOfOneNameAreBothBroken) {
  file("a/model.onnx");
  file("a/1/model.onnx");
  file("b/model.onnx");
  file("c/model.onnx");
  file("c/model.toml", "name = \"b\"");
  const auto models = scan();
  ASSERT_EQ(models.size(), 3u);
  for (const ModelFolder& model : models) EXPECT_THAT(model.status.message(), HasSubstr("two models of one name"));
}

TEST_F(ModelFolderTest, NothingLeadsOutOfTheRepository) {
  std::string name = ::testing::TempDir() + "outsideXXXXXX";
  const std::filesystem::path outside = mkdtemp(name.data());
  std::filesystem::create_directories(outside / "1");
  std::ofstream(outside / "1/model.onnx") << "x";
  std::ofstream(outside / "model.toml") << "secret";
  file("store/model.onnx");
  file("settings/model.onnx");
  std::filesystem::create_directories(root_ / "file/1");
  std::filesystem::create_directories(root_ / "version");
  std::filesystem::create_directories(root_ / "inside/1");
  std::filesystem::create_symlink(outside, root_ / "folder");
  std::filesystem::create_symlink(outside / "1", root_ / "version/1");
  std::filesystem::create_symlink("../../" / outside.lexically_relative(root_.parent_path()) / "1/model.onnx",
                                  root_ / "file/1/model.onnx");
  std::filesystem::create_symlink(outside / "model.toml", root_ / "settings/model.toml");
  std::filesystem::create_symlink("../../store/model.onnx", root_ / "inside/1/model.onnx");
  for (const ModelFolder& model : scan()) {
    if (model.name == "inside" || model.name == "store") {
      EXPECT_TRUE(model.status.ok()) << model.status.message();
    } else {
      EXPECT_FALSE(model.status.ok()) << model.name;
      EXPECT_THAT(model.status.message(), ::testing::AnyOf(HasSubstr("leads out of"), HasSubstr("no model.onnx")));
      EXPECT_THAT(model.status.message(), ::testing::Not(HasSubstr("secret")));
    }
  }
  std::filesystem::remove_all(outside);
}

TEST_F(ModelFolderTest, ANameMustBeOneThatClientsCanSay) {
  for (const std::string& bad :
       std::vector<std::string>{"../up", "..", "a/b", "a\\u0000b", "a\\nb", std::string(300, 'x')}) {
    file("a/model.onnx");
    file("a/model.toml", "name = \"" + bad + "\"");
    const auto models = scan();
    ASSERT_EQ(models.size(), 1u);
    EXPECT_EQ(models[0].name, "a") << bad;
    EXPECT_THAT(models[0].status.message(), HasSubstr("name")) << bad;
  }
}

TEST_F(ModelFolderTest, AllThatLiesBesideTheModelIsPartOfIt) {
  file("a/1/model.onnx");
  file("a/1/weights.bin");
  file("a/1/more/weights.bin");
  file("a/1/.hidden");
  file("a/1/.git/x");
  file("a/model.toml", "");
  const auto files = list_model_files(root_ / "a/1/model.onnx");
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, ::testing::ElementsAre(root_ / "a/1/model.onnx", root_ / "a/1/more/weights.bin",
                                             root_ / "a/1/weights.bin"));
  EXPECT_EQ(list_model_files(root_ / "a/2/model.onnx").status().code(), StatusCode::kNotFound);
}

TEST_F(ModelFolderTest, AFileIsAModelThatIsNamedAfterIt) {
  file("downloads/net.onnx");
  file("downloads/net.onnx.data");
  file("downloads/net_more/x");
  file("downloads/network.onnx");
  file("downloads/diary.txt");
  file("downloads/model.toml", "batch_sizes = [2]");
  const auto models = scan_repository(root_ / "downloads/net.onnx", ModelConfig()).value();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_TRUE(models[0].status.ok()) << models[0].status.message();
  EXPECT_EQ(models[0].name, "net");
  EXPECT_EQ(models[0].model, root_ / "downloads/net.onnx");
  EXPECT_EQ(models[0].config.compile.batch_sizes, std::vector<uint32_t>{2});
  EXPECT_FALSE(models[0].config.compile.owns_folder);
  EXPECT_THAT(list_model_files(models[0].model, false).value(),
              ::testing::ElementsAre(root_ / "downloads/net.onnx", root_ / "downloads/net.onnx.data"));
  EXPECT_EQ(model_files_bytes(models[0]), 2u);
  const std::string before = signature_of(models[0]);
  file("downloads/diary.txt", "longer");
  EXPECT_EQ(signature_of(models[0]), before);
  file("downloads/net.onnx.data", "longer");
  EXPECT_NE(signature_of(models[0]), before);
}

TEST_F(ModelFolderTest, AFolderWithAModelInItIsAModelThatIsNamedAfterIt) {
  file("digits/model.onnx");
  file("digits/data/weights.bin");
  file("spam/model.py");
  file("code/resnet50.onnx");
  const auto digits = scan_repository(root_ / "digits", ModelConfig()).value();
  ASSERT_EQ(digits.size(), 1u);
  EXPECT_TRUE(digits[0].status.ok()) << digits[0].status.message();
  EXPECT_EQ(digits[0].name, "digits");
  EXPECT_TRUE(digits[0].config.compile.owns_folder);
  EXPECT_EQ(model_files_bytes(digits[0]), 2u);
  for (const char* path : {"spam", "spam/", "spam/model.py"}) {
    const auto spam = scan_repository(root_ / path, ModelConfig()).value();
    ASSERT_EQ(spam.size(), 1u) << path;
    EXPECT_EQ(spam[0].name, "spam") << path;
    EXPECT_TRUE(spam[0].is_container()) << path;
  }
  EXPECT_EQ(scan_repository(root_ / "code", ModelConfig()).value()[0].name, "code");
}

TEST_F(ModelFolderTest, AFolderWithSettingsOfAnotherServerIsTheModelThatTheyDescribe) {
  file("svm/model-settings.json",
       R"({"name": "mnist", "implementation": "mlserver_sklearn.SKLearnModel",
           "parameters": {"uri": "./mnist-svm.joblib", "version": "4"}})");
  file("svm/settings.json", "{}");
  file("svm/mnist-svm.joblib");
  file("svm/model.json");
  file("dense/config.pbtxt", "name: \"dense\" platform: \"onnxruntime_onnx\" version_policy { all { } }");
  file("dense/1/model.onnx");
  file("dense/2/model.onnx");
  file("wrong/model-settings.json", "no JSON");
  file("svm/other/model.onnx");
  const auto svm = scan_repository(root_ / "svm", ModelConfig()).value();
  ASSERT_EQ(svm.size(), 1u);
  EXPECT_TRUE(svm[0].status.ok()) << svm[0].status.message();
  EXPECT_EQ(svm[0].name + " " + svm[0].version, "mnist 4");
  EXPECT_EQ(svm[0].model, root_ / "svm/mnist-svm.joblib");
  EXPECT_THAT(svm[0].foreign.notes, Contains(HasSubstr("models in other are not read")));
  const auto dense = scan_repository(root_ / "dense/", ModelConfig()).value();
  ASSERT_EQ(dense.size(), 2u);
  EXPECT_THAT(dense[0].foreign.notes, Not(Contains(HasSubstr("are not read")))) << "versions are no further models";
  for (const ModelFolder& model : dense) EXPECT_EQ(client_name(model.name), "dense") << model.status.message();
  const auto wrong = scan_repository(root_ / "wrong", ModelConfig()).value();
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_THAT(wrong[0].status.message(), HasSubstr("this is no JSON"));
}

TEST_F(ModelFolderTest, AMissingRepositoryIsSaidWithWhatToDo) {
  const auto result = scan_repository(root_ / "absent", ModelConfig());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(result.status().message(), HasSubstr("NAME/model.onnx"));
}

}  // namespace
}  // namespace foliot
