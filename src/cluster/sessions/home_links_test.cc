#include "cluster/sessions/home_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/sessions/frontend_link.h"
#include "foundation/core/catalog.h"

namespace foliot {
namespace {

class NoDriver : public ConnectionDriver {
 public:
  void on_unsent(Connection&) override {}
};

TEST(HomeLinksTest, OnlyFrontEndsThatKeepUsersMayConnect) {
  Catalog catalog;
  FrontendLink link(catalog, 1, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}});
  NoDriver driver;
  Connection connection({}, "peer", link, driver);
  for (const Role peer : {Role::kController, Role::kWorker, Role::kClient}) {
    const auto session = link.on_open(connection, peer, TimePoint());
    ASSERT_FALSE(session.ok()) << to_string(peer);
    EXPECT_THAT(session.status().message(), testing::HasSubstr("only front ends that keep users"));
  }
}

TEST(HomeLinksTest, ControllersAndWorkersMayNotConnectToOneThatKeepsUsers) {
  Catalog catalog;
  FrontendLink link(catalog, 1, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}});
  HomeLinks homes("one", [](Severity, const std::string&) {});
  link.use(homes);
  NoDriver driver;
  Connection connection({}, "peer", link, driver);
  EXPECT_FALSE(link.on_open(connection, Role::kController, TimePoint()).ok());
  EXPECT_FALSE(link.on_open(connection, Role::kWorker, TimePoint()).ok());
  EXPECT_TRUE(link.on_open(connection, Role::kClient, TimePoint()).ok());
}

}  // namespace
}  // namespace foliot
