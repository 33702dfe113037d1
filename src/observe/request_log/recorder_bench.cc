// What recording costs the controller's loop, per request: make bench-recorder.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "observe/request_log/background_writer.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/recorder.h"

namespace foliot {
namespace {

// A batch of requests from arrival to answer, with the LOADs left out.
void record_batch(Recorder& recorder, uint64_t batch, uint32_t rows) {
  const TimePoint now = TimePoint() + Duration::milliseconds(static_cast<int64_t>(batch));
  Action action{.id = ActionId(batch + 1), .earliest = now, .latest = now, .batch_size = rows};
  for (uint32_t row = 0; row < rows; ++row) {
    const RequestId id(batch * rows + row);
    recorder.on_request({.id = id, .arrival = now, .deadline = now + Duration::milliseconds(50)}, now);
    action.rows.add({id, PayloadHandle()});
  }
  recorder.on_action(action, now);
  recorder.on_outcome(action, {.action = action.id, .start = now, .end = now}, now);
  for (const BatchRows::Row& row : action.rows) {
    recorder.on_completion(
        {.id = row.request, .detail = {}, .arrival = now, .finished = now, .batch_size = rows, .exec_start = now}, now);
  }
}

void run(benchmark::State& state, std::unique_ptr<RecordSink> sink) {
  Recorder recorder(std::move(sink));
  recorder.on_model({.name = "resnet50"});
  const auto rows = static_cast<uint32_t>(state.range(0));
  uint64_t batch = 0;
  for (auto _ : state) record_batch(recorder, batch++, rows);
  state.SetItemsProcessed(state.iterations() * rows);
}

LogOptions options() { return {.folder = std::filesystem::temp_directory_path() / "foliot_recorder_bench"}; }

class Nowhere : public RecordSink {
 public:
  void add(const RequestRecord& request) override { benchmark::DoNotOptimize(request.departure); }
  void add(const ActionRecord& action) override { benchmark::DoNotOptimize(action.outcome); }
};

void BM_Recording(benchmark::State& state) { run(state, std::make_unique<Nowhere>()); }
// With the ring; what does not fit into it is dropped, as in a server.
void BM_RecordingInTheBackground(benchmark::State& state) { run(state, BackgroundWriter::open(options()).value()); }
void BM_RecordingAndWriting(benchmark::State& state) { run(state, LogWriter::open(options()).value()); }
BENCHMARK(BM_Recording)->Arg(1)->Arg(8);
BENCHMARK(BM_RecordingInTheBackground)->Arg(1)->Arg(8);
BENCHMARK(BM_RecordingAndWriting)->Arg(1)->Arg(8);

}  // namespace
}  // namespace foliot
