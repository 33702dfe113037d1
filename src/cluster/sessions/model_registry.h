// ModelRegistry: the models that a cluster serves, while its workers come, go and
// change what they can run, each in its own time.
//
// Workers offer models under ids of their own and withdraw them. The kinds of a model are
// those of the devices whose workers offer it. What all workers of its kinds offer is
// served, under a ModelId, which is its name; another version of it then retires, and so
// does what all that had it have withdrawn. A further kind is added to what is served once
// all workers of that kind offer it. Offers of leaving workers do not count, and with no
// worker left nothing changes. A worker that comes must bring all that is served on its
// kind and that another worker still has; what else it brings is an offer. The first one,
// or the first after all were lost, determines what is served: what it does not bring is
// dropped at once. The same holds for the first worker of a kind and what runs on that kind.
//
// A worker prefers what it offers later; of what it registers, what it lists first. A
// version takes the place of another once all prefer it, or have withdrawn the other.
//
// A model that retires is no longer shown to clients, and answers those that asked
// before they were notified, for kRetirementMax at most; then it leaves the controller,
// and then the workers (Release). No worker may come meanwhile. Its ModelId is free for
// another when even a peer that had fallen silent cannot mean it any more.
//
// Limits: kModelsMax models of a worker; twice as many ModelIds: candidates wait for one.
//
// A state machine without time or links of its own: calls are what has happened, and
// decide() and gone() return what is to be done.
#ifndef FOLIOT_CLUSTER_SESSIONS_MODEL_REGISTRY_H_
#define FOLIOT_CLUSTER_SESSIONS_MODEL_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/transport/message.h"
#include "foundation/base/id.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"

namespace foliot {

class ModelRegistry {
 public:
  static constexpr uint32_t kModelsMax = 16384;
  // Requests that clients send before they are notified that a model retires come
  // within this.
  static constexpr Duration kNotificationTime = Duration::seconds(2);
  // What still waits for a model that retires for so long is refused.
  static constexpr Duration kRetirementMax = Duration::seconds(30);
  // From a release on; a peer that is silent for half as long is given up.
  static constexpr Duration kIdRest = Duration::seconds(60);

  // One session with a worker.
  using WorkerId = Id<struct RollWorkerTag, uint64_t>;

  struct Addition {
    std::shared_ptr<const ModelInfo> model;
    std::string replaced;  // the version that it takes the place of; empty: none
  };
  using Releases = std::vector<std::pair<WorkerId, Release>>;
  // What is to be done, in this order.
  struct Decisions {
    std::vector<std::pair<WorkerId, Naming>> namings;
    Releases releases;
    std::vector<ModelId> removed;  // from the controller; call gone() when they are
    std::vector<Addition> added;   // to the controller
    // In the controller: more kinds of device can run them.
    std::vector<std::shared_ptr<const ModelInfo>> extended;
    bool news = false;  // for clients, within this turn: serves() has changed
  };

  // Whether a worker with these may come. Errors: kInvalidArgument; kUnavailable while
  // something retires. REQUIRES: their ids are distinct.
  Status check(const std::string& kind, const std::vector<ModelInfo>& models) const;
  struct Joined {
    std::vector<ModelId> names;  // of its models; kUnnamed where not all have it
    Decisions decisions;         // namings are none
  };
  // REQUIRES: check(models).ok(), and the worker is new.
  Joined join(WorkerId worker, const std::string& kind, const std::vector<ModelInfo>& models, TimePoint now);
  // REQUIRES of all: the worker has joined and is not lost.
  // Errors: kInvalidArgument if it has such a model or such an id; kResourceExhausted.
  Status offer(WorkerId worker, ModelInfo model);
  // Errors: kInvalidArgument if it does not offer it.
  Status withdraw(WorkerId worker, ModelId own);
  void leave(WorkerId worker);
  void lose(WorkerId worker);

  Decisions decide(TimePoint now);
  // When decide() has something to do though nothing happens before.
  TimePoint next() const;
  // Those that are removed from the controller, and not yet gone.
  std::vector<ModelId> removing() const;
  struct Gone {
    std::shared_ptr<const ModelInfo> model;
    Releases releases;
  };
  // The controller has forgotten one of these.
  Gone gone(ModelId model, TimePoint now);

  bool serves(ModelId model) const;
  // Requests for whatever ModelId, and their answers.
  void on_request(ModelId model);
  void on_answer(ModelId model);

 private:
  struct Offered {
    std::shared_ptr<const ModelInfo> model;
    uint64_t preference = 0;  // the larger, the more it is preferred
    ModelId name = kUnnamed;
    bool withdrawn = false;  // and has a name: else it is erased
    // It was released though it was not withdrawn. A withdrawal may be on its way; else
    // its id is free for another.
    bool released = false;
  };
  struct Worker {
    std::string kind;  // of its devices
    bool leaving = false;
    uint64_t preferences = 0;                          // given so far
    std::map<ModelId, Offered> offers;                 // by the worker's ids
    std::multimap<std::string_view, ModelId> unnamed;  // of these, by the models' names
    std::map<ModelId, ModelId> named;                  // of these, by the controller's ids
    std::set<ModelId> withdrawn;                       // of these, the controller's ids
  };
  enum class State : uint8_t { kFree, kServed, kRetiring, kRemoving };
  struct Entry {
    State state = State::kFree;
    std::shared_ptr<const ModelInfo> model;  // null: it is free
    TimePoint since;                         // when it came to be served, retiring or free
    uint64_t in_flight = 0;
  };

  void drop_orphans(const Worker& worker, bool of_all_kinds, TimePoint now);
  void serve_first(const std::vector<ModelInfo>& models, TimePoint now);
  void promote_candidates(TimePoint now);
  void retire_withdrawn(TimePoint now);
  bool prefers(const Worker& worker, const ModelInfo& model) const;
  ModelId serve(const ModelInfo& model, TimePoint now);
  void retire(ModelId id, TimePoint now);
  // When it may leave the controller.
  static TimePoint end_of(const Entry& retiring);
  void remove(ModelId id);

  struct Candidate {
    const Worker* worker;
    const Offered* offered;
  };
  bool has_worker(ModelId id) const;  // some worker knows it by that name
  // The first staying worker of each kind.
  std::vector<const Worker*> first_of_kinds() const;
  bool agrees(const Worker& worker, const ModelInfo& model) const;
  void extend(ModelId id, const Worker& first, const ModelInfo& model);
  void name_unnamed(WorkerId number, Worker& worker, const ModelInfo& model, ModelId id);
  ModelInfo of_all_kinds(const ModelInfo& model) const;
  template <typename Condition>
  bool all_staying(Condition condition) const;
  static void add_offer(Worker& worker, std::shared_ptr<const ModelInfo> model);
  // nullptr: the worker has no such model without a name.
  static const Offered* find_unnamed(const Worker& worker, const ModelInfo& model);
  static void erase_unnamed(Worker& worker, ModelId own, const Offered& offered);
  void name(Worker& worker, ModelId own, ModelId name);

  Entry& entry(ModelId id) { return entries_[id.value()]; }
  bool rested(TimePoint now) const;
  bool has_id(TimePoint now) const;
  ModelId take_id(TimePoint now);

  std::map<WorkerId, Worker> workers_;
  std::map<std::string, ModelId, std::less<>> served_;  // by name
  std::vector<Entry> entries_;                          // by ModelId
  std::deque<ModelId> free_;                            // in the order of their release
  std::vector<ModelId> retiring_;                       // or being removed
  Decisions pending_;
  bool changed_ = false;  // candidates and withdrawals are to be looked at
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_MODEL_REGISTRY_H_
