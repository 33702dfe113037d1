// BackgroundWriter: a LogWriter on a thread of its own, so that recording never
// waits for a disk.
//
// Bounded: records wait in two rings of kRequestsMax and kActionsMax, and the requests of
// actions in one of kActionRowsMax, so that a large batch takes no room of small ones; feedback
// waits in one of kFeedbackMax. When one is full because the writer cannot keep up, records are dropped, counted, and
// the log says so.
//
// Threading: add() from one thread, without lock or system call; add_feedback() from any.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_BACKGROUND_WRITER_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_BACKGROUND_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "foundation/base/bounded_array.h"
#include "foundation/base/spsc_ring.h"
#include "foundation/base/status.h"
#include "foundation/platform/mpsc_ring.h"
#include "foundation/platform/parker.h"
#include "foundation/platform/thread.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/record.h"

namespace foliot {

class BackgroundWriter : public RecordSink, public FeedbackSink {
 public:
  static constexpr size_t kRequestsMax = 65536;
  static constexpr size_t kActionsMax = 16384;
  static constexpr size_t kActionRowsMax = 16 * kActionsMax;
  static constexpr size_t kFeedbackMax = 4096;

  // Errors: as LogWriter::open(), and if there can be no more threads.
  static Result<std::unique_ptr<BackgroundWriter>> open(const LogOptions& options);
  // Writes what is left. REQUIRES: no more calls.
  ~BackgroundWriter() override;

  void add(const RequestRecord& request) override { add_to(requests_, request); }
  void add(const ActionRecord& action) override;
  void add_feedback(FeedbackRecord record) override;

 private:
  template <typename Record>
  struct Channel {
    explicit Channel(size_t capacity) : ring(capacity) {}
    SpscRing<Record> ring;
    std::atomic<uint64_t> dropped{0};
  };

  explicit BackgroundWriter(std::unique_ptr<LogWriter> writer) : writer_(std::move(writer)) {}
  template <typename Record>
  static void add_to(Channel<Record>& channel, const Record& record) {
    if (!channel.ring.push(record)) channel.dropped.fetch_add(1, std::memory_order_relaxed);
  }
  ActionRecord with_rows(ActionRecord action, BoundedArray<RequestId, kBatchSizeMax>& rows);
  void run();
  void write_waiting();

  std::unique_ptr<LogWriter> writer_;
  Channel<RequestRecord> requests_{kRequestsMax};
  Channel<ActionRecord> actions_{kActionsMax};       // without their requests, which are
  SpscRing<RequestId> action_rows_{kActionRowsMax};  // here, in the same order
  MpscRing<FeedbackRecord> feedback_{kFeedbackMax};
  std::atomic<uint64_t> feedback_dropped_{0};
  std::atomic<bool> stopping_{false};
  Parker parker_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_BACKGROUND_WRITER_H_
