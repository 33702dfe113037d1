#include "models/repository/package_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace foliot {
namespace {

using testing::HasSubstr;

// `fingerprint`: of the device, whose kind is "device".
Program make_program(const std::string& fingerprint) {
  Tensor x{.name = "x", .shape = {1, 4}, .bytes = 16, .place = Place::kInput};
  Tensor y{.name = "y", .shape = {1, 4}, .bytes = 16, .place = Place::kOutput};
  Plan plan;
  plan.tensors = {x, y};
  plan.operators = {{.kind = OperatorKind::kReshape, .name = "copy", .inputs = {0}, .outputs = {1}}};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.input_bytes = plan.output_bytes = 16;
  Program program;
  program.device_kind = "device";
  program.device_fingerprint = fingerprint;
  program.batch_sizes = {1};
  program.inputs = {{.name = "x", .shape = {4}, .dimension_names = {""}}};
  program.outputs = {{.name = "y", .shape = {4}, .dimension_names = {""}}};
  program.buckets = {{.dimensions = {}, .seed_exec = {Duration::microseconds(5)}}};
  program.plans = {plan};
  program.page_bytes = 4096;
  program.weights_bytes = 4096;
  return program;
}

class PackageStoreTest : public testing::Test {
 protected:
  PackageStoreTest()
      : store_(make_folder() / "cache", WeightsTier::kMemory, "device 1",
               [this](const auto&, const CompileOptions& options, int output, const CompileWatch&) {
                 compiled_first_ += options.first_size_only ? 1 : 0;
                 return compile(output);
               }) {
    set_model("a");
  }
  ~PackageStoreTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& make_folder() {
    std::string name = testing::TempDir() + "foliot_store_XXXXXX";
    return folder_ = ::mkdtemp(name.data());
  }
  void set_model(const std::string& text) {
    std::filesystem::create_directories(model().parent_path());
    std::ofstream(model()) << text;
  }
  std::filesystem::path model() const { return folder_ / "model/model.onnx"; }
  Status compile(int output, const std::string& fingerprint = "1") {
    ++compiled_;
    if (during_) during_(output);
    if (!result_.ok()) return result_;
    return write_package(File(::dup(output)), make_program(fingerprint), std::vector<std::byte>(4096));
  }
  Result<Package> get() { return store_.get(model(), CompileOptions()); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> result;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) result.push_back(entry.path());
    return result;
  }

  std::filesystem::path folder_;
  PackageStore store_;
  std::atomic<int> compiled_ = 0;
  int compiled_first_ = 0;  // of these
  Status result_;
  std::function<void(int)> during_;
};

TEST_F(PackageStoreTest, CompilesOnceAndSharesWhatIsInUse) {
  const auto first = get();
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto second = get();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->program, second->program);
  EXPECT_EQ(compiled_, 1);
}

TEST_F(PackageStoreTest, AnythingThatMattersIsAnotherPackage) {
  const std::string key = store_.key_of(model(), {}).value();
  EXPECT_NE(store_.key_of(model(), {.batch_sizes = {1}}).value(), key);
  const PackageStore other(folder_, WeightsTier::kMemory, "device 2", {});
  EXPECT_NE(other.key_of(model(), {}).value(), key);
  std::ofstream(model().parent_path() / "weights.bin") << "x";
  EXPECT_NE(store_.key_of(model(), {}).value(), key);
  std::filesystem::remove(model().parent_path() / "weights.bin");
  std::ofstream(model().parent_path() / "model.toml") << "weight = 2";
  EXPECT_EQ(store_.key_of(model(), {}).value(), key);
  set_model("b");
  EXPECT_NE(store_.key_of(model(), {}).value(), key);
}

TEST_F(PackageStoreTest, ReportsWhatItsModelIsWhateverTheDevice) {
  const std::string content = get()->content;
  EXPECT_NE(content, "");
  EXPECT_EQ(get()->content, content) << "as when it was compiled";
  PackageStore other(
      folder_ / "other", WeightsTier::kMemory, "device 2",
      [this](const auto&, const auto&, int output, const CompileWatch&) { return compile(output, "2"); });
  EXPECT_EQ(other.get(model(), {})->content, content);
  set_model("b");
  EXPECT_NE(get()->content, content);
}

TEST_F(PackageStoreTest, ADamagedPackageIsMadeAnew) {
  ASSERT_TRUE(get().ok());
  std::ofstream(files().front(), std::ios::in | std::ios::out) << "damage";
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(compiled_, 2);
}

// Of a size that a small write changes, whatever the resolution of the time.
TEST_F(PackageStoreTest, APackageThatIsDamagedWhileInUseIsMadeAnew) {
  const auto used = get();
  ASSERT_TRUE(used.ok());
  std::filesystem::resize_file(files().front(), std::filesystem::file_size(files().front()) - 1);
  const auto anew = get();
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_NE(anew->program, used->program);
  EXPECT_TRUE(anew->file->check().ok());
  EXPECT_EQ(compiled_, 2);
}

// Two processors that share a folder, each with packages of its own; and one in the
// other's place, as a copy of the folder under other names would leave it.
TEST_F(PackageStoreTest, APackageOfAnotherDeviceIsNotRead) {
  PackageStore other(
      folder_ / "cache", WeightsTier::kMemory, "device 2",
      [this](const auto&, const auto&, int output, const CompileWatch&) { return compile(output, "2"); });
  EXPECT_EQ(get()->program->device_fingerprint, "1");
  EXPECT_EQ(other.get(model(), {})->program->device_fingerprint, "2");
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(files().size(), 2u);
  const auto file = [&](const PackageStore& store) {
    return folder_ / "cache" / (store.key_of(model(), {}).value() + ".foliot");
  };
  std::filesystem::rename(file(other), file(store_));
  EXPECT_EQ(get()->program->device_fingerprint, "1");
  EXPECT_EQ(compiled_, 3) << "compiled anew, not misread";
}

TEST_F(PackageStoreTest, AFailureLeavesNothingBehind) {
  result_ = Status::unimplemented("operator Frobnicate");
  EXPECT_EQ(get().status().message(), "operator Frobnicate");
  EXPECT_TRUE(files().empty());
}

TEST_F(PackageStoreTest, WhatTheCompilerWroteIsChecked) {
  during_ = [](int output) { EXPECT_EQ(::pwrite(output, "nonsense", 8, 1 << 20), 8); };  // behind the package
  EXPECT_EQ(get().status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(files().empty());
}

TEST_F(PackageStoreTest, AModelThatChangesMeanwhileIsToBeLoadedAgain) {
  during_ = [this](int) { set_model("b"); };
  const auto package = get();
  EXPECT_EQ(package.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(package.status().message(), HasSubstr("changed"));
  EXPECT_TRUE(files().empty());
  during_ = {};
  EXPECT_TRUE(get().ok());
}

TEST_F(PackageStoreTest, KeepsWholePackagesOnly) {
  const auto first = store_.get_first(model(), {});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(compiled_first_, 1);
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(store_.find(model(), {})->has_value());
  EXPECT_EQ(store_.get_first(model(), {})->program, first->program) << "copies share one";
  const auto whole = get();
  ASSERT_TRUE(whole.ok());
  EXPECT_NE(whole->program, first->program);
  EXPECT_NE(whole->content, first->content);
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(files().size(), 1u);
  std::vector<std::byte> weights(4096);
  EXPECT_TRUE(first->weights->read(0, weights).ok()) << "though its file is gone";
}

TEST_F(PackageStoreTest, AFirstSizeThatFailsLeavesNothingBehind) {
  during_ = [this](int) { set_model("b"); };
  EXPECT_EQ(store_.get_first(model(), {}).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(files().empty());
}

TEST_F(PackageStoreTest, OneOfSeveralThatWantAPackageCompilesIt) {
  std::promise<void> begun;
  std::promise<void> go_on;
  during_ = [&](int) {
    begun.set_value();
    go_on.get_future().wait();
  };
  std::thread one([this] { EXPECT_TRUE(get().ok()); });
  begun.get_future().wait();
  const auto cancelled = store_.get(model(), {}, {.progress = {}, .cancelled = [] { return true; }});
  EXPECT_EQ(cancelled.status().code(), StatusCode::kUnavailable);
  // It asks only while it waits.
  std::thread two([&] {
    bool asked = false;
    const auto let_in = [&] {
      if (!std::exchange(asked, true)) go_on.set_value();
      return false;
    };
    EXPECT_TRUE(store_.get(model(), {}, {.progress = {}, .cancelled = let_in}).ok());
  });
  one.join();
  two.join();
  EXPECT_EQ(compiled_, 1);
}

TEST_F(PackageStoreTest, AFolderThatCannotBeWrittenIsSaid) {
  std::ofstream(folder_ / "cache") << "a file";
  EXPECT_THAT(get().status().message(), HasSubstr("--cache"));
}

// Packages of other machines, by their keys.
class TestShare : public PackageShare {
 public:
  bool fetch(const std::string& key, int output) override {
    ++fetched;
    const auto found = packages.find(key);
    if (found == packages.end()) return false;
    return ::write(output, found->second.data(), found->second.size()) == static_cast<ssize_t>(found->second.size());
  }
  void offer(const std::string& key, const std::filesystem::path& package) override {
    std::ifstream file(package, std::ios::binary);
    packages[key] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::map<std::string, std::string> packages;
  int fetched = 0;
};

class SharedPackageStoreTest : public PackageStoreTest {
 protected:
  // The store of another machine.
  PackageStore machine(const std::string& name) {
    return {folder_ / name, WeightsTier::kMemory, "device 1",
            [this](const auto&, const CompileOptions&, int output, const CompileWatch&) { return compile(output); },
            share_};
  }
  const std::shared_ptr<TestShare> share_ = std::make_shared<TestShare>();
};

TEST_F(SharedPackageStoreTest, WhatOneMachineCompiledAnotherFinds) {
  PackageStore first = machine("first");
  PackageStore second = machine("second");
  ASSERT_TRUE(first.get(model(), {}).ok());
  ASSERT_EQ(share_->packages.size(), 1u);
  const auto found = second.find(model(), {});
  ASSERT_TRUE(found.ok() && found.value().has_value());
  EXPECT_EQ(found.value()->content.size(), 32u);
  EXPECT_EQ(compiled_, 1);
  const int fetched = share_->fetched;
  ASSERT_TRUE(machine("second").get(model(), {}).ok());
  EXPECT_EQ(share_->fetched, fetched) << "it lies here now";
  EXPECT_EQ(compiled_, 1);
}

TEST_F(SharedPackageStoreTest, ADamagedPackageIsCompiledAndOffered) {
  PackageStore first = machine("first");
  ASSERT_TRUE(first.get(model(), {}).ok());
  const std::string key = share_->packages.begin()->first;
  const std::string whole = share_->packages.begin()->second;
  for (const std::string& damaged : {std::string(), std::string("x"), whole.substr(0, whole.size() / 2)}) {
    share_->packages[key] = damaged;
    compiled_ = 0;
    PackageStore second = machine("second" + std::to_string(damaged.size()));
    ASSERT_TRUE(second.get(model(), {}).ok());
    EXPECT_EQ(compiled_, 1);
    EXPECT_EQ(share_->packages[key], whole);
  }
}

TEST_F(SharedPackageStoreTest, TwoProcessesShareAFolder) {
  PackageStore first = machine("shared");
  PackageStore second = machine("shared");
  ASSERT_TRUE(first.get(model(), {}).ok());
  share_->packages.clear();
  ASSERT_TRUE(second.get(model(), {}).ok());
  EXPECT_EQ(compiled_, 1);
}

}  // namespace
}  // namespace foliot
