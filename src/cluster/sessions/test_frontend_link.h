// FrontendLinkTest: a front end's links, with a front end that only keeps payloads and answers, and
// peers whose bytes the test writes. The loop is never run; it only notes whom it is
// to connect to.
#ifndef FOLIOT_CLUSTER_SESSIONS_TEST_FRONTEND_LINK_H_
#define FOLIOT_CLUSTER_SESSIONS_TEST_FRONTEND_LINK_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sessions/frontend_link.h"
#include "cluster/sessions/test_peer.h"
#include "cluster/transport/link_loop.h"
#include "foundation/core/stage_visit.h"

namespace foliot {

inline constexpr uint32_t kServedModel = 40;  // as the controller calls it
inline constexpr uint32_t kRequestsMax = 4;
inline constexpr uint16_t kNumber = 5;

// One float in, one out.
inline ModelInfo served_model() {
  ModelInfo model;
  model.id = ModelId(kServedModel);
  model.name = "doubling";
  model.inputs = {{"x", DataType::kFloat32, {1}, {""}}};
  model.outputs = {{"y", DataType::kFloat32, {1}, {""}}};
  model.buckets.resize(1);
  model.only().seed_exec = {{Duration::milliseconds(1)}};
  return model;
}

class FakeFrontend : public RequestOrigin {
 public:
  std::span<const std::byte> input(PayloadHandle payload, uint32_t) override {
    return std::as_bytes(std::span(&inputs[payload.value()], 1));
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t) override {
    return std::as_writable_bytes(std::span(&outputs[payload.value()], 1));
  }
  VisitReading finish(PayloadHandle visit) override {
    finished.push_back(*visit_slot(visit));
    return {};
  }
  void finish_empty(PayloadHandle run, uint32_t stage) override { empty.emplace_back(run.value(), stage); }
  void complete(const Completion& completion) override {
    completions.push_back(completion);
    asked.push_back(ids.at(completion.payload.value()));
  }

  // "request: number" of what was served, "request: refusal" of the rest, in order.
  std::vector<std::string> answers() const {
    std::vector<std::string> texts;
    for (size_t i = 0; i < completions.size(); ++i) {
      const Completion& completion = completions[i];
      const std::string end = completion.served()
                                  ? std::to_string(static_cast<int>(outputs.at(completion.payload.value())))
                                  : std::string(to_string(completion.refusal));
      texts.push_back(std::to_string(asked[i]) + ": " + end);
    }
    return texts;
  }

  std::map<uint64_t, float> inputs;
  std::map<uint64_t, float> outputs;
  std::vector<Completion> completions;
  std::vector<uint32_t> finished;                    // stages
  std::vector<std::pair<uint64_t, uint32_t>> empty;  // runs' payloads, and stages
  std::map<uint64_t, uint64_t> ids;                  // of the requests that were asked last, by payload
  std::vector<uint64_t> asked;                       // the ids that completions are of
};

// A worker on the data link.
class WorkerPeer : public TestPeer {
 public:
  WorkerPeer(FrontendLink& link, const std::string& address) : TestPeer(link, Role::kWorker, address) {}
  Status send(uint64_t action, const Request& request, float number) {
    return say(Outputs{ActionId(action), request.id, request.payload, {std::as_bytes(std::span(&number, 1))}});
  }
  Status send_nothing(uint64_t action, const Request& request) {
    return say(Outputs{ActionId(action), request.id, request.payload, {}});
  }
  Status send_held(uint64_t action, const Request& request, const PayloadReference& held) {
    return say(Outputs{ActionId(action), request.id, request.payload, {}, held, {}});
  }
  // "handle: consumers" of each.
  std::vector<std::string> consumed() {
    std::vector<std::string> texts;
    for (const Consumed& consumed : received<Consumed>(MessageType::kConsumed)) {
      texts.push_back(std::to_string(consumed.payload.value()) + ": " + std::to_string(consumed.consumers));
    }
    return texts;
  }
};

class FrontendLinkTest : public ::testing::Test {
 protected:
  FrontendLinkTest()
      : link_(catalog_, kRequestsMax,
              {.log = [](Severity, const std::string&) {}, .on_ready = [this](size_t) { ++ready_; }}),
        loop_({.connection = {.role = Role::kClient}}, link_) {
    link_.start(frontend_, loop_);
    meet_controller();
    for (uint32_t i = 0; i < 2; ++i) workers_.push_back(std::make_unique<WorkerPeer>(link_, address(i)));
  }

  static std::string address(uint32_t worker) { return "worker" + std::to_string(worker) + ":8200"; }
  static Workers two_workers() { return {{{"a", address(0), {DeviceId(0)}}, {"b", address(1), {DeviceId(1)}}}}; }
  void meet_controller() {
    controller_ = std::make_unique<TestPeer>(link_, Role::kController, "controller:8100");
    EXPECT_TRUE(controller_->say(Admission{kNumber}).ok());
    EXPECT_TRUE(controller_->say(two_workers()).ok());
    EXPECT_TRUE(controller_->say(Models{{served_model()}}).ok());
    controller_->answer_pings();
  }

  // A request of the front end as the controller receives it.
  Request ask(uint64_t id, uint64_t payload, int64_t deadline_ms = 1000, const PayloadReference& input = {},
              uint16_t consumers = 0) {
    frontend_.ids[payload] = id;
    link_.submit({.id = RequestId(id),
                  .model = catalog_.find("doubling")->info->id,
                  .payload = PayloadHandle(payload),
                  .input = input,
                  .consumers = consumers,
                  .arrival = now_,
                  .deadline = at_ms(deadline_ms),
                  .tenant = TenantId(5),
                  .tenant_weight = 3});
    link_.on_turn_end(now_);
    const auto sent = controller_->received<Request>(MessageType::kRequest);
    return sent.empty() ? Request() : sent.back();
  }
  Status complete(const Request& request, uint64_t action, uint32_t device = 0, Refusal refusal = Refusal::kNone) {
    return controller_->say(Completion{.id = request.id,
                                       .model = request.model,
                                       .payload = request.payload,
                                       .refusal = refusal,
                                       .finished = now_,
                                       .action = ActionId(action),
                                       .device = DeviceId(device)});
  }
  void pass(int64_t ms) {
    now_ = at_ms(ms);
    for (TestPeer* peer :
         {controller_.get(), static_cast<TestPeer*>(workers_[0].get()), static_cast<TestPeer*>(workers_[1].get())}) {
      peer->now = now_;
    }
    link_.on_turn_end(now_);
  }

  TimePoint now_ = at_ms(1);
  int ready_ = 0;
  Catalog catalog_;
  FakeFrontend frontend_;
  FrontendLink link_;
  LinkLoop loop_;
  std::unique_ptr<TestPeer> controller_;
  std::vector<std::unique_ptr<WorkerPeer>> workers_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_TEST_FRONTEND_LINK_H_
