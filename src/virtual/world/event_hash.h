// EventHash: one number for all that happened in a run, in order. Equal seeds must
// give equal hashes, whatever compiler built the program.
#ifndef FOLIOT_VIRTUAL_WORLD_EVENT_HASH_H_
#define FOLIOT_VIRTUAL_WORLD_EVENT_HASH_H_

#include <array>
#include <cstdint>
#include <span>

#include "foundation/base/hash.h"
#include "foundation/core/observer.h"

namespace foliot {

class EventHash : public Observer {
 public:
  void on_request(const Request& request, TimePoint now) override {
    add({1, id(request.id), request.model.value(), time(request.deadline), time(now)});
  }
  void on_action(const Action& action, TimePoint now) override {
    add({2, id(action.id), static_cast<uint64_t>(action.type), action.model.value(), action.batch_size,
         time(action.earliest), time(action.latest), time(now)});
  }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override {
    add({3, id(action.id), static_cast<uint64_t>(outcome.status), time(outcome.start), time(outcome.end), time(now)});
  }
  void on_completion(const Completion& completion, TimePoint now) override {
    add({4, id(completion.id), static_cast<uint64_t>(completion.refusal), time(completion.finished), time(now)});
  }
  void on_run(const Request& request, const PipelineInfo* /*pipeline*/, TimePoint now) override {
    add({6, id(request.id), request.pipeline.value(), time(request.deadline), time(now)});
  }
  void on_run_over(const Completion& completion, TimePoint now) override {
    add({7, id(completion.id), static_cast<uint64_t>(completion.refusal), time(completion.finished), time(now)});
  }
  void on_device(const DeviceChange& change, TimePoint now) override {
    if (change.joined && change.residents.empty()) return;
    add({5, change.device.value(), static_cast<uint64_t>(change.state), change.residents.size(), time(now)});
  }

  uint64_t value() const { return hash_.digest64(); }

 private:
  template <typename T>
  static uint64_t id(T value) {
    return value.value();
  }
  static uint64_t time(TimePoint t) { return static_cast<uint64_t>(t.nanoseconds()); }
  void add(std::initializer_list<uint64_t> words) {
    hash_.update(std::as_bytes(std::span(words.begin(), words.end())));
  }

  StreamHash hash_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_EVENT_HASH_H_
