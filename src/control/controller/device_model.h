// DeviceModel: what the controller knows of one device without asking it: the models
// that its pages hold, the actions that it was sent, and when each of its executors, of
// EXEC each of its lanes, will be free (Clockwork, section 5.3: "managing worker state").
//
// Every action is checked against it before it is sent, and changes it at once.
//
// A device that is not up has no pages and holds nothing, as far as a policy can see:
// nothing is placed on it and nothing fits on it.
#ifndef FOLIOT_CONTROL_CONTROLLER_DEVICE_MODEL_H_
#define FOLIOT_CONTROL_CONTROLLER_DEVICE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/controller/contexts.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/device_state.h"
#include "foundation/core/ids.h"
#include "foundation/core/lanes.h"

namespace foliot {

enum class Residency : uint8_t { kAbsent, kLoading, kLoaded };

// Actions of one executor that were sent and have no outcome yet, in the order in which
// each of its lanes takes them: an action begins once it is the first of all its lanes.
class Timeline {
 public:
  // How long an action takes to get there, and an outcome to get here.
  struct Link {
    Duration delivery;
    Duration report;
  };
  // Rows that take OUTPUT so long are slow, and outputs that take less together are not looked at.
  static constexpr Duration kOutputsMin = Duration::microseconds(500);

  explicit Timeline(uint32_t lane_count = 1) : lane_count_(lane_count) {}

  uint32_t lane_count() const { return lane_count_; }
  // When work for these lanes sent at `now` and allowed to begin at once could begin: when
  // it is there, and after all that was sent before it.
  TimePoint available(TimePoint now, const Link& link, LaneInterval lanes = {}) const {
    return lane_count_ == 1 ? available_of<1>(now, link, lanes) : available_of<kLanesMax>(now, link, lanes);
  }
  // `output`: what OUTPUT is expected to take.
  void add(ActionId id, TimePoint earliest, Duration expected, TimePoint now, const Link& link, LaneInterval lanes = {},
           Duration output = {});
  // The action is over; its lanes were free again at `end`, and OUTPUT at `output_end`.
  void remove(ActionId id, TimePoint end, TimePoint output_end = {});
  // Returns when OUTPUT has but one left of the results that are there by `then`.
  TimePoint but_one_output_left(TimePoint then, TimePoint now, const Link& link) const;
  // OUTPUT is expected to take so long for all of them.
  Duration outputs() const { return outputs_; }
  uint32_t size() const { return static_cast<uint32_t>(pending_.size()); }
  void clear() {
    pending_.clear();
    outputs_ = Duration();
  }
  // From now on it has so many lanes. REQUIRES: nothing is outstanding.
  void set_lane_count(uint32_t lane_count) { lane_count_ = lane_count; }
  // When the first of them is over if it takes so many times as long as expected;
  // infinite if there is none.
  TimePoint first_end(int64_t times) const;

 private:
  struct Pending {
    TimePoint earliest;
    ActionId id;
    Duration expected;
    TimePoint begin_min;  // when it is there and may begin
    LaneInterval lanes;
    Duration output;
    // When it is expected to have begun, if it is the first of all its lanes.
    std::optional<TimePoint> begin{};
  };
  // Of at most so many lanes.
  template <uint32_t kLanes>
  TimePoint available_of(TimePoint now, const Link& link, LaneInterval lanes) const;
  // Those that are the first of all their lanes now, and were not, may begin at `at`.
  void note_first(TimePoint at);

  uint32_t lane_count_;
  std::vector<Pending> pending_;  // by (earliest, id), as the executor's queue
  Duration outputs_;              // of all that are pending
  TimePoint output_end_;          // of the last that is over
};

class DeviceModel {
 public:
  DeviceModel(DeviceId id, uint32_t page_count, KindId kind = KindId(), uint32_t lane_count = 1)
      : id_(id), kind_(kind), page_count_(page_count), free_pages_(page_count), exec_(lane_count) {}

  DeviceId id() const { return id_; }
  KindId kind() const { return kind_; }  // never changes
  DeviceState state() const { return state_; }
  bool up() const { return state_ == DeviceState::kUp; }
  TimePoint joined_at() const { return joined_at_; }
  uint32_t lane_count() const { return exec_.lane_count(); }
  LaneInterval all_lanes() const { return {0, lane_count()}; }
  const Contexts& contexts() const { return contexts_; }
  Contexts& contexts() { return contexts_; }  // the controller's
  uint32_t page_count() const { return up() ? page_count_ : 0; }
  uint32_t free_pages() const { return up() ? pages_free() : 0; }
  Residency residency(ModelId model) const {
    const State& held = state(model);
    return up() && !held.set_aside ? held.residency : Residency::kAbsent;
  }
  // When a loading model is expected to be loaded.
  TimePoint loaded_at(ModelId model) const { return state(model).loaded_at; }
  // INFERs sent and without an outcome, and batches that are unfinished.
  uint32_t infers_outstanding(ModelId model) const { return state(model).infers; }
  uint32_t infers_outstanding() const { return exec_.size(); }
  uint32_t loads_outstanding() const { return load_.size(); }
  // When an EXEC that takes these lanes, or all, could begin.
  TimePoint exec_available(TimePoint now, LaneInterval lanes) const { return exec_.available(now, link_, lanes); }
  TimePoint exec_available(TimePoint now) const { return exec_available(now, all_lanes()); }
  // When an EXEC on some lane could begin.
  TimePoint lane_available(TimePoint now) const;
  // When all lanes together have done what they have to do: the mean of theirs.
  TimePoint exec_done(TimePoint now) const;
  TimePoint load_available(TimePoint now) const { return load_.available(now, link_); }
  // Not before this an EXEC of the model, which takes so long and could begin at `start`, had better begin: its result
  // would only wait. `start`, but where the model's rows take OUTPUT long and it has more than one result left by then.
  TimePoint output_allows(ModelId model, TimePoint start, Duration exec, TimePoint now) const;
  // From sending an action until it could begin, if there is nothing else to do.
  Duration delivery() const { return link_.delivery; }
  // When a model that is there was last loaded or given work to do; for LRU.
  TimePoint last_used(ModelId model) const { return state(model).last_used; }

  // The truth, whatever its state.
  uint32_t pages_used() const { return page_count_ - pages_free(); }
  uint32_t pages_total() const { return page_count_; }
  Residency held(ModelId model) const { return state(model).residency; }
  std::vector<ModelId> loaded() const;  // ascending; also those that are set aside
  std::vector<ModelId> held() const;    // likewise, and those that are loading
  // Loaded or loading, and not to be used any more.
  bool set_aside(ModelId model) const { return state(model).set_aside; }
  // When the first INFER or LOAD is over if it takes so many times as long as
  // expected; infinite if there is none.
  TimePoint first_end(int64_t times) const { return std::min(exec_.first_end(times), load_.first_end(times)); }

  // As measured.
  void set_link(const Timeline::Link& link) { link_ = link; }
  // kUp, kSuspected or kDraining; what it has goes on.
  void set_state(DeviceState state) { state_ = state; }
  // Forgets all that it had and held.
  void lose();
  // Empty but for `residents`, which take `pages_used`. REQUIRES: it is lost.
  void join(uint32_t page_count, uint32_t lane_count, std::span<const ModelId> residents, uint32_t pages_used,
            TimePoint now, uint32_t context_count = 1);

  // Each takes in an action that is about to be sent. REQUIRES: the device can
  // do it (Controller checks that before).
  void sent_load(ActionId id, ModelId model, uint32_t pages, TimePoint earliest, Duration expected, TimePoint now);
  void sent_unload(ModelId model, uint32_t pages);
  // `resumed`: it goes on with a batch. `results`: rows that OUTPUT will have to copy.
  void sent_infer(ActionId id, ModelId model, LaneInterval lanes, TimePoint earliest, Duration expected, TimePoint now,
                  bool resumed = false, uint32_t results = 0);

  // Each takes in an outcome: when the executor was free again, and whether the
  // model is loaded now.
  void load_over(ActionId id, ModelId model, uint32_t pages, bool loaded, TimePoint end);
  // An UNLOAD that the worker refused: the model is still there.
  void unload_refused(ModelId model, uint32_t pages);
  // `unfinished`: its batch goes on.
  void infer_over(ActionId id, ModelId model, TimePoint end, bool unfinished = false, TimePoint output_end = {});
  // OUTPUT took so long for each row of an INFER of this model, and was over so long after its EXEC. REQUIRES: one is
  // outstanding.
  void measured_output(ModelId model, Duration row, Duration whole, TimePoint now);
  // A request was refused, perhaps for what is reserved: half of that is believed, if it was not measured lately.
  void doubt_output(ModelId model, TimePoint now);
  // Returns what is to be reserved for OUTPUT of a model whose rows take it long. Zero of others: their OUTPUT is a
  // part of what all outcomes of the device are late by (DeviceTiming).
  Duration output_reserve(ModelId model) const {
    const State& held = state(model);
    return held.output < Timeline::kOutputsMin ? Duration() : held.output_tail;
  }
  // REQUIRES: contexts().unfinished(context).
  void abandon(ContextIndex context);

  // From now on policies do not see the model, which takes its pages until it is
  // unloaded. REQUIRES: it is loaded or loading.
  void put_aside(ModelId model);

 private:
  struct State {
    Residency residency = Residency::kAbsent;
    bool set_aside = false;
    uint32_t infers = 0;
    TimePoint loaded_at;
    TimePoint last_used;
    Duration output;       // of OUTPUT for a row: a moving mean
    Duration output_tail;  // from the end of EXEC to that of OUTPUT: what few exceeded lately
    TimePoint output_at;   // when that was measured, or doubted
  };
  const State& state(ModelId model) const {
    static constexpr State kAbsent;
    const State* found = models_.find(model);
    return found == nullptr ? kAbsent : *found;
  }
  State& state(ModelId model) { return models_[model]; }
  void batch_over(ModelId model);
  void forget_if_gone(ModelId model);
  uint32_t pages_free() const { return static_cast<uint32_t>(std::max<int64_t>(free_pages_, 0)); }

  DeviceId id_;
  KindId kind_;
  DeviceState state_ = DeviceState::kUp;
  TimePoint joined_at_;
  uint32_t page_count_;
  // Below zero for as long as a LOAD that counted on a refused UNLOAD is under way.
  int64_t free_pages_;
  FlatMap<ModelId, State> models_;  // those that are there or have INFERs outstanding
  Timeline::Link link_;
  Timeline exec_;
  Timeline load_;
  Contexts contexts_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_DEVICE_MODEL_H_
