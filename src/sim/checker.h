// Checker: watches a whole system and stops the program when a promise is broken:
// every request is answered exactly once; no answer after its deadline counts as
// good; executors do one thing at a time, inside its window; pages balance.
#ifndef FOLIOT_SIM_CHECKER_H_
#define FOLIOT_SIM_CHECKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/observer.h"

namespace foliot {

class Checker : public Observer {
 public:
  void on_model(const ModelInfo& model) override { pages_of_[model.id] = model.pages; }
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_pages(DeviceId device, uint32_t used, uint32_t total) override;
  // From the executors' drivers.
  void on_work(const char* executor, const Action& action, TimePoint start, TimePoint end);

  // At the end of a run: nothing is left open.
  void check_finished() const;

  uint64_t requests() const { return requests_; }
  uint64_t served() const { return served_; }
  uint64_t refused(Refusal reason) const;
  uint64_t loads() const { return loads_; }
  uint64_t execs() const { return execs_; }

 private:
  std::unordered_map<RequestId, TimePoint> open_;  // -> deadline
  std::unordered_map<ActionId, bool> actions_;     // without an outcome
  std::map<std::pair<DeviceId, std::string>, TimePoint> busy_until_;
  std::map<ModelId, uint32_t> pages_of_;
  std::map<std::pair<DeviceId, ModelId>, bool> loaded_;  // by outcomes
  std::map<DeviceId, uint64_t> pages_loaded_;
  std::map<DeviceId, uint32_t> pages_total_;
  std::map<Refusal, uint64_t> refused_;
  uint64_t requests_ = 0;
  uint64_t served_ = 0;
  uint64_t loads_ = 0;
  uint64_t execs_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_SIM_CHECKER_H_
