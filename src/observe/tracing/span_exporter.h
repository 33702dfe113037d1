// SpanExporter: sends spans to a collector, on a thread of its own, which sleeps while there are none.
//
// Bounded: spans wait in a ring of kWaitingMax. What finds it full is dropped and counted. After a first span the
// thread collects for kCollectTime without being woken; it sends at most kBatchMax at a time. A batch that cannot be
// sent is lost and counted, and the next one waits for kRetryTime: a collector that is gone or slow costs one attempt
// at a time, and no memory.
//
// Threading: add() and text() from any thread; the sender is called by the exporter's.
#ifndef FOLIOT_OBSERVE_TRACING_SPAN_EXPORTER_H_
#define FOLIOT_OBSERVE_TRACING_SPAN_EXPORTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/mpsc_ring.h"
#include "foundation/platform/parker.h"
#include "foundation/platform/thread.h"
#include "observe/tracing/span.h"

namespace foliot {

class SpanExporter : public SpanSink {
 public:
  static constexpr size_t kWaitingMax = 8192;
  static constexpr size_t kBatchMax = 512;
  static constexpr Duration kCollectTime = Duration::milliseconds(500);
  static constexpr Duration kRetryTime = Duration::seconds(1);

  struct Counts {
    uint64_t sent = 0;
    uint64_t failed = 0;   // the collector did not take them
    uint64_t dropped = 0;  // there was no room for them
  };

  // `send` may take long, for which it has a limit of its own.
  explicit SpanExporter(std::function<Status(std::span<const Span>)> send);
  // Sends what is left, once. REQUIRES: no more calls.
  ~SpanExporter() override;

  // Errors: there can be no more threads.
  Status start();
  void add(const Span& span) override;
  void add_dropped(uint64_t count) override { dropped_.fetch_add(count, std::memory_order_relaxed); }
  Counts counts() const;
  // Sends up to one batch; true: there may be more. For tests, which start no thread, and for its own.
  bool send_batch();
  // Of the last batch.
  bool failing() const { return failing_; }

 private:
  void run();

  const std::function<Status(std::span<const Span>)> send_;
  MpscRing<Span> waiting_{kWaitingMax};
  std::vector<Span> batch_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> dropped_{0};
  bool failing_ = false;
  std::atomic<bool> asleep_{false};  // until there is a span
  std::atomic<bool> stopping_{false};
  Parker parker_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_SPAN_EXPORTER_H_
