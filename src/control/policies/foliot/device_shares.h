// DeviceShares: which models ask for less of their devices' time than their weighted share.
//
// The devices of a kind are imagined as a fluid that serves all models at once, each at a rate in proportion to its
// weight among those that have work left there (generalized processor sharing; Parekh and Gallager 1993). Each request
// adds what its row takes in a batch as it is expected. One that would not be served there in time asks for too much,
// and no more of it is kept than would be. A model of which few of the last requests did is modest.
//
// Whether it would be in time follows from how many others the model's requests find there on average: how many there
// are at one instant says little of the next second.
//
// Virtual time (served work over weight, of a model that always has work left) makes a request cost O(log models).
//
// Rejected: what each model was served in place of what it asked for. Under overload that orders batches by turns in
// place of the requests that they serve: a tenth to half of the goodput of twelve models.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_DEVICE_SHARES_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_DEVICE_SHARES_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot::foliot_policy {

class DeviceShares {
 public:
  struct Demand {
    KindId kind;
    uint32_t devices;  // of the kind
    double weight;
    Duration device_time;  // of one device
    Duration patience;     // of the request: its SLO
    double memory = 0;     // the part of the kind's pages that the model takes
  };
  // A request of the model has come. REQUIRES: `now` is no earlier than before.
  void on_request(ModelId model, const Demand& demand, TimePoint now);
  // Another model has its id now.
  void forget(ModelId model);
  bool modest(ModelId model) const;
  // True if the model would be modest even if its requests took twice the time, the others being served as they are,
  // and has room in its share of the memory, without which its share of the time is worth nothing. All models that were
  // asked for in the last seconds have a share of the memory.
  bool keeps_share(ModelId model) const;

 private:
  struct Kind {
    TimePoint now;
    double time = 0;       // virtual, in seconds
    double weights = 0;    // of the models with work left
    uint32_t working = 0;  // those models
    double devices = 0;
    double asked = 0;  // weights of the models that were asked for lately
    // When a model may have no work left, in virtual time; earlier where more was added since.
    std::priority_queue<std::pair<double, uint32_t>, std::vector<std::pair<double, uint32_t>>, std::greater<>> ends;
  };
  struct Model {
    double end = 0;  // of its work, in virtual time
    double weight = 1;
    double memory = 0;
    TimePoint asked_at;       // the last time
    double asked_weight = 0;  // part of `asked` of this kind; 0 if that was not lately
    KindId asked_kind;
    bool in_asked = false;  // it has an entry of asked_
    KindId kind;
    bool has_work = false;
    uint64_t requests = 0;
    double others = 0;          // weights of the other models with work left, on average when its requests come
    bool over = false;          // since it has, a request has asked for too much
    double end_of_twice = 0;    // as `end`, of requests of twice the time
    double twice_too_much = 0;  // as `too_much`, of these
    double too_much = 0;        // the part of its last requests that asked for too much
  };
  void advance(Kind& kind, TimePoint now);
  void drop_work(Kind& kind, Model& model);
  void note_asked(ModelId id, const Demand& demand, TimePoint now);
  void note_not_asked(Model& model);

  std::vector<Kind> kinds_;    // by KindId
  std::vector<Model> models_;  // by ModelId
  // Models with an asked_weight and some without, each once, with when it was asked for, or earlier.
  std::queue<std::pair<TimePoint, uint32_t>> asked_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_DEVICE_SHARES_H_
