// PersonalService: the interface between the protocols and personal models, which have weights for
// each user and learn from each observation (room personal; Velox, chapter 2).
//
// Every call has exactly one answer, by `done`: on any thread, or before the call returns. Errors
// are those of CallError:
//   404  the model or an item is unknown
//   400  k, a value or a list that is out of its range, or inputs of items that are not those of the feature model
//   429  its tenant is over the limits of its key
//   507  a limit of the model: users, observations of one user, or what waits for the disk
//   refusals: as Refusal says; a deadline that cannot be met is one of kUnmeetable, kOverload,
//        kExpired, kLate; those of a feature model are those of the call, and name it
//
// Threading: any. A call does not wait for the disk, and computes nothing over items.
#ifndef FOLIOT_ANSWER_INFERENCE_PERSONAL_SERVICE_H_
#define FOLIOT_ANSWER_INFERENCE_PERSONAL_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "answer/inference/call_error.h"
#include "answer/inference/tenant.h"
#include "foundation/base/time.h"
#include "foundation/core/tensor.h"

namespace foliot {

// The kind of device of a personal model's Runnable, of which there is none: clients see by it what it is.
inline constexpr std::string_view kPersonalKind = "personal";

// What items are, for a model whose features another model computes: one of its inputs, with a row for each item of the
// call, in their order. Data as Query has it.
struct ItemTensor {
  std::string name;
  std::string datatype;
  Shape shape;  // the number of items first
  std::string bytes;
};
using ItemTensors = std::vector<ItemTensor>;

struct PersonalCall {
  std::string_view model;  // read during the call only
  TimePoint arrival;
  TimePoint deadline = TimePoint::infinite_future();
  std::shared_ptr<Tenant> tenant{};  // null: without limits
  // Of the items of predict() and observe(), or the candidates of top_k(); null: the model knows them.
  std::shared_ptr<const ItemTensors> inputs{};
};

struct UserItem {
  uint64_t user = 0;
  uint64_t item = 0;
};

struct TopKQuery {
  std::vector<uint64_t> users;
  std::vector<uint64_t> items{};  // the candidates; empty: all
  size_t k = 0;
};

// What a user made of an item. Of one user, each id counts once.
struct ItemObservation {
  uint64_t user = 0;
  uint64_t item = 0;
  double value = 0;
  uint64_t id = 0;
  uint64_t query = 0;  // of the answer of top_k() that it follows from; 0: none
};

// One place of a list of items.
struct PersonalSlot {
  uint64_t item = 0;
  float score = 0;
  bool is_drawn = false;   // uniformly, for the validation pool
  double probability = 1;  // of its being drawn for this place, if it is
};

struct PersonalList {
  uint64_t query = 0;                 // observations that follow from it name it
  std::vector<PersonalSlot> slots{};  // the best first
};

struct PersonalAnswer {
  std::string version{};              // that answered
  std::vector<float> predictions{};   // of predict(), in the order of the pairs
  std::vector<PersonalList> lists{};  // of top_k(), in the order of the users
};
using PersonalResult = std::variant<PersonalAnswer, CallError>;
using PersonalDone = std::function<void(PersonalResult)>;

class PersonalService {
 public:
  // Of one call.
  static constexpr size_t kPairsMax = 10'000;         // of predict()
  static constexpr size_t kUsersMax = 1000;           // of top_k() and forget()
  static constexpr size_t kCandidatesMax = 100'000;   // of top_k()
  static constexpr size_t kObservationsMax = 10'000;  // of observe()

  virtual ~PersonalService() = default;
  virtual void predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) = 0;
  virtual void top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) = 0;
  // Answered when the disk has them, or at once where the model is set so. All or none of those of
  // one user; after an error those of some users may count. Sent again with the same ids, each
  // still counts once.
  virtual void observe(const PersonalCall& call, std::vector<ItemObservation> observations, PersonalDone done) = 0;
  // The users are unknown then.
  virtual void forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_PERSONAL_SERVICE_H_
