#include "node/replicas/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/container/container_engine.h"
#include "engine/container/container_profile.h"
#include "engine/worker/worker.h"
#include "foundation/base/check.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "node/threads/executor_thread.h"

namespace foliot {
namespace {

constexpr Duration kCancelledInterval = Duration::milliseconds(100);
// A process that prints nothing and may take any memory is looked at this often.
constexpr Duration kListenInterval = Duration::seconds(1);
// Of the largest batches, so many have room in the shared memory at once; all that the
// controller has outstanding, if they are small.
constexpr uint32_t kBatchesInFlightMin = 4, kBatchesInFlightMax = 64;
constexpr uint64_t kSmallMemoryBytes = uint64_t{16} << 20;
constexpr uint32_t kLoadsInFlightMax = 8;

Status replica_stopped() { return Status::unavailable("the replica was stopped"); }

uint64_t shared_memory_bytes(const ContainerDescription& description) {
  return std::max(container_memory_bytes(description, kBatchesInFlightMin),
                  std::min(container_memory_bytes(description, kBatchesInFlightMax), kSmallMemoryBytes));
}

bool same_tensors(const std::vector<TensorSpec>& some, const std::vector<TensorSpec>& others) {
  return std::ranges::equal(some, others, [](const TensorSpec& a, const TensorSpec& b) {
    return a.name == b.name && a.type == b.type && a.shape == b.shape;
  });
}

// Drops the failures of a process that is gone: they end with the loss of its device, and so
// do not count as tries.
class ReplicaOutcomes : public OutcomeSink {
 public:
  ReplicaOutcomes(OutcomeSink& to, const ContainerProcess& process) : to_(to), process_(process) {}
  void report(const Outcome& outcome) override {
    if (outcome.status != OutcomeStatus::kFailed || process_.alive()) to_.report(outcome);
  }

 private:
  OutcomeSink& to_;
  const ContainerProcess& process_;
};

// A worker over one process, with the threads of its executors.
class ReplicaWorker {
 public:
  ReplicaWorker(ContainerProcess& process, ReplicaPlace::Session& session, uint32_t infers_in_flight_max, ModelId model,
                const ContainerTimeouts& timeouts)
      : outcomes_(session.outcomes(), process),
        engine_(process, session.payloads(), model.value() + 1, timeouts),
        worker_({.page_count = 1,
                 .io_cache_bytes = process.memory().size(),
                 .models_max = model.value() + 1,
                 .loads_in_flight_max = kLoadsInFlightMax,
                 .infers_in_flight_max = infers_in_flight_max},
                engine_, outcomes_, {threads_[0], threads_[1], threads_[2], threads_[3]}) {}
  ~ReplicaWorker() { stop(); }

  Status start(const std::shared_ptr<const ModelInfo>& model, const std::function<void(const std::string&)>& log) {
    FOLIOT_ASSIGN_OR_RETURN(WorkerModel added, engine_.add({.info = model}));
    for (size_t i = 0; i < model->only().batch_sizes.size(); ++i) {
      FOLIOT_RETURN_IF_ERROR(engine_.prepare(model->id, i));
    }
    worker_.add_model(std::move(added));
    FOLIOT_RETURN_IF_ERROR(worker_.load_now(model->id));
    const std::vector<Executor*> executors = worker_.executors();
    FOLIOT_CHECK(executors.size() == threads_.size());
    for (size_t i = 0; i < threads_.size(); ++i) {
      threads_[i].set_failure_log(log);
      FOLIOT_RETURN_IF_ERROR(threads_[i].start(*executors[i]));
    }
    return Status();
  }
  // Nothing is reported afterwards, nor any payload touched.
  void stop() {
    for (ExecutorThread& thread : threads_) thread.stop();
  }
  Worker& worker() { return worker_; }

 private:
  ReplicaOutcomes outcomes_;
  ContainerEngine engine_;
  std::array<ExecutorThread, 4> threads_;  // as Worker::executors() has them
  Worker worker_;
};

}  // namespace

Replica::Replica(const ReplicaParts& parts, std::string name, ContainerOptions options, std::string kind)
    : parts_(parts), name_(std::move(name)), options_(std::move(options)), kind_(std::move(kind)) {}

Status Replica::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, parts_.threads.start({.name = "replica"}, [this] { run(); }));
  return Status();
}

void Replica::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_release);
    if (session_ != nullptr) session_->drain();
    if (process_ != nullptr) process_->kill();
    changed_.notify_all();
  }
  thread_.join();
}

void Replica::run() {
  Duration delay = kRestartDelayMin;
  while (!stopping()) {
    Duration served;
    const Status ended = run_process(served);
    if (has_model()) set_joined(ended);  // unless it had joined
    if (!has_model() || stopping()) return;
    if (served >= kShortService) delay = kRestartDelayMin;
    parts_.log(Severity::kError,
               fmt::format("replica {}: {}; starting it again in {}", name_, ended.message(), format_duration(delay)));
    if (!wait(delay)) return;
    delay = std::min(delay * 2, kRestartDelayMax);
    restarted_ = true;
  }
}

Status Replica::run_process(Duration& served) {
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<ContainerProcess> process, begin());
  const TimePoint began = monotonic_now();
  const std::shared_ptr<const ModelInfo> model = wait_for_model();
  const Status ended = model == nullptr ? replica_stopped() : serve_with(*process, model);
  served = monotonic_now() - began;
  if (process->was_late()) ++late_kills_;
  forget_process();
  return ended;
}

Result<std::unique_ptr<ContainerProcess>> Replica::begin() {
  const auto print = [this](std::string_view line) {
    parts_.log(Severity::kInfo, fmt::format("replica {}: {}", name_, line));
  };
  Result<std::unique_ptr<ContainerProcess>> process =
      ContainerProcess::start(options_, print, [this] { return stopping(); });
  if (process.ok()) {
    const MutexLock lock(mutex_);
    process_ = process->get();
    if (stopping()) process_->kill();
  }
  Result<Measured> measured = process.ok() ? measure(**process) : Result<Measured>(process.status());
  const Status status = measured.ok() ? Status() : measured.status();
  publish(std::move(measured));
  if (status.ok()) return process;
  forget_process();
  return status;
}

void Replica::forget_process() {
  const MutexLock lock(mutex_);
  process_ = nullptr;
}

bool Replica::has_model() {
  const MutexLock lock(mutex_);
  return model_ != nullptr;
}

Result<Replica::Measured> Replica::measure(ContainerProcess& process) {
  const ContainerDescription& description = process.description();
  FOLIOT_RETURN_IF_ERROR(process.share_memory(shared_memory_bytes(description)));
  const std::vector<uint32_t> batch_sizes = container_batch_sizes(description);
  FOLIOT_ASSIGN_OR_RETURN(std::vector<Duration> durations,
                          profile(process, batch_sizes, {.cancelled = [this] { return stopping(); }}));
  return Measured{description, batch_sizes, std::move(durations)};
}

void Replica::publish(Result<Measured> measured) {
  const MutexLock lock(mutex_);
  if (!measured_) measured_ = std::move(measured);
  changed_.notify_all();
}

Result<Replica::Measured> Replica::wait_until_measured(const std::function<bool()>& cancelled) {
  {
    MutexLock lock(mutex_);
    while (!measured_ && !(cancelled && cancelled())) changed_.wait_for(mutex_, kCancelledInterval);
    if (measured_ && measured_->ok()) return *measured_;
  }
  stop();
  const MutexLock lock(mutex_);
  return measured_ && !measured_->ok() ? *measured_ : replica_stopped();
}

void Replica::serve(std::shared_ptr<const ModelInfo> model) {
  const MutexLock lock(mutex_);
  model_ = std::move(model);
  changed_.notify_all();
}

Status Replica::wait_until_joined() {
  MutexLock lock(mutex_);
  changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return joined_.has_value(); });
  return *joined_;
}

void Replica::set_session(ReplicaPlace::Session* session) {
  const MutexLock lock(mutex_);
  session_ = session;
  if (session != nullptr && !joined_) joined_ = Status();
  changed_.notify_all();
}

void Replica::set_joined(const Status& status) {
  const MutexLock lock(mutex_);
  if (!joined_) joined_ = status;
  changed_.notify_all();
}

std::shared_ptr<const ModelInfo> Replica::wait_for_model() {
  MutexLock lock(mutex_);
  changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping() || model_ != nullptr; });
  return stopping() ? nullptr : model_;
}

Status Replica::serve_with(ContainerProcess& process, const std::shared_ptr<const ModelInfo>& model) {
  const ContainerDescription& description = process.description();
  const std::vector<uint32_t> batch_sizes = container_batch_sizes(description);
  if (!same_tensors(description.inputs, model->inputs) || !same_tensors(description.outputs, model->outputs) ||
      batch_sizes != model->only().batch_sizes) {
    return Status::invalid_argument("its inputs, outputs or batch_size_max have changed on disk; load the model again");
  }
  const std::unique_ptr<ReplicaPlace::Session> session = parts_.place.make_session(name_, kind_, model);
  ReplicaWorker worker(process, *session, parts_.infers_in_flight_max, model->id,
                       ContainerTimeouts::after(late_kills_));
  FOLIOT_RETURN_IF_ERROR(worker.start(model, [&](const std::string& line) {
    if (process.alive()) parts_.log(Severity::kWarning, fmt::format("replica {}: {}", name_, line));
  }));
  FOLIOT_RETURN_IF_ERROR(session->join(worker.worker()));
  set_session(session.get());
  if (restarted_) parts_.log(Severity::kInfo, fmt::format("replica {}: serves again", name_));
  const Duration interval = options_.memory_bytes > 0 ? kContainerMemoryInterval : kListenInterval;
  while (process.listen(interval)) {
  }
  set_session(nullptr);
  worker.stop();
  session->leave();
  return Status::internal(process.ending());
}

bool Replica::wait(Duration time) {
  MutexLock lock(mutex_);
  return !changed_.wait_for(mutex_, time, [this]() REQUIRES(mutex_) { return stopping(); });
}

}  // namespace foliot
