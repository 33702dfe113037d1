// Monitor: the observer that keeps what the controller did last, and the state of its devices and
// models, for viewers of the monitor page.
//
// The last kEvents actions sent, actions over and requests answered are in a ring, and older ones
// are overwritten. Counts are of all since the monitor was made. Models and devices beyond
// PublishedTable's size are in no list; their requests count in the totals.
//
// Threading: Observer's calls, from the controller's loop: they neither lock nor wait, and
// allocate only where the controller does too, when a model or a device is new to it. The rest
// from any thread: each number is as it was at some instant, and not all of one instant.
#ifndef FOLIOT_OBSERVE_MONITOR_MONITOR_H_
#define FOLIOT_OBSERVE_MONITOR_MONITOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "foundation/base/bit_set.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"
#include "observe/monitor/event_ring.h"
#include "observe/monitor/monitor_event.h"
#include "observe/monitor/published_table.h"
#include "observe/request_log/executor_timelines.h"
#include "observe/request_log/name_table.h"

namespace foliot {

inline constexpr size_t kMonitorOutcomes = static_cast<size_t>(kRefusalLast) + 1;
// Requests (rows) by how they ended, by Refusal.
using MonitorOutcomes = std::array<uint64_t, kMonitorOutcomes>;

struct MonitorModel {
  std::string_view name;
  uint32_t pages = 0;     // of its weights, on the first kind of device that runs it
  uint32_t copies = 0;    // devices that hold it
  uint64_t holders = 0;   // of the first kHoldersMax devices, by bit, those that hold it
  uint64_t arrivals = 0;  // requests (rows)
  uint64_t waiting = 0;   // for an action
  uint64_t sent = 0;      // in actions without an outcome
  MonitorOutcomes outcomes{};
};

struct MonitorDevice {
  DeviceId id;
  std::string_view kind;
  DeviceState state = DeviceState::kUp;
  DeviceTrouble trouble = DeviceTrouble::kNone;
  TimePoint since;  // when it entered this state
  uint32_t lanes = 1;
  uint32_t pages_used = 0;
  uint32_t pages = 0;
  uint32_t residents = 0;  // models that it holds
  uint32_t actions = 0;    // without an outcome
  Duration margin;
  Duration lookahead;
};

class Monitor : public Observer {
 public:
  static constexpr size_t kEvents = size_t{1} << 16;

  // Of devices beyond these it is not said which models they hold, only how many.
  static constexpr uint32_t kHoldersMax = 64;

  explicit Monitor(size_t events = kEvents) : events_(events) {}

  const EventRing<MonitorEvent>& events() const { return events_; }
  MonitorOutcomes outcomes() const;
  // Those with anything to show, that are loaded or were asked for, by name.
  std::vector<MonitorModel> models() const;
  std::vector<MonitorDevice> devices() const;  // ascending; not those that left

  void on_model(const ModelInfo& model) override;
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_timing(DeviceId device, Duration margin, Duration lookahead, TimePoint now) override;
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override;

 private:
  struct Model {
    std::atomic<const char*> name{nullptr};  // null: there never was one
    PublishedCount pages, copies, arrivals, rows_sent;
    std::atomic<uint64_t> holders{0};
    std::array<PublishedCount, kMonitorOutcomes> outcomes;
  };
  struct Device {
    std::atomic<const char*> kind{nullptr};  // likewise
    std::atomic<DeviceState> state{DeviceState::kUp};
    std::atomic<DeviceTrouble> trouble{DeviceTrouble::kNone};
    PublishedCount since, lanes, pages_used, pages, residents, actions, margin, lookahead;
  };
  struct Sent {
    ActionId id;
    TimePoint at;
    TimePoint expected_begin = TimePoint::infinite_future();
  };
  // Actions without an outcome, by their ids: the controller counts them up. Of more, the newer
  // ones take the places, and of the others it is not known when they were expected to begin.
  static constexpr size_t kSentMax = 8192;

  static MonitorModel view(const Model& model, const char* name);
  const char* name_of(ModelId model) const;
  MonitorAction event_of(const Action& action, const Sent& sent) const;
  Sent& sent(ActionId id) { return sent_[id.value() % kSentMax]; }
  void set_resident(DeviceId device, ModelId model, bool resident);
  void forget_residents(DeviceId device);

  NameTable names_;
  EventRing<MonitorEvent> events_;
  PublishedTable<Model> models_;    // by ModelId
  PublishedTable<Device> devices_;  // by DeviceId
  std::array<PublishedCount, kMonitorOutcomes> outcomes_;
  // Of the controller's loop alone:
  ExecutorTimelines timelines_;
  std::vector<Sent> sent_ = std::vector<Sent>(kSentMax);
  std::vector<BitSet> residents_;  // by DeviceId
  uint32_t models_end_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_MONITOR_H_
