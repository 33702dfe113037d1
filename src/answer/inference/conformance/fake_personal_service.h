// FakePersonalService: for tests of the protocols, a personal model "movies" of version 3: the
// prediction for a pair is user + item, observations are kept. Answers before a call returns.
//
// Threading: calls by the threads of a front end, seen() by the test's.
#ifndef FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_PERSONAL_SERVICE_H_
#define FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_PERSONAL_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "answer/inference/personal_service.h"
#include "foundation/base/mutex.h"

namespace foliot {

class FakePersonalService : public PersonalService {
 public:
  void predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) override {
    note(call);
    PersonalAnswer answer{.version = "3"};
    for (const UserItem& pair : pairs) answer.predictions.push_back(static_cast<float>(pair.user + pair.item));
    finish(call, std::move(answer), done);
  }
  // The items k, k - 1, ... 1 with their numbers as scores; the last is drawn. Queries are 77, 78 ...
  void top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) override {
    note(call);
    PersonalAnswer answer{.version = "3"};
    for (size_t user = 0; user < query.users.size(); ++user) {
      answer.lists.push_back({.query = 77 + user});
      std::vector<PersonalSlot>& slots = answer.lists.back().slots;
      for (size_t item = query.k; item > 0; --item) {
        slots.push_back({.item = item, .score = static_cast<float>(item)});
      }
      slots.back().is_drawn = true;
      slots.back().probability = 0.25;
    }
    {
      MutexLock lock(mutex_);
      seen_.last_query = std::move(query);
    }
    finish(call, std::move(answer), done);
  }
  void observe(const PersonalCall& call, std::vector<ItemObservation> given, PersonalDone done) override {
    note(call);
    {
      MutexLock lock(mutex_);
      seen_.observations.insert(seen_.observations.end(), given.begin(), given.end());
    }
    finish(call, {.version = "3"}, done);
  }
  void forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) override {
    note(call);
    {
      MutexLock lock(mutex_);
      seen_.forgotten.insert(seen_.forgotten.end(), users.begin(), users.end());
    }
    finish(call, {.version = "3"}, done);
  }

  struct Seen {
    Duration timeout;  // of the last call
    TopKQuery last_query;
    std::vector<ItemObservation> observations;  // of all calls
    std::vector<uint64_t> forgotten;
  };
  Seen seen() const {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  void note(const PersonalCall& call) {
    MutexLock lock(mutex_);
    seen_.timeout = call.deadline - call.arrival;
  }
  static void finish(const PersonalCall& call, PersonalAnswer answer, const PersonalDone& done) {
    if (call.model != "movies") {
      return done(call_error(Status::not_found("unknown personal model '" + std::string(call.model) + "'")));
    }
    done(std::move(answer));
  }

  mutable Mutex mutex_;
  Seen seen_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CONFORMANCE_FAKE_PERSONAL_SERVICE_H_
