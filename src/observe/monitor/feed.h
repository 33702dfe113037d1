// MonitorFeed: what GET /monitor/feed answers: the state of devices and models, and the events
// since the viewer's last answer, as JSON (docs/OPERATIONS.md has the schema).
//
// Every viewer asks for itself, so one that stops asking costs nothing. An answer has at most
// kBytesMax; of events that do not fit, the newest are given and the others counted as lost.
//
// Threading: belongs to one thread; the Monitor is written by another.
#ifndef FOLIOT_OBSERVE_MONITOR_FEED_H_
#define FOLIOT_OBSERVE_MONITOR_FEED_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "observe/monitor/monitor.h"

namespace foliot {

class MonitorFeed {
 public:
  static constexpr int kVersion = 1;
  static constexpr size_t kBytesMax = 1'000'000;
  // Of devices and of models, each.
  static constexpr size_t kListBytesMax = 300'000;
  // The state is read so often at most, however many ask.
  static constexpr Duration kStateInterval = Duration::milliseconds(250);

  // `process` distinguishes this process from others at its address: hexadecimal digits. Instants in
  // answers count from `origin`. `monitor` outlives the feed.
  MonitorFeed(const Monitor& monitor, std::string process, TimePoint origin, std::function<TimePoint()> now);

  // Of a log, a click explains requests that are in so much of the end of each of its files: it takes some 100 ms.
  static constexpr uint64_t kLogBytesMax = uint64_t{4} << 20;

  // Before the first call: where the controller's log is kept.
  void use_log(std::filesystem::path folder) { log_ = std::move(folder); }
  // What `foliot explain` says of the last request with this number or, where that is not given, with this id of its
  // client. Errors: kNotFound, with the reason and the remedy.
  Result<std::string> explanation(std::optional<RequestId> request, std::string_view client_id) const;

  // `since`: the `next` of an earlier answer. Whatever else it is, of another process, of the
  // future or of events that are gone, the answer is a full one: as many of the last events as fit.
  std::string answer(std::string_view since);

 private:
  struct Events {
    std::string actions;
    std::string requests;
    uint64_t first = 0;  // the oldest that is given
  };
  std::optional<uint64_t> sequence_of(std::string_view since) const;
  void read_state(TimePoint now);
  Events events_between(uint64_t first, uint64_t end, size_t bytes_max) const;
  std::string devices() const;
  std::string models() const;
  std::string to_json(const MonitorAction& action) const;
  std::string to_json(const MonitorRequest& request) const;
  int64_t instant(TimePoint time) const { return (time - origin_).nanoseconds(); }

  const Monitor& monitor_;
  const std::string process_;
  const TimePoint origin_;
  const std::function<TimePoint()> now_;
  std::filesystem::path log_;  // empty: none is kept
  std::string state_;          // "devices" to "models", as of state_at_
  std::optional<TimePoint> state_at_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_FEED_H_
