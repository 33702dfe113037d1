#include "engine/worker/conformance/engine_conformance.h"

#include <cstring>
#include <thread>

namespace foliot {
namespace {

// Places of the io cache lie so far apart.
constexpr uint64_t kPlaceBytes = EngineSubject::kIoCacheBytes / 8;

// Small whole numbers, which every type of float represents.
std::vector<std::byte> row_of(const TensorSpec& tensor, uint64_t seed) {
  std::vector<std::byte> bytes(byte_size(tensor.type, tensor.shape));
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    const auto number = static_cast<float>((seed * 7 + at) % 100);
    std::memcpy(&bytes[at], &number, sizeof(number));
  }
  return bytes;
}

}  // namespace

EngineCase::EngineCase(std::string name_, Make make_) : name(std::move(name_)), make(std::move(make_)) {}

PayloadHandle PayloadRows::add(std::vector<std::byte> input, size_t output_bytes) {
  const PayloadHandle handle(rows_.size() + 1);
  rows_[handle] = {std::move(input), std::vector<std::byte>(output_bytes, std::byte{0xee})};
  return handle;
}

std::span<const std::byte> PayloadRows::input(PayloadHandle payload, uint32_t /*index*/) {
  return rows_.at(payload).input;
}

std::span<std::byte> PayloadRows::output(PayloadHandle payload, uint32_t /*index*/) { return rows_.at(payload).output; }
VisitReading PayloadRows::finish(PayloadHandle payload) {
  rows_.at(payload).finished = rows_.at(payload).output;
  return {};
}

EngineConformance::Added EngineConformance::add(uint32_t id, uint32_t variant) {
  Added added{subject_->model(ModelId(id), variant), {}};
  Result<WorkerModel> table = engine_.add(added.model);
  if (!table.ok()) {
    ADD_FAILURE() << table.status().message();
    return added;
  }
  added.table = std::move(table).value();
  for (size_t i = 0; i < added.table.batch_sizes.size(); ++i) {
    const Status prepared = engine_.prepare(ModelId(id), i);
    EXPECT_TRUE(prepared.ok()) << prepared.message();
  }
  return added;
}

std::vector<PageIndex> EngineConformance::pages(const Added& added, PageIndex first, bool downwards) {
  std::vector<PageIndex> result;
  for (uint32_t i = 0; i < added.table.pages; ++i) result.push_back(downwards ? first - i : first + i);
  return result;
}

void EngineConformance::load(const Added& added, PageIndex first, bool downwards) {
  const Status loaded = engine_.load(added.table.id, pages(added, first, downwards));
  EXPECT_TRUE(loaded.ok()) << loaded.message();
}

InferWork EngineConformance::work(const Added& added, uint32_t batch_size, uint32_t rows, uint32_t place) {
  InferWork result;
  result.action = {.id = ActionId(next_action_++), .type = ActionType::kInfer, .model = added.table.id};
  result.action.batch_size = batch_size;
  result.input_offset = place * kPlaceBytes;
  result.output_offset = result.input_offset + kPlaceBytes / 2;
  const ModelInfo& info = *added.model.info;
  const size_t output_bytes = byte_size(info.outputs[0].type, info.outputs[0].shape);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t seed = result.action.id.value() * kBatchSizeMax + row;
    result.action.rows.add({RequestId(seed), payloads_.add(row_of(info.inputs[0], seed), output_bytes)});
  }
  return result;
}

void EngineConformance::expect_outputs(const Added& added, const InferWork& work) {
  for (const BatchRows::Row& row : work.action.rows) {
    const std::span<const std::byte> output = payloads_.output(row.payload, 0);
    std::vector<std::byte> expected(output.size());
    if (!subject_->compute(added.model, work.action, payloads_.input(row.payload, 0), expected)) return;
    EXPECT_TRUE(std::ranges::equal(output, expected)) << "request " << row.request.value();
    EXPECT_TRUE(std::ranges::equal(payloads_.finished(row.payload), expected))
        << "finished before its outputs are there";
  }
}

void EngineConformance::expect_runs(const Added& added, uint32_t batch_size, uint32_t rows, uint32_t place) {
  const InferWork infer = work(added, batch_size, rows, place);
  engine_.input(infer);
  const Status status = engine_.run(infer);
  EXPECT_TRUE(status.ok()) << status.message();
  engine_.output(infer);
  expect_outputs(added, infer);
}

TEST_P(EngineConformance, AddSaysWhatAModelTakes) {
  const Added added = add(1, 0);
  EXPECT_EQ(added.table.id, ModelId(1));
  EXPECT_EQ(added.table.pages, added.model.info->only().pages);
  EXPECT_GE(added.table.pages, 1u);
  EXPECT_EQ(added.table.batch_sizes, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(added.table.batch_sizes, added.model.info->only().batch_sizes);
  ASSERT_EQ(added.table.io_bytes.size(), 2u);
  for (const IoBytes& bytes : added.table.io_bytes) {
    EXPECT_GT(bytes.input, 0u);
    EXPECT_GT(bytes.output, 0u);
    EXPECT_LE(std::max(bytes.input, bytes.output), kPlaceBytes / 2);
  }
}

TEST_P(EngineConformance, RunsEveryBatchSizeAndPartOfABatch) {
  const Added added = add(0, 0);
  load(added, 0);
  expect_runs(added, 1, 1);
  for (const uint32_t rows : {4, 1, 3}) expect_runs(added, 4, rows);
}

TEST_P(EngineConformance, RunsASmallBatchSizeBeforeTheOthersArePrepared) {
  Added added{subject_->model(ModelId(0), 0), {}};
  added.table = engine_.add(added.model).value();
  ASSERT_TRUE(engine_.prepare(ModelId(0), 0).ok());
  load(added, 0);
  expect_runs(added, 1);
  ASSERT_TRUE(engine_.prepare(ModelId(0), 1).ok());
  expect_runs(added, 4, 4);
}

TEST_P(EngineConformance, PagesAndPlacesDoNotMatter) {
  const Added added = add(0, 0);
  for (const uint32_t place : {0, 7, 3}) {
    load(added, EngineSubject::kPages - 1 - place, true);
    expect_runs(added, 4, 2, place);
    engine_.unload(added.table.id);
    load(added, place);
    expect_runs(added, 4, 2, place);
    engine_.unload(added.table.id);
  }
}

TEST_P(EngineConformance, ModelsTakeOverEachOthersPages) {
  const Added one = add(0, 0), two = add(1, 1);
  for (int round = 0; round < 3; ++round) {
    for (const Added& added : {one, two}) {
      load(added, 5);
      expect_runs(added);
      engine_.unload(added.table.id);
    }
  }
}

TEST_P(EngineConformance, LoadedModelsDoNotDisturbEachOther) {
  const Added one = add(0, 0), two = add(1, 1);
  load(one, 0);
  load(two, one.table.pages);
  expect_runs(one);
  expect_runs(two);
  engine_.unload(one.table.id);
  expect_runs(two);
  engine_.remove(one.table.id);
  expect_runs(two);
}

TEST_P(EngineConformance, BatchesInFlightKeepTheirPlaces) {
  const Added added = add(0, 0);
  load(added, 0);
  const InferWork one = work(added, 4, 4, 0), two = work(added, 1, 1, 1);
  engine_.input(one);
  engine_.input(two);
  EXPECT_TRUE(engine_.run(two).ok());
  EXPECT_TRUE(engine_.run(one).ok());
  engine_.output(one);
  engine_.output(two);
  expect_outputs(added, one);
  expect_outputs(added, two);
}

TEST_P(EngineConformance, AnIdIsUsedAgainByAnotherModel) {
  for (uint32_t variant = 0; variant < 4; ++variant) {
    const Added added = add(EngineSubject::kModelsMax - 1, variant % 2);
    load(added, 0);
    expect_runs(added);
    engine_.unload(added.table.id);
    engine_.remove(added.table.id);
  }
}

TEST_P(EngineConformance, RemovingAModelThatWasNeverAddedDoesNothing) {
  const Added added = add(0, 0);
  engine_.remove(ModelId(1));
  load(added, 0);
  expect_runs(added);
}

TEST_P(EngineConformance, ExecutorsWorkAtTheSameTime) {
  constexpr int kRounds = 200;
  const Added one = add(0, 0), two = add(1, 1);
  load(one, 0);
  const InferWork taken_in = work(one, 4, 4, 0), running = work(one, 4, 4, 1), running_too = work(one, 1, 1, 2),
                  done = work(one, 4, 4, 3);
  for (const InferWork& infer : {running, running_too, done}) engine_.input(infer);
  EXPECT_TRUE(engine_.run(done).ok());
  const auto repeatedly = [](const auto& body) {
    return std::thread([&body] {
      for (int i = 0; i < kRounds; ++i) body();
    });
  };
  const auto loading = [&] {
    load(two, one.table.pages);
    engine_.unload(two.table.id);
  };
  const auto executing = [&] {
    EXPECT_TRUE(engine_.run(running).ok());
    EXPECT_TRUE(engine_.run(running_too).ok());
  };
  const auto taking_in = [&] { engine_.input(taken_in); };
  const auto giving_out = [&] { engine_.output(done); };
  if (subject_->is_threaded()) {
    std::thread threads[] = {repeatedly(loading), repeatedly(executing), repeatedly(taking_in), repeatedly(giving_out)};
    for (int i = 0; i < 4; ++i) {
      engine_.remove(add(2, 1).table.id);
    }
    for (std::thread& thread : threads) thread.join();
  } else {  // in turns
    loading(), executing(), taking_in(), giving_out();
  }
  EXPECT_TRUE(engine_.run(taken_in).ok());
  for (const InferWork& infer : {taken_in, running, running_too}) engine_.output(infer);
  for (const InferWork& infer : {taken_in, running, running_too, done}) expect_outputs(one, infer);
}

}  // namespace foliot
