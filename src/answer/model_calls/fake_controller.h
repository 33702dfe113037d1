// FakeController: for tests, a controller that computes on its own thread, or refuses, or
// holds requests back until they are released.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_FAKE_CONTROLLER_H_
#define FOLIOT_ANSWER_MODEL_CALLS_FAKE_CONTROLLER_H_

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/core/call_label.h"
#include "foundation/core/ports.h"
#include "foundation/core/request_origin.h"

namespace foliot {

inline TimePoint steady_now() {
  return TimePoint::from_nanoseconds(std::chrono::steady_clock::now().time_since_epoch().count());
}

class FakeController : public LabelledRequestSink {
 public:
  // Fills in the outputs of one row.
  using Compute = std::function<void(PayloadStore&, const Request&)>;

  ~FakeController() override { stop(); }

  void add_model(ModelId model, Compute compute) { models_[model] = std::move(compute); }
  void start(RequestOrigin& origin) {
    origin_ = &origin;
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Every request from now on is refused so; kNone: served.
  void refuse(Refusal refusal, std::string detail = "", Duration earliest_after_arrival = Duration()) {
    MutexLock lock(mutex_);
    refusal_ = refusal;
    detail_ = std::move(detail);
    earliest_ = earliest_after_arrival;
  }
  void hold() {
    MutexLock lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      MutexLock lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  // Waits until so many requests were submitted, or cancelled, in all.
  void await_submitted(size_t count) {
    MutexLock lock(mutex_);
    observed_.wait(mutex_, [&]() REQUIRES(mutex_) { return submitted_.size() >= count; });
  }
  void await_cancelled(size_t count) {
    MutexLock lock(mutex_);
    observed_.wait(mutex_, [&]() REQUIRES(mutex_) { return cancelled_ >= count; });
  }
  std::vector<Request> submitted() {
    MutexLock lock(mutex_);
    return submitted_;
  }

  void submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) override {
    {
      MutexLock lock(mutex_);
      if (remember_) labels_.push_back(std::move(label));
    }
    submit(request);
  }
  // Of the requests that were submitted, in this order; null: of one without an id.
  std::vector<std::shared_ptr<const CallLabel>> labels() {
    MutexLock lock(mutex_);
    return labels_;
  }
  void submit(const Request& request) override {
    {
      MutexLock lock(mutex_);
      queue_.push_back(request);
      if (remember_) submitted_.push_back(request);
    }
    changed_.notify_one();
    observed_.notify_all();
  }
  void cancel(RequestId request, Refusal reason) override {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < queue_.size(); ++i)
      if (queue_[i].id == request) {
        gone_.emplace_back(queue_[i], reason);
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
        ++cancelled_;
        break;
      }
    changed_.notify_one();
    observed_.notify_all();
  }
  // Under load, not to keep every request that ever was.
  void forget() {
    MutexLock lock(mutex_);
    remember_ = false;
  }

 private:
  void run() {
    std::vector<Request> requests;
    std::vector<std::pair<Request, Refusal>> gone;
    while (true) {
      Completion refusal;
      {
        MutexLock lock(mutex_);
        changed_.wait(mutex_,
                      [&]() REQUIRES(mutex_) { return stopped_ || !gone_.empty() || (!held_ && !queue_.empty()); });
        if (stopped_ && queue_.empty() && gone_.empty()) return;
        if (!held_ || stopped_) requests.swap(queue_);
        gone.swap(gone_);
        refusal.refusal = refusal_;
        refusal.detail = detail_;
        refusal.earliest_completion = TimePoint() + earliest_;
      }
      for (const Request& request : requests) answer(request, refusal);
      for (const auto& [request, reason] : gone) answer(request, {.refusal = reason});
      requests.clear();
      gone.clear();
    }
  }

  void answer(const Request& request, const Completion& refusal) {
    Completion completion = refusal;
    completion.id = request.id;
    completion.model = request.model;
    completion.payload = request.payload;
    completion.arrival = request.arrival;
    completion.deadline = request.deadline;
    if (completion.earliest_completion != TimePoint())
      completion.earliest_completion = request.arrival + (refusal.earliest_completion - TimePoint());
    completion.exec_start = steady_now();
    if (completion.served()) execute(request, completion);
    completion.finished = steady_now();
    origin_->complete(completion);
  }

  void execute(const Request& request, Completion& completion) {
    models_.at(request.model)(*origin_, request);
    completion.batch_size = 1;
    completion.exec_duration = steady_now() - completion.exec_start;
    Action action;
    action.model = request.model;
    action.batch_size = 1;
    action.rows.add({request.id, request.payload});
    Outcome outcome;
    outcome.model = request.model;
    outcome.duration = completion.exec_duration;
    origin_->on_outcome(action, outcome, steady_now());
  }

  RequestOrigin* origin_ = nullptr;
  std::map<ModelId, Compute> models_;
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  Condition observed_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  bool held_ GUARDED_BY(mutex_) = false;
  bool remember_ GUARDED_BY(mutex_) = true;
  Refusal refusal_ GUARDED_BY(mutex_) = Refusal::kNone;
  std::string detail_ GUARDED_BY(mutex_);
  Duration earliest_ GUARDED_BY(mutex_);
  std::vector<Request> queue_ GUARDED_BY(mutex_);
  std::vector<std::pair<Request, Refusal>> gone_ GUARDED_BY(mutex_);
  std::vector<Request> submitted_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const CallLabel>> labels_ GUARDED_BY(mutex_);
  size_t cancelled_ GUARDED_BY(mutex_) = 0;
};

// ---- What the models of answer/inference/conformance/test_models.h compute

inline void compute_doubling(PayloadStore& payloads, const Request& request) {
  float values[2];
  std::memcpy(values, payloads.input(request.payload, 0).data(), sizeof values);
  for (float& value : values) value *= 2;
  std::memcpy(payloads.output(request.payload, 0).data(), values, sizeof values);
}

inline void compute_sequence(PayloadStore& payloads, const Request& request) {
  const auto tokens = payloads.input(request.payload, 0);
  const auto pairs = payloads.output(request.payload, 0);
  const auto length = static_cast<int64_t>(tokens.size() / sizeof(int64_t));
  int64_t sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    int64_t pair[2] = {0, length};
    std::memcpy(&pair[0], tokens.data() + static_cast<size_t>(i) * sizeof(int64_t), sizeof(int64_t));
    std::memcpy(pairs.data() + static_cast<size_t>(i) * sizeof pair, pair, sizeof pair);
    sum += pair[0];
  }
  std::memcpy(payloads.output(request.payload, 1).data(), &sum, sizeof sum);
}

inline void compute_whole(PayloadStore& payloads, const Request& request) {
  const auto x = payloads.input(request.payload, 0);
  const auto y = payloads.output(request.payload, 0);
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] == std::byte{0} ? std::byte{1} : std::byte{0};
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_FAKE_CONTROLLER_H_
