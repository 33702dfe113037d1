// EngineConformance: the suite that every engine must pass, over the contract of
// engine/worker/engine.h. A test program instantiates it, once for each engine:
//
//   INSTANTIATE_TEST_SUITE_P(Fake, EngineConformance, testing::Values(EngineCase{"Fake", &make_fake}));
//
// Where an engine computes nothing, all but its outputs is checked.
#ifndef FOLIOT_ENGINE_WORKER_CONFORMANCE_ENGINE_CONFORMANCE_H_
#define FOLIOT_ENGINE_WORKER_CONFORMANCE_ENGINE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/worker/engine.h"
#include "foundation/core/payload.h"

namespace foliot {

// An engine and the models that the suite runs on it.
class EngineSubject {
 public:
  virtual ~EngineSubject() = default;
  virtual Engine& engine() = 0;
  // A model with batch sizes 1 and 4, one bucket, one input and one output. Two variants
  // compute different things.
  virtual EngineModel model(ModelId id, uint32_t variant) = 0;
  // Writes what this action computes from a row's input; false: the engine computes nothing.
  virtual bool compute(const EngineModel& model, const Action& action, std::span<const std::byte> input,
                       std::span<std::byte> output) = 0;
  // Whether executors may be threads; the simulator has one thread.
  virtual bool is_threaded() const { return true; }

  // What an engine has room for at least: models up to this id, pages and io cache.
  static constexpr uint32_t kModelsMax = 4;
  static constexpr uint32_t kPages = 64;
  static constexpr uint64_t kIoCacheBytes = uint64_t{1} << 20;
};

struct EngineCase {
  using Make = std::function<std::unique_ptr<EngineSubject>(PayloadStore&)>;
  // Beside the tests, so that a program with a case links them too.
  EngineCase(std::string name_, Make make_);
  std::string name;
  Make make;
};
inline void PrintTo(const EngineCase& value, std::ostream* out) { *out << value.name; }

// Rows of inputs and outputs, made as they are needed.
class PayloadRows : public PayloadStore {
 public:
  PayloadHandle add(std::vector<std::byte> input, size_t output_bytes);
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override;
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override;
  VisitReading finish(PayloadHandle payload) override;
  // Its output when it was finished; empty: it was not.
  std::span<const std::byte> finished(PayloadHandle payload) const { return rows_.at(payload).finished; }

 private:
  struct Row {
    std::vector<std::byte> input;
    std::vector<std::byte> output;
    std::vector<std::byte> finished{};
  };
  std::map<PayloadHandle, Row> rows_;
};

class EngineConformance : public testing::TestWithParam<EngineCase> {
 protected:
  EngineConformance() : subject_(GetParam().make(payloads_)), engine_(subject_->engine()) {}

  // A model that was added and prepared.
  struct Added {
    EngineModel model;
    WorkerModel table;
  };
  Added add(uint32_t id, uint32_t variant);
  // `count` pages from `first` on, upwards or downwards.
  static std::vector<PageIndex> pages(const Added& added, PageIndex first, bool downwards = false);
  void load(const Added& added, PageIndex first, bool downwards = false);
  // An INFER of so many rows, at this place of the io cache.
  InferWork work(const Added& added, uint32_t batch_size, uint32_t rows, uint32_t place);
  // Its outputs are what the model computes.
  void expect_outputs(const Added& added, const InferWork& work);
  // All of it: input, run, output, and the check.
  void expect_runs(const Added& added, uint32_t batch_size = 1, uint32_t rows = 1, uint32_t place = 0);

  PayloadRows payloads_;
  std::unique_ptr<EngineSubject> subject_;
  Engine& engine_;
  uint64_t next_action_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_CONFORMANCE_ENGINE_CONFORMANCE_H_
