// For tests: the answer of a change of a personal model, once it is there.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_ANSWERS_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_ANSWERS_H_

#include <sched.h>

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "answer/personal/service/personal_model.h"

namespace foliot {

inline std::future<Status> start_change(const std::function<Status(PersonalModel::Done)>& change) {
  auto answer = std::make_shared<std::promise<Status>>();
  std::future<Status> result = answer->get_future();
  const Status status = change([answer](const Status& given) { answer->set_value(given); });
  if (!status.ok()) answer->set_value(status);
  return result;
}

inline std::future<Status> start_observing(PersonalModel& model, uint64_t user,
                                           const std::vector<UserObservation>& observations, uint64_t query = 0) {
  return start_change(
      [&](PersonalModel::Done done) { return model.observe(user, observations, std::move(done), query); });
}

inline Status observe_and_wait(PersonalModel& model, uint64_t user, const std::vector<UserObservation>& observations,
                               uint64_t query = 0) {
  return start_observing(model, user, observations, query).get();
}

// Refused while users in memory wait to be written.
inline void observe_until_acknowledged(PersonalModel& model, uint64_t user,
                                       const std::vector<UserObservation>& observations) {
  while (!observe_and_wait(model, user, observations).ok()) ::sched_yield();
}

inline Status forget_and_wait(PersonalModel& model, uint64_t user) {
  return start_change([&](PersonalModel::Done done) { return model.forget(user, std::move(done)); }).get();
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_TEST_ANSWERS_H_
