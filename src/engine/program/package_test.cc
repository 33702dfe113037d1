#include "engine/program/package.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/program/mapped_copy.h"
#include "engine/program/metadata.h"
#include "foundation/base/random.h"

namespace foliot {

void PrintTo(WeightsTier tier, std::ostream* out) { *out << (tier == WeightsTier::kMemory ? "memory" : "disk"); }

namespace {

constexpr uint64_t kPage = uint64_t{1} << 20;

Tensor make_tensor(const char* name, Shape shape, Place place, uint64_t offset = 0) {
  Tensor tensor;
  tensor.name = name;
  tensor.bytes = byte_size(DataType::kFloat32, shape);
  tensor.shape = std::move(shape);
  tensor.place = place;
  tensor.offset = offset;
  return tensor;
}

Operator make_operator(OperatorKind kind, const char* name, std::vector<TensorIndex> inputs, TensorIndex output) {
  Operator step;
  step.kind = kind;
  step.name = name;
  step.inputs = std::move(inputs);
  step.outputs = {output};
  return step;
}

// "y = relu(x * w)", with an alias and a scratchpad.
Plan make_plan(uint32_t batch_size) {
  Plan plan;
  plan.batch_size = batch_size;
  const auto rows = static_cast<int64_t>(batch_size);
  plan.tensors = {make_tensor("x", {rows, 4}, Place::kInput),     make_tensor("w", {4, 8}, Place::kWeights, 4096),
                  make_tensor("h", {rows, 8}, Place::kWorkspace), make_tensor("view", {rows * 8}, Place::kWorkspace),
                  make_tensor("y", {rows, 8}, Place::kOutput),    make_tensor("pad", {16}, Place::kWorkspace, 512)};
  plan.tensors[1].layout = std::string("\0blocked\xff", 9);
  plan.tensors[3].alias_of = 2;
  Operator product = make_operator(OperatorKind::kMatMul, "product", {0, 1, kNoTensor}, 2);
  product.attributes.set("transpose_a", int64_t{0});
  product.attributes.set("alpha", 0.5);
  product.attributes.set("text", std::string("\0x", 2));
  product.attributes.set("axes", std::vector<int64_t>{1, -1});
  product.attributes.set("scales", std::vector<double>{1.5});
  product.post_operations.emplace_back().function = Function::kRelu;
  product.scratchpad = 5;
  product.kernel = "reference";
  plan.operators = {product, make_operator(OperatorKind::kReshape, "copy", {3}, 4)};
  plan.inputs = {0};
  plan.outputs = {4};
  plan.workspace_bytes = 1024;
  plan.input_bytes = batch_size * 16u;
  plan.output_bytes = batch_size * 32u;
  return plan;
}

Program make_program() {
  Program program;
  program.content_hash = "abc";
  program.device_kind = "cpu";
  program.device_fingerprint = "library 1";
  program.batch_sizes = {1, 4};
  program.inputs = {{.name = "x", .shape = {4}, .dimension_names = {""}}};
  program.outputs = {{.name = "y", .shape = {8}, .dimension_names = {""}, .labels = {"cat", "d\xffg"}}};
  program.buckets = {{.dimensions = {}, .seed_exec = {Duration::microseconds(5), Duration::microseconds(9)}}};
  program.plans = {make_plan(1), make_plan(4)};
  program.page_bytes = kPage;
  program.weights_bytes = 3 * 4096;
  program.seed_load = Duration::microseconds(70);
  program.operator_ends = {0.75, 1};
  program.notes = {"computed in float32: \xff"};
  return program;
}

std::vector<std::byte> make_weights() {
  std::vector<std::byte> weights(make_program().weights_bytes);
  Random random(1);
  for (std::byte& b : weights) b = static_cast<std::byte>(random.below(256));
  return weights;
}

class PackageTest : public testing::Test {
 protected:
  PackageTest() {
    std::string name = testing::TempDir() + "foliot_package_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~PackageTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path path() const { return folder_ / "model.foliot"; }
  void write() { ASSERT_TRUE(write_package(path(), make_program(), make_weights()).ok()); }
  // In place; at another time of the kernel's clock than whatever was before.
  void change(uint64_t at, char byte) const {
    const auto before = std::filesystem::last_write_time(path());
    do {
      std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
    } while (file_time_is(before));
  }
  bool file_time_is(std::filesystem::file_time_type time) const {
    return std::filesystem::last_write_time(path()) == time;
  }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Files that are written in one tick of the kernel's clock have the same time.
  void set_content(const std::string& bytes) {
    std::ofstream(path(), std::ios::binary) << bytes;
    std::filesystem::last_write_time(path(), std::filesystem::file_time_type(std::chrono::seconds(++writes_)));
  }

  std::filesystem::path folder_;
  int writes_ = 0;
};

class PackageTierTest : public PackageTest, public testing::WithParamInterface<WeightsTier> {};
INSTANTIATE_TEST_SUITE_P(Tiers, PackageTierTest, testing::Values(WeightsTier::kMemory, WeightsTier::kDisk));

TEST_P(PackageTierTest, KeepsProgramAndWeights) {
  write();
  const auto package = open_package(path(), GetParam());
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(encode_metadata(*package->program), encode_metadata(make_program()));
  EXPECT_EQ(package->program->plans[1].tensors[1].layout, std::string("\0blocked\xff", 9));
  EXPECT_EQ(package->program->buckets[0].seed_exec[1], Duration::microseconds(9));
  EXPECT_EQ(package->program->notes, make_program().notes);
  EXPECT_EQ(package->program->operator_ends, make_program().operator_ends);
  EXPECT_EQ(package->program->outputs[0].labels, make_program().outputs[0].labels);

  const std::vector<std::byte> weights = make_weights();
  ASSERT_EQ(package->weights->bytes(), weights.size());
  std::unique_ptr<std::byte, decltype(&std::free)> aligned(static_cast<std::byte*>(std::aligned_alloc(4096, 8192)),
                                                           &std::free);
  ASSERT_TRUE(package->weights->read(4096, {aligned.get(), 8192}).ok());
  EXPECT_EQ(std::memcmp(aligned.get(), weights.data() + 4096, 8192), 0);
  std::vector<std::byte> odd(1000);
  ASSERT_TRUE(package->weights->read(4096, odd).ok());
  EXPECT_EQ(std::memcmp(odd.data(), weights.data() + 4096, odd.size()), 0);
}

// A package of another version of Foliot, or a damaged one.
TEST(MetadataTest, NamesTheFunctionThatItDoesNotKnow) {
  const std::string bytes = encode_metadata(make_program());
  const size_t at = bytes.find("relu");
  ASSERT_NE(at, std::string::npos);
  const std::string other = std::string(bytes).replace(at, 4, "xelu");
  const auto decoded = decode_metadata(std::as_bytes(std::span(other)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.status().message(), "unknown function 'xelu'");
}

// The file's format knows texts only, and says so by the attribute's name.
TEST(MetadataTest, FunctionsAreTextsInTheFile) {
  Program program = make_program();
  Attributes& attributes = program.plans[0].operators[0].attributes;
  attributes.set("function", Function::kSumSquare);
  const std::string bytes = encode_metadata(program);
  EXPECT_NE(bytes.find("sum_square"), std::string::npos);
  const auto decoded = decode_metadata(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->plans[0].operators[0].attributes, attributes);
}

TEST_F(PackageTest, LeavesOneFileBehind) {
  write();
  write();
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(PackageTest, NamesTheFileThatIsMissing) {
  const auto package = open_package(path(), WeightsTier::kDisk);
  ASSERT_FALSE(package.ok());
  EXPECT_EQ(package.status().code(), StatusCode::kNotFound);
  EXPECT_NE(package.status().message().find(path().string()), std::string::npos);
}

TEST_F(PackageTest, NamesTheFolderThatCannotBeWritten) {
  const auto file = folder_ / "missing" / "model.foliot";
  const auto status = write_package(file, make_program(), make_weights());
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find(file.string()), std::string::npos);
}

TEST_F(PackageTest, LeavesNothingBehindWhenWritingFailsHalfway) {
  // A limit on the size of files stands in for a full disk.
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &previous), 0);
  const rlimit small{.rlim_cur = 10000, .rlim_max = previous.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto status = write_package(path(), make_program(), make_weights());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &previous), 0);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_P(PackageTierTest, RefusesTruncatedFiles) {
  write();
  const std::string whole = content();
  for (size_t size : {size_t{0}, size_t{7}, size_t{63}, size_t{4096}, size_t{5000}, whole.size() - 1}) {
    set_content(whole.substr(0, size));
    const auto package = open_package(path(), GetParam());
    ASSERT_FALSE(package.ok()) << size;
    EXPECT_EQ(package.status().code(), StatusCode::kInvalidArgument) << size;
  }
}

TEST_F(PackageTest, RefusesEveryDamagedByte) {
  write();
  const std::string whole = content();
  for (size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 149) {
    // The padding after header and metadata carries nothing.
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    set_content(damaged);
    const auto package = open_package(path(), WeightsTier::kDisk);
    if (package.ok()) {
      EXPECT_EQ(whole[at], 0);
      EXPECT_EQ(encode_metadata(*package->program), encode_metadata(make_program()));
    } else {
      EXPECT_EQ(package.status().code(), StatusCode::kInvalidArgument);
    }
  }
}

TEST_P(PackageTierTest, ReportsAFileTruncatedWhileInUse) {
  handle_bus_errors();
  write();
  const auto package = open_package(path(), GetParam());
  ASSERT_TRUE(package.ok()) << package.status().message();
  std::filesystem::resize_file(path(), content().size() - 4096);
  std::vector<std::byte> bytes(package->weights->bytes());
  const Status status = package->weights->read(0, bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("cut short"), std::string::npos) << status.message();
}

// Whichever byte of the weights it is, before a LOAD or between two of them.
TEST_P(PackageTierTest, ReportsAFileWrittenToWhileInUse) {
  const std::string whole = (write(), content());
  const uint64_t weights_offset = whole.size() - make_weights().size();
  for (const uint64_t at : {weights_offset, weights_offset + 5000, whole.size() - 1}) {
    write();
    const auto package = open_package(path(), GetParam());
    ASSERT_TRUE(package.ok()) << package.status().message();
    std::vector<std::byte> bytes(package->weights->bytes());
    ASSERT_TRUE(package->weights->read(0, bytes).ok());
    int found = 0;
    package->file->watch("model", [&] { ++found; });
    change(at, static_cast<char>(whole[at] + 1));
    const Status status = package->weights->read(0, bytes);
    ASSERT_FALSE(status.ok()) << at;
    EXPECT_EQ(status.message(), path().string() + " was damaged while in use: the weights are damaged");
    EXPECT_EQ(found, 1);
    change(at, whole[at]);
    EXPECT_FALSE(package->weights->read(0, bytes).ok()) << "for good";
    EXPECT_FALSE(package->file->check().ok());
    package->file->watch("model", [&] { ++found; });
    EXPECT_EQ(found, 2) << "one that watches later is called at once";
  }
}

TEST_P(PackageTierTest, KeepsReadingAFileThatWasWrittenToAndIsWhole) {
  write();
  const auto package = open_package(path(), GetParam());
  ASSERT_TRUE(package.ok()) << package.status().message();
  int found = 0;
  package->file->watch("model", [&] { ++found; });
  change(content().size() - 1, content().back());
  std::vector<std::byte> bytes(package->weights->bytes());
  ASSERT_TRUE(package->weights->read(0, bytes).ok());
  EXPECT_EQ(bytes, make_weights());
  EXPECT_TRUE(package->file->is_unchanged());
  EXPECT_EQ(found, 0);
}

TEST_P(PackageTierTest, KeepsReadingAFileThatWasReplaced) {
  write();
  const auto package = open_package(path(), GetParam());
  ASSERT_TRUE(package.ok()) << package.status().message();
  std::vector<std::byte> others(make_weights().size(), std::byte{1});
  ASSERT_TRUE(write_package(path(), make_program(), others).ok());
  std::vector<std::byte> bytes(package->weights->bytes());
  ASSERT_TRUE(package->weights->read(0, bytes).ok());
  EXPECT_EQ(bytes, make_weights());
}

TEST_F(PackageTest, RefusesAnotherVersion) {
  write();
  std::string bytes = content();
  bytes[8] = 99;
  set_content(bytes);
  const auto package = open_package(path(), WeightsTier::kMemory);
  ASSERT_FALSE(package.ok());
  EXPECT_NE(package.status().message().find("another version"), std::string::npos);
}

struct HostileCase {
  const char* name;
  void (*spoil)(Program&);
};
void PrintTo(const HostileCase& value, std::ostream* out) { *out << value.name; }

class HostileTest : public testing::TestWithParam<HostileCase> {};

TEST_P(HostileTest, IsRefused) {
  Program program = make_program();
  ASSERT_TRUE(check_program(program).ok()) << check_program(program).message();
  GetParam().spoil(program);
  const std::string bytes = encode_metadata(program);
  const auto decoded = decode_metadata(std::as_bytes(std::span(bytes)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.status().code(), StatusCode::kInvalidArgument);
}

constexpr uint64_t kHuge = ~uint64_t{0} - 63;

INSTANTIATE_TEST_SUITE_P(
    Metadata, HostileTest,
    testing::Values(HostileCase{"input_index", [](Program& p) { p.plans[0].operators[0].inputs[0] = 77; }},
                    HostileCase{"output_index", [](Program& p) { p.plans[0].operators[0].outputs[0] = 6; }},
                    HostileCase{"output_in_weights", [](Program& p) { p.plans[0].operators[0].outputs[0] = 1; }},
                    HostileCase{"scratchpad_index", [](Program& p) { p.plans[0].operators[0].scratchpad = 6; }},
                    HostileCase{"plan_input", [](Program& p) { p.plans[0].inputs[0] = 100; }},
                    HostileCase{"plan_input_place", [](Program& p) { p.plans[0].inputs[0] = 2; }},
                    HostileCase{"plan_outputs_missing", [](Program& p) { p.plans[1].outputs.clear(); }},
                    HostileCase{"offset_beyond_block", [](Program& p) { p.plans[0].tensors[2].offset = 1024; }},
                    HostileCase{"offset_wraps", [](Program& p) { p.plans[0].tensors[2].offset = kHuge; }},
                    HostileCase{"bytes_huge", [](Program& p) { p.plans[0].tensors[2].bytes = kHuge; }},
                    HostileCase{"weights_offset", [](Program& p) { p.plans[0].tensors[1].offset = 3 * 4096; }},
                    HostileCase{"misaligned", [](Program& p) { p.plans[0].tensors[2].offset = 4; }},
                    HostileCase{"shape_overflows",
                                [](Program& p) {
                                  p.plans[0].tensors[1].shape = {1 << 30, 1 << 30, 1 << 30};
                                }},
                    HostileCase{"shape_negative",
                                [](Program& p) {
                                  p.plans[0].tensors[1].shape = {-4, 8};
                                }},
                    HostileCase{"too_small",
                                [](Program& p) {
                                  p.plans[0].tensors[2].shape = {100, 8};
                                }},
                    HostileCase{"alias_of_nothing", [](Program& p) { p.plans[0].tensors[3].alias_of = 99; }},
                    HostileCase{"alias_of_itself", [](Program& p) { p.plans[0].tensors[3].alias_of = 3; }},
                    HostileCase{"alias_cycle",
                                [](Program& p) {
                                  p.plans[0].tensors[2].alias_of = 3;
                                  p.plans[0].tensors[3].alias_of = 2;
                                }},
                    HostileCase{"alias_elsewhere", [](Program& p) { p.plans[0].tensors[3].alias_offset = 64; }},
                    HostileCase{"post_operation_input",
                                [](Program& p) {
                                  p.plans[0].operators[0].post_operations[0] = {
                                      .kind = PostOperation::Kind::kBinary, .function = Function::kAdd, .input = 3};
                                }},
                    HostileCase{"post_operation_left_out",
                                [](Program& p) {
                                  p.plans[0].operators[0].post_operations[0] = {
                                      .kind = PostOperation::Kind::kBinary, .function = Function::kAdd, .input = 2};
                                }},
                    HostileCase{"workspace_huge", [](Program& p) { p.plans[0].workspace_bytes = kHuge; }},
                    HostileCase{"weights_odd", [](Program& p) { p.weights_bytes = 12345; }},
                    HostileCase{"page_zero", [](Program& p) { p.page_bytes = 0; }},
                    HostileCase{"no_batch_sizes", [](Program& p) { p.batch_sizes.clear(); }},
                    HostileCase{"batch_sizes_descend",
                                [](Program& p) {
                                  p.batch_sizes = {4, 1};
                                }},
                    HostileCase{"plan_missing", [](Program& p) { p.plans.pop_back(); }},
                    HostileCase{"plans_swapped", [](Program& p) { std::swap(p.plans[0], p.plans[1]); }},
                    HostileCase{"no_buckets", [](Program& p) { p.buckets.clear(); }},
                    HostileCase{"seed_missing", [](Program& p) { p.buckets[0].seed_exec.pop_back(); }},
                    HostileCase{"seed_negative", [](Program& p) { p.seed_load = Duration::nanoseconds(-1); }},
                    HostileCase{"ends_missing",
                                [](Program& p) {
                                  p.operator_ends = {1};
                                }},
                    HostileCase{"ends_descend",
                                [](Program& p) {
                                  p.operator_ends = {1.5, 1};
                                }},
                    HostileCase{"ends_short",
                                [](Program& p) {
                                  p.operator_ends = {0.5, 0.9};
                                }},
                    HostileCase{"ends_no_numbers",
                                [](Program& p) {
                                  p.operator_ends = {std::nan(""), 1};
                                }},
                    HostileCase{"notes_many", [](Program& p) { p.notes.resize(1000); }},
                    HostileCase{"note_long", [](Program& p) { p.notes[0].resize(5000); }},
                    HostileCase{"labels_many", [](Program& p) { p.outputs[0].labels.resize(kLabelsMax + 1); }},
                    HostileCase{"label_long", [](Program& p) { p.outputs[0].labels[0].resize(kLabelBytesMax + 1); }},
                    HostileCase{"spec_shape", [](Program& p) { p.inputs[0].shape[0] = 5; }},
                    HostileCase{"spec_unknown_dimension",
                                [](Program& p) {
                                  p.inputs[0].shape[0] = -1;
                                  p.inputs[0].dimension_names[0] = "sequence";
                                }}),
    [](const auto& hostile) { return std::string(hostile.param.name); });

}  // namespace
}  // namespace foliot
