// LoadPlanner: the choice of the model to LOAD, of its device, and of what to evict for
// it.
//
// Wanted is what has requests and is loaded nowhere; it is worth the requests that
// one batch could still serve once the LOAD is over, per time of the bus. A model
// that all its holders are too busy for is worth loading once more. What waits without a
// deadline evicts no model of which a request would miss its deadline meanwhile, but after ten
// seconds. Evicted is
// what is the least missed: its rate, times the chance that a request misses its
// deadline for having to wait for a LOAD, per page. Where LOADs are idle, models
// that could not be served at all when cold are fetched before they are asked for,
// and free pages are filled. Where the next request of a model can be predicted
// (arrival_period.h), the time until then takes the place of its rate: what is asked
// for next is fetched first, and what is asked for last is evicted first.
//
// However many models and devices there are, one call looks at a bounded number of pairs
// of them: where there are more, some of the models in turn.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_LOAD_PLANNER_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_LOAD_PLANNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/foliot/board.h"
#include "control/policies/foliot/pool.h"
#include "control/policies/foliot/wanted_loads.h"
#include "foundation/base/bit_set.h"

namespace foliot::foliot_policy {

class LoadPlanner {
 public:
  LoadPlanner(Board& board, const Pool& pool) : board_(board), pool_(pool) {}

  void on_model_added(ModelId model);
  void on_model_removed(ModelId model);
  void on_request(ModelId model) {
    rates_changed_ = true;
    slacks_[model.value()] = kUnknown;
  }
  // What is expected of LOADs and EXECs of the model may have changed.
  void on_measured(ModelId model) { slacks_[model.value()] = kUnknown; }
  // A model has got requests and is loaded nowhere.
  void on_cold(ModelId model, TimePoint now);
  // A device holds other models, or has another number of pages, than it did.
  void on_device_changed(DeviceId device, TimePoint now);
  // A LOAD is over, and the device may take another.
  void on_load_over(DeviceId device, TimePoint now);
  // A LOAD failed: free pages elsewhere may be filled with the model.
  void on_load_failed(ModelId model) { note_never_loaded(model); }

  // The model's target has changed: LOADs may be allowed that were not.
  void on_target_changed() { changed_ = rates_changed_ = true; }
  // Sends a LOAD that the target of the model asks for, and the UNLOADs that it needs; false,
  // and nothing done, if there is no room now.
  bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher);

  // Sends LOADs (and the UNLOADs that they need) until each device has enough to
  // do. Returns when to be called again at the latest.
  TimePoint plan(TimePoint now, Dispatcher& dispatcher);

 private:
  // How far ahead a device is kept with LOADs.
  Duration lookahead(DeviceId device) const;
  struct Prefetch {
    double value;
    ModelId model;
  };

  // What holds for the devices of one kind.
  struct OfKind {
    BitSet never_loaded;                             // models that they can run
    Duration load_wait = Duration::milliseconds(5);  // mean, from wanted to sent
  };
  KindId kind(DeviceId device) const { return board_.cluster().device(device).kind(); }
  OfKind& of_kind(KindId kind);
  void note_never_loaded(ModelId model);
  void note_load_wait(DeviceId device, Duration wait);

  // What may be evicted, and what it is worth to keep.
  struct Evictable {
    double value;
    bool exact;  // or no more than a lower bound
    uint32_t model;
    bool operator>(const Evictable& other) const {
      return std::tie(value, exact, model) > std::tie(other.value, other.exact, other.model);
    }
  };

  // Requests per second that it is worth keeping the model for: the reciprocal of the time
  // until the next one, where that is predicted. So of periodic models the one that is asked
  // for last is evicted first (Belady's rule), and the others are weighed against it.
  double demand(ModelId model, TimePoint now) const;
  // No more than that, and cheaper.
  double demand_at_least(ModelId model, TimePoint now) const;
  // How much a device would miss the model, were it not there: per page.
  double keep_value(DeviceId device, ModelId model, TimePoint now) const;
  // No more than that, without looking closely.
  double keep_value_at_least(DeviceId device, ModelId model, TimePoint now) const;
  // What a request of a model that is not loaded has to spare, if it is loaded at once.
  Duration slack(DeviceId device, ModelId model) const;
  double miss_probability(Duration slack, KindId kind) const;
  bool may_evict(DeviceId device, ModelId model) const;
  // The chance that a request misses its deadline for finding the model not loaded.
  double miss_probability(DeviceId device, ModelId model) const;
  bool spare_copy(DeviceId device, ModelId model, TimePoint now) const;

  void free_devices(TimePoint now);
  void note_room(DeviceId device);
  // False if it ended for want of looks_left_.
  bool load_wanted(TimePoint now, Dispatcher& dispatcher);
  // A LOAD of it would help still.
  bool still_wanted(const WantedLoad& wanted) const;
  bool load_best_model(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // What a LOAD on the device would serve for its time of the bus; 0 if it must not be, or
  // would be in vain.
  double load_score(DeviceId device, const WantedLoad& wanted, TimePoint now) const;
  bool load_on_best_device(const WantedLoad& wanted, TimePoint now, Dispatcher& dispatcher);
  struct Need {
    bool room = false;
    bool pool = false;
  };
  std::optional<DeviceId> least_busy(const WantedLoad& wanted, Need need, TimePoint now);
  // Makes `count` models of the device, of those that it has not looked at for longest,
  // evictables_. REQUIRES: evictables_ is empty, and it has as many.
  void look_for_evictables(DeviceId device, uint32_t count, TimePoint now);
  // The least missed of evictables_, which is a heap, is taken off; nullopt if there is none.
  std::optional<Evictable> take_least_missed(DeviceId device, TimePoint now);
  // Requests that one batch could still serve, were the model loaded next.
  uint32_t served_by_load(DeviceId device, ModelId model, TimePoint now) const;
  // It neither holds nor loads the model, and may load it.
  bool may_load(DeviceId device, ModelId model, TimePoint now) const;
  // A LOAD may evict models worth so much in all, and none that is endangered by a stay of so long.
  struct Victims {
    double value_max;
    Duration stay;
  };
  Victims victims_of_wanted(DeviceId device, ModelId model, TimePoint now) const;
  // A request of the model that has a deadline would miss it if the model were loaded again only after so long.
  bool endangered(DeviceId device, ModelId model, Duration absence, TimePoint now) const;
  bool load(DeviceId device, ModelId model, Victims victims, TimePoint now, Dispatcher& dispatcher);
  bool make_room(DeviceId device, uint32_t pages, Victims victims, TimePoint now, Dispatcher& dispatcher);

  // When to look for prefetches again.
  TimePoint next_prefetch_look() const;
  void look_for_busy_models(TimePoint now);
  void look_whether_busy(ModelId model, TimePoint now);
  void look_for_prefetches(TimePoint now);
  // slack() of an absent model.
  Duration known_slack(DeviceId device, ModelId model);
  void prefetch(TimePoint now, Dispatcher& dispatcher);
  // The most valuable that the device may load is taken off prefetches_.
  std::optional<Prefetch> take_prefetch(DeviceId device, TimePoint now);
  void fill_free_pages(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // Another copy of it, of some that are looked at, would be of use to most requests.
  std::optional<uint32_t> most_queued(DeviceId device, TimePoint now) const;

  Board& board_;
  const Pool& pool_;
  WantedLoads wanted_;
  std::vector<Prefetch> prefetches_;  // the most valuable last
  std::vector<Evictable> evictables_;
  std::vector<Evictable> victims_;
  // Models from here on are looked at next: absent ones, waiting ones, loaded ones.
  uint32_t prefetch_cursor_ = 0;
  uint32_t evict_cursor_ = 0;
  uint32_t busy_cursor_ = 0;
  std::vector<OfKind> kinds_;  // by KindId
  // By model: slack(), if it was looked at for a prefetch since it has last changed.
  static constexpr Duration kUnknown = -Duration::max();
  std::vector<Duration> slacks_;
  uint64_t slacks_revision_ = 0;  // of the estimates
  TimePoint next_busy_look_;
  TimePoint next_prefetch_look_;  // not before this
  // The first request that is predicted of an absent model, of those looked at since the
  // cursor was at the first.
  TimePoint next_expected_ = TimePoint::infinite_future();
  // Whether something has changed that decides about LOADs; if not, they are looked
  // at again, for what could not be loaded, only after a while.
  bool changed_ = true;
  TimePoint next_look_;
  // Not before this, since the last look had too much to look at.
  TimePoint no_look_before_;
  uint32_t looks_left_ = 0;     // at pairs of model and device, in this turn
  bool copies_due_ = false;     // free pages may be filled with further copies again
  bool rates_changed_ = false;  // or what is absent, since the last look
  // Devices that are up and take another LOAD now, and when the others will.
  BitSet free_;
  uint32_t device_cursor_ = 0;  // where the next comparison of devices begins
  BitSet roomy_;                // devices that have free pages
  uint32_t devices_ = 0;
  std::priority_queue<std::pair<TimePoint, uint32_t>, std::vector<std::pair<TimePoint, uint32_t>>, std::greater<>>
      busy_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_LOAD_PLANNER_H_
