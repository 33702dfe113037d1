// Several controllers: which one workers and front ends obey, and what a controller does that stands by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/sessions/controller_service.h"
#include "cluster/sessions/frontend_link.h"
#include "cluster/sessions/test_worker_link.h"
#include "control/policies/registry.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- Which one is obeyed ----

TEST(ObeyedEpochTest, NeverGoesBack) {
  ObeyedEpoch epoch;
  const std::string a = "a:8100";
  EXPECT_TRUE(epoch.obey(0, nullptr).ok());
  EXPECT_THAT(epoch.obey(0, &a).message(), HasSubstr("start both with --election"));
  EXPECT_TRUE(epoch.obey(4, &a).ok());
  EXPECT_TRUE(epoch.obey(4, nullptr).ok());  // it was lost, and is back
  EXPECT_FALSE(epoch.obey(4, &a).ok());
  EXPECT_THAT(epoch.obey(3, nullptr).message(), HasSubstr("epoch 3, and one that leads with epoch 4"));
  EXPECT_EQ(epoch.value(), 4u);
}

// A client's side of the links with two controllers, whichever link it is.
template <typename Link>
void check_obedience(Link& link) {
  TestPeer a(link, Role::kController, "a:8100", {.epoch = 5});
  TestPeer standby(link, Role::kController, "b:8100", {.stands_by = true});
  ASSERT_TRUE(a.opened().ok() && standby.opened().ok());
  EXPECT_EQ(link.standing().epoch, 5u);
  // One that stands by says nothing but that it leads.
  EXPECT_FALSE(standby.say(Workers{}).ok());

  TestPeer b(link, Role::kController, "b:8100", {.stands_by = true});
  ASSERT_TRUE(b.say(Leadership{6}).ok());
  EXPECT_EQ(link.standing().epoch, 6u);
  EXPECT_THAT(a.check().message(), HasSubstr("leads with epoch 6"));
  // What a sends now is not read.
  EXPECT_FALSE(a.say(Workers{}).ok());
  EXPECT_TRUE(b.check().ok());
  a.close();

  TestPeer frozen(link, Role::kController, "a:8100", {.epoch = 5});
  EXPECT_THAT(frozen.opened().message(), HasSubstr("epoch 5"));
  TestPeer twin(link, Role::kController, "a:8100", {.epoch = 6});
  EXPECT_THAT(twin.opened().message(), HasSubstr("as the controller at"));
  TestPeer late(link, Role::kController, "a:8100", {.stands_by = true});
  EXPECT_FALSE(late.say(Leadership{5}).ok());
  EXPECT_TRUE(b.check().ok());
}

TEST(LeadersTest, AWorkerObeysTheHighestEpoch) {
  WorkerLink link({.page_count = 4, .staging_bytes = 1024},
                  {.log = [](Severity, const std::string&) {}, .on_registered = [](size_t) {}, .on_drained = [] {}});
  LinkLoop loop({.connection = {.role = Role::kWorker}}, link);
  link.start({}, "127.0.0.1:8200", loop);
  check_obedience(link);
}

TEST(LeadersTest, AFrontEndObeysTheHighestEpoch) {
  Catalog catalog;
  FrontendLink link(catalog, 4, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}});
  LinkLoop loop({.connection = {.role = Role::kClient}}, link);
  check_obedience(link);
}

// A front end that another controller gave a number is not taken for the one that has it now.
TEST(LeadersTest, AttachmentsAreOfAnEpoch) {
  uint32_t attached = 0;
  WorkerLink link({.page_count = 4, .staging_bytes = 1024},
                  {.log = [](Severity, const std::string&) {},
                   .on_registered = [](size_t) {},
                   .on_drained = [] {},
                   .on_frontends = [&](uint32_t count) { attached = count; }});
  LinkLoop loop({.connection = {.role = Role::kWorker}}, link);
  link.start({}, "127.0.0.1:8200", loop);
  TestPeer a(link, Role::kController, "a:8100", {.epoch = 5});
  TestPeer of_a(link, Role::kClient);
  ASSERT_TRUE(of_a.say(Attach{0, 5}).ok());
  TestPeer of_b(link, Role::kClient);
  ASSERT_TRUE(of_b.say(Attach{0, 6}).ok());  // it has seen the new leader first
  EXPECT_EQ(attached, 1u);
  EXPECT_TRUE(of_a.check().ok());
  TestPeer b(link, Role::kController, "b:8100", {.epoch = 6});
  EXPECT_TRUE(of_b.check().ok());
  EXPECT_THAT(of_a.check().message(), HasSubstr("it obeys a controller of epoch 5"));
  of_a.close();
  EXPECT_EQ(attached, 1u);
  TestPeer again(link, Role::kClient);
  EXPECT_THAT(again.say(Attach{0, 5}).message(), HasSubstr("this side one of epoch 6"));
  EXPECT_TRUE(of_b.check().ok());
}

// ---- A controller that stands by ----

class StandbyTest : public testing::Test {
 protected:
  StandbyTest() {
    service_.stand_by();
    service_.set_election_watch([this](uint64_t epoch) { epochs_.push_back(epoch); },
                                [this](size_t linked) { linked_ = linked; });
  }

  TimePoint now_ = at_ms(1);
  std::vector<uint64_t> epochs_;
  size_t linked_ = 0;
  ControllerService service_{ControllerOptions(), find_policy("foliot")->make, [this] { return now_; },
                             [](Severity, const std::string&) {}};
};

TEST_F(StandbyTest, AnswersPingsAndNothingElseUntilItLeads) {
  TestPeer worker(service_, Role::kWorker);
  TestPeer client(service_, Role::kClient);
  EXPECT_TRUE(service_.standing().stands_by);
  EXPECT_EQ(linked_, 1u);
  ASSERT_TRUE(worker.say(Ping{now_}).ok() && client.say(Ping{now_}).ok());
  EXPECT_EQ(worker.received<Pong>(MessageType::kPong).size(), 1u);
  ASSERT_EQ(client.frames().size(), 1u);
  TestPeer hasty(service_, Role::kClient);
  EXPECT_THAT(hasty.say(Request{.id = RequestId(1)}).message(), HasSubstr("this controller stands by"));
  hasty.close();

  service_.lead(7);
  service_.on_turn_end(now_);
  EXPECT_EQ(service_.standing().epoch, 7u);
  EXPECT_FALSE(service_.standing().stands_by);
  EXPECT_EQ(worker.last<Leadership>().epoch, 7u);
  const std::vector<Frame> first = client.frames();
  ASSERT_GE(first.size(), 3u);
  EXPECT_EQ(first[0].type, MessageType::kLeadership);
  EXPECT_EQ(first[1].type, MessageType::kAdmission);
  EXPECT_EQ(first[2].type, MessageType::kModels);
  worker.close();
  EXPECT_EQ(linked_, 0u);
}

TEST_F(StandbyTest, LearnsWhatEpochsPeersHaveObeyed) {
  TestPeer worker(service_, Role::kWorker, {}, {.epoch = 9});
  EXPECT_THAT(epochs_, ElementsAre(9u));
  service_.lead(10);
  service_.on_turn_end(now_);
  TestPeer earlier(service_, Role::kWorker, {}, {.epoch = 10});
  EXPECT_EQ(epochs_.size(), 1u);
  TestPeer later(service_, Role::kClient, {}, {.epoch = 11});
  EXPECT_THAT(epochs_, ElementsAre(9u, 11u));
}

}  // namespace
}  // namespace foliot
