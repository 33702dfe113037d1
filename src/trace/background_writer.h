// BackgroundWriter: a LogWriter on a thread of its own, so that recording never
// waits for a disk.
//
// Bounded: records wait in two rings of kRequestsMax and kActionsMax. When one is
// full because the writer cannot keep up, records are dropped, counted, and the
// log says so.
//
// Threading: add() from one thread, without lock or system call.
#ifndef FOLIOT_TRACE_BACKGROUND_WRITER_H_
#define FOLIOT_TRACE_BACKGROUND_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/spsc_ring.h"
#include "base/status.h"
#include "platform/parker.h"
#include "platform/thread.h"
#include "trace/log_writer.h"
#include "trace/record.h"

namespace foliot {

class BackgroundWriter : public RecordSink {
 public:
  static constexpr size_t kRequestsMax = 65536;
  static constexpr size_t kActionsMax = 16384;

  // Errors: as LogWriter::open(), and if there can be no more threads.
  static Result<std::unique_ptr<BackgroundWriter>> open(const LogOptions& options);
  // Writes what is left. REQUIRES: no more calls.
  ~BackgroundWriter() override;

  void add(const RequestRecord& request) override { add_to(requests_, request); }
  void add(const ActionRecord& action) override { add_to(actions_, action); }

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
  void run();
  void write_waiting();

  std::unique_ptr<LogWriter> writer_;
  Channel<RequestRecord> requests_{kRequestsMax};
  Channel<ActionRecord> actions_{kActionsMax};
  std::atomic<bool> stopping_{false};
  Parker parker_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_TRACE_BACKGROUND_WRITER_H_
