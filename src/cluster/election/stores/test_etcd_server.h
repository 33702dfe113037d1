// TestEtcdServer: for tests, one member of etcd with a folder of its own. It keeps what it has between stop() and
// start().
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_TEST_ETCD_SERVER_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_TEST_ETCD_SERVER_H_

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "foundation/platform/descriptor.h"
#include "foundation/process/child_process.h"

namespace foliot {

// One that is free now.
inline uint16_t free_port() {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  EXPECT_EQ(::bind(probe.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(probe.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

class TestEtcdServer {
 public:
  TestEtcdServer() { start(); }
  ~TestEtcdServer() {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", client_port_); }

  void start() {
    const std::string peer = fmt::format("http://127.0.0.1:{}", peer_port_);
    Result<ChildProcess> server = ChildProcess::start(
        {.command = {"/usr/bin/etcd", "--data-dir", folder_.string(), "--listen-client-urls", url(),
                     "--advertise-client-urls", url(), "--listen-peer-urls", peer, "--initial-advertise-peer-urls",
                     peer, "--initial-cluster", "default=" + peer, "--unsafe-no-fsync"},
         .environment = {}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_.emplace(std::move(server).value());
    std::string said, complained;
    while (complained.find("ready to serve client requests") == complained.npos &&
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
    return std::filesystem::path(testing::TempDir()) / fmt::format("foliot_etcd_{}_{}", ::getpid(), ++servers);
  }

  const std::filesystem::path folder_ = make_path();
  const uint16_t client_port_ = free_port();
  const uint16_t peer_port_ = free_port();
  std::optional<ChildProcess> server_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_TEST_ETCD_SERVER_H_
