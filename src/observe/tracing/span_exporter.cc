#include "observe/tracing/span_exporter.h"

#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {

SpanExporter::SpanExporter(std::function<Status(std::span<const Span>)> send) : send_(std::move(send)) {
  batch_.reserve(kBatchMax);
}

SpanExporter::~SpanExporter() {
  stopping_.store(true);
  parker_.unpark();
  thread_.join();
}

Status SpanExporter::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "spans", .nice = 10}, [this] { run(); }));
  return Status();
}

void SpanExporter::add(const Span& span) {
  if (!waiting_.push(span)) return add_dropped(1);
  // One exchange comes first: either the thread sees the span before it sleeps, or this sees that it sleeps.
  if (asleep_.exchange(false)) parker_.unpark();
}

SpanExporter::Counts SpanExporter::counts() const {
  return {sent_.load(std::memory_order_relaxed), failed_.load(std::memory_order_relaxed),
          dropped_.load(std::memory_order_relaxed)};
}

bool SpanExporter::send_batch() {
  batch_.clear();
  while (batch_.size() < kBatchMax && waiting_.consume([this](const Span& span) { batch_.push_back(span); })) {
  }
  if (batch_.empty()) return false;
  failing_ = !send_(batch_).ok();
  (failing_ ? failed_ : sent_).fetch_add(batch_.size(), std::memory_order_relaxed);
  return batch_.size() == kBatchMax;
}

void SpanExporter::run() {
  const auto rest = [this](Duration time) {
    const TimePoint until = monotonic_now() + time;
    while (!stopping_.load() && monotonic_now() < until) parker_.park_until(until);
  };
  while (!stopping_.load()) {
    const bool more = send_batch();
    if (failing_) rest(kRetryTime);
    if (more) continue;
    asleep_.exchange(true);
    while (waiting_.empty() && asleep_.load() && !stopping_.load()) parker_.park_until(TimePoint::infinite_future());
    asleep_.store(false);
    rest(kCollectTime);
  }
  if (!failing_) send_batch();
}

}  // namespace foliot
