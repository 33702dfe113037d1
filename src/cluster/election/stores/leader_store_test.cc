// What every LeaderStore does, and what is particular to each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/election/memory_leader_store.h"
#include "cluster/election/stores/etcd_leader_store.h"
#include "cluster/election/stores/kubernetes_leader_store.h"
#include "cluster/election/stores/leader_store_place.h"
#include "cluster/election/stores/redis_leader_store.h"
#include "cluster/election/stores/test_etcd_server.h"
#include "cluster/election/stores/test_kubernetes_server.h"
#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

using testing::HasSubstr;

// Several stores over one place.
using StorePlace = std::function<std::unique_ptr<LeaderStore>()>;
struct Kind {
  const char* name;
  std::function<StorePlace()> open;
};

// A store that is used by name of another, as all of one memory are.
class SameStore : public LeaderStore {
 public:
  explicit SameStore(std::shared_ptr<LeaderStore> store) : store_(std::move(store)) {}
  Result<StoredLeader> read() override { return store_->read(); }
  Result<std::optional<std::string>> swap(const std::string& version, const LeaderRecord& record) override {
    return store_->swap(version, record);
  }
  std::string place() const override { return store_->place(); }

 private:
  const std::shared_ptr<LeaderStore> store_;
};

KubernetesServer server_at(const std::string& url) {
  return {.url = url, .token_file = {}, .ca_file = {}, .timeout = Duration::seconds(5)};
}

const Kind kKinds[] = {
    {"Memory",
     [] {
       return StorePlace(
           [store = std::make_shared<MemoryLeaderStore>()] { return std::make_unique<SameStore>(store); });
     }},
    {"Redis",
     [] {
       return StorePlace([server = std::make_shared<TestRedisServer>()] {
         return std::make_unique<RedisLeaderStore>(server->address());
       });
     }},
    {"Etcd",
     [] {
       return StorePlace([server = std::make_shared<TestEtcdServer>()] {
         return std::make_unique<EtcdLeaderStore>(
             EtcdOptions{.members = {server->url()}, .timeout = Duration::seconds(5)});
       });
     }},
    {"Kubernetes",
     [] {
       return StorePlace([server = std::make_shared<TestKubernetesServer>()] {
         return std::make_unique<KubernetesLeaderStore>(server_at(server->url()), KubernetesLeaseName{"ml", "foliot"});
       });
     }},
};

class LeaderStoreTest : public testing::TestWithParam<Kind> {
 protected:
  const StorePlace place_ = GetParam().open();
  const std::unique_ptr<LeaderStore> a_ = place_();
  const std::unique_ptr<LeaderStore> b_ = place_();
};

TEST_P(LeaderStoreTest, KeepsWhatOneOfThemSwappedIn) {
  const Result<StoredLeader> none = a_->read();
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->record);
  EXPECT_EQ(none->version, "");
  const LeaderRecord first{"a:8100", 1, 0, UINT64_MAX};
  const auto made = a_->swap("", first);
  ASSERT_TRUE(made.ok() && *made) << made.status().message();
  EXPECT_EQ(b_->read()->record, first);
  EXPECT_EQ(b_->read()->version, **made);
  // What was made once is not made again.
  EXPECT_EQ(*b_->swap("", {"b:8100", 1, 0, 2}), std::nullopt);
}

TEST_P(LeaderStoreTest, ASwapOfWhatIsNotThereAnyMoreChangesNothing) {
  const std::string first = **a_->swap("", {"a:8100", 1, 0, 1});
  const std::string second = **a_->swap(first, {"a:8100", 1, 1, 1});
  EXPECT_NE(first, second);
  EXPECT_EQ(*b_->swap(first, {"b:8100", 2, 0, 2}), std::nullopt);
  EXPECT_EQ(a_->read()->record->renewal, 1u);
  const std::string third = **b_->swap(second, {"b:8100", 2, 0, 2});
  EXPECT_EQ(*a_->swap(second, {"a:8100", 1, 2, 1}), std::nullopt);
  EXPECT_EQ(b_->read()->version, third);
  // One that has resigned has no address.
  EXPECT_TRUE(b_->swap(third, {"", 2, 1, 2})->has_value());
  EXPECT_EQ(a_->read()->record->address, "");
}

INSTANTIATE_TEST_SUITE_P(Stores, LeaderStoreTest, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(RedisLeaderStoreTest, AForeignRecordIsNamed) {
  TestRedisServer server;
  RedisConnection connection(server.address());
  const std::string words[] = {"SET", RedisLeaderStore::kKey, "mine"};
  ASSERT_TRUE(connection.call(words).ok());
  const Status foreign = RedisLeaderStore(server.address()).read().status();
  EXPECT_EQ(foreign.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(foreign.message(), HasSubstr("key 'foliot:leader' of unix:"));
}

TEST(EtcdLeaderStoreTest, TheNextCallGoesToTheNextMember) {
  TestEtcdServer server;
  EtcdLeaderStore store(
      {.members = {fmt::format("http://127.0.0.1:{}", free_port()), server.url()}, .timeout = Duration::seconds(5)});
  EXPECT_EQ(store.read().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(store.read().ok());
  EXPECT_TRUE(store.read().ok());
}

TEST(EtcdLeaderStoreTest, AUserLogsInAndAWrongPasswordIsNamed) {
  TestEtcdServer server;
  std::string token;
  const auto post = [&](const std::string& path, const std::string& body) {
    const auto answer = http_call({.method = "POST",
                                   .url = server.url() + "/v3/auth/" + path,
                                   .headers = {"Authorization: " + token},
                                   .body = body});
    if (!answer.ok() || answer->code != 200) return false;
    token = nlohmann::json::parse(answer->body).value("token", token);
    return true;
  };
  ASSERT_TRUE(post("user/add", R"({"name":"root","password":"right"})"));
  ASSERT_TRUE(post("role/add", R"({"name":"root"})"));
  ASSERT_TRUE(post("user/grant", R"({"user":"root","role":"root"})"));
  ASSERT_TRUE(post("enable", "{}"));
  const auto store = [&](const std::string& password) {
    return EtcdLeaderStore({.members = {server.url()},
                            .key = "foliot/leader",
                            .user = "root",
                            .password = password,
                            .timeout = Duration::seconds(5)});
  };
  EtcdLeaderStore right = store("right");
  EXPECT_TRUE(right.swap("", {"a:8100", 1, 0, 1})->has_value());
  // Then tokens of before are not valid any more.
  ASSERT_TRUE(post("authenticate", R"({"name":"root","password":"right"})"));
  ASSERT_TRUE(post("disable", "{}"));
  token.clear();
  ASSERT_TRUE(post("enable", "{}"));
  EXPECT_FALSE(right.read().ok());
  EXPECT_EQ(right.read()->record->address, "a:8100");
  EXPECT_THAT(store("wrong").read().status().message(), HasSubstr("user 'root' of FOLIOT_ETCD_USER"));
}

TEST(KubernetesLeaderStoreTest, TheHolderIsShownAndAForeignOneNamed) {
  TestKubernetesServer server;
  KubernetesLeaderStore store(server_at(server.url()), {"ml", "foliot"});
  ASSERT_TRUE(store.swap("", {"a:8100", 7, 0, 1})->has_value());
  EXPECT_EQ(server.lease()["spec"]["holderIdentity"], "a:8100");
  EXPECT_EQ(server.lease()["spec"]["leaseTransitions"], 7);
  server.set_lease({{"kind", "Lease"}, {"metadata", {{"name", "foliot"}}}, {"spec", {{"holderIdentity", "other"}}}});
  EXPECT_EQ(store.read().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(store.read().status().message(), HasSubstr("Lease ml/foliot of http://127.0.0.1:"));
  // One that was made for the controllers, and that nothing has held yet.
  server.set_lease({{"kind", "Lease"}, {"metadata", {{"name", "foliot"}}}, {"spec", nlohmann::json::object()}});
  const auto made = store.read();
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->record);
  EXPECT_TRUE(store.swap(made->version, {"a:8100", 1, 0, 1})->has_value());
  server.forbid();
  EXPECT_THAT(store.read().status().message(), HasSubstr("`get`, `update` and `create` on leases"));
}

TEST(LeaderStorePlaceTest, WhatIsNoPlaceIsNamed) {
  for (const char* wrong : {"", "etcd://", "etcd://a", "etcd://a:2379,b", "etcd://user:secret@a:2379",
                            "kubernetes://ml", "kubernetes:///x", "kubernetes://a/b/c", "zookeeper://a", "redis://"}) {
    const auto store = open_leader_store(wrong, Duration::seconds(1));
    ASSERT_FALSE(store.ok()) << wrong;
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
  }
  const auto place = [](const char* text) { return (*open_leader_store(text, Duration::seconds(1)))->place(); };
  EXPECT_EQ(place("etcd://a:2379,b:2379"), "key 'foliot/leader' of etcd at http://a:2379");
  EXPECT_EQ(place("etcds://a:2379/other/key"), "key 'other/key' of etcd at https://a:2379");
  EXPECT_EQ(place("kubernetes://ml/foliot"), "Lease ml/foliot of https://kubernetes.default.svc");
  EXPECT_EQ(place("redis://a/3"), "key 'foliot:leader' of redis://a:6379/3");
}

}  // namespace
}  // namespace foliot
