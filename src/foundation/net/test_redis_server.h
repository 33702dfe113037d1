// TestRedisServer: for tests, a server of Redis with a socket in a folder of its own. It keeps what it has between
// stop() and start().
#ifndef FOLIOT_FOUNDATION_NET_TEST_REDIS_SERVER_H_
#define FOLIOT_FOUNDATION_NET_TEST_REDIS_SERVER_H_

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foundation/net/redis_address.h"
#include "foundation/process/child_process.h"

namespace foliot {

class TestRedisServer {
 public:
  TestRedisServer() {
    std::filesystem::create_directories(folder_);
    start();
  }
  ~TestRedisServer() {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  RedisAddress address() const { return *RedisAddress::parse("unix:" + (folder_ / "socket").string()); }

  void start() {
    Result<ChildProcess> server = ChildProcess::start(
        {.command = {"/usr/bin/redis-server", "--port", "0", "--unixsocket", address().socket, "--save", "",
                     "--appendonly", "yes", "--appendfsync", "no", "--dir", folder_.string()},
         .environment = {}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_.emplace(std::move(server).value());
    std::string said, complained;
    while (said.find("ready to accept connections") == said.npos &&
           server_->listen(Duration::seconds(10), said, complained)) {
    }
  }
  void stop() {
    server_->kill();
    std::string said, complained;
    while (server_->listen(Duration::seconds(10), said, complained)) {
    }
    server_.reset();
  }

 private:
  static std::filesystem::path make_path() {
    static std::atomic<int> servers = 0;
    // Processes of tests run at the same time.
    return std::filesystem::path(testing::TempDir()) / fmt::format("foliot_redis_{}_{}", ::getpid(), ++servers);
  }

  const std::filesystem::path folder_ = make_path();
  std::optional<ChildProcess> server_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_NET_TEST_REDIS_SERVER_H_
