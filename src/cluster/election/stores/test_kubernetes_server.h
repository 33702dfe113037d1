// TestKubernetesServer: for tests, what an API server of Kubernetes does with one Lease: it makes it once, and changes
// it where the resourceVersion is that of the last change. It closes each connection after one answer.
#ifndef FOLIOT_CLUSTER_ELECTION_STORES_TEST_KUBERNETES_SERVER_H_
#define FOLIOT_CLUSTER_ELECTION_STORES_TEST_KUBERNETES_SERVER_H_

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "foundation/base/mutex.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

class TestKubernetesServer {
 public:
  static constexpr std::string_view kLeases = "/apis/coordination.k8s.io/v1/namespaces/ml/leases";

  TestKubernetesServer() {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.number(), 16), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~TestKubernetesServer() {
    ::shutdown(listener_.number(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  nlohmann::json lease() {
    const MutexLock lock(mutex_);
    return lease_;
  }
  void set_lease(nlohmann::json lease) {
    const MutexLock lock(mutex_);
    lease_ = std::move(lease);
    lease_["metadata"]["resourceVersion"] = std::to_string(++versions_);
  }
  void forbid() {
    const MutexLock lock(mutex_);
    forbids_ = true;
  }

 private:
  void serve() {
    while (true) {
      const Descriptor connection(::accept(listener_.number(), nullptr, nullptr));
      if (connection.number() < 0) return;
      std::string asked;
      std::array<char, 4096> chunk;
      while (!whole(asked)) {
        const ssize_t got = ::read(connection.number(), chunk.data(), chunk.size());
        if (got <= 0) break;
        asked.append(chunk.data(), static_cast<size_t>(got));
      }
      const auto [code, body] = answer(asked);
      const std::string text =
          fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", code, body.size(), body);
      static_cast<void>(::write(connection.number(), text.data(), text.size()));
    }
  }
  static bool whole(const std::string& asked) {
    const size_t head = asked.find("\r\n\r\n");
    if (head == asked.npos) return false;
    const size_t length = asked.find("Content-Length: ");
    return length > head || asked.size() - head - 4 >= std::stoul(asked.substr(length + 16));
  }

  std::pair<int, std::string> answer(const std::string& asked) {
    const MutexLock lock(mutex_);
    const auto status = [](int code, const std::string& message) {
      return std::pair(code, nlohmann::json{{"kind", "Status"}, {"message", message}}.dump());
    };
    if (forbids_) return status(403, "leases is forbidden");
    const std::string one = fmt::format("{}/foliot", kLeases);
    if (asked.starts_with(fmt::format("GET {} ", one))) {
      return lease_.is_null() ? status(404, "not found") : std::pair(200, lease_.dump());
    }
    nlohmann::json given = nlohmann::json::parse(asked.substr(asked.find("\r\n\r\n") + 4), nullptr, false);
    if (given.is_discarded() || given["kind"] != "Lease") return status(400, "no Lease");
    if (asked.starts_with(fmt::format("POST {} ", kLeases))) {
      if (!lease_.is_null()) return status(409, "it exists");
    } else if (asked.starts_with(fmt::format("PUT {} ", one))) {
      if (lease_.is_null()) return status(404, "not found");
      if (given["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
        return status(409, "the object has been modified");
      }
    } else {
      return status(405, "not supported");
    }
    lease_ = std::move(given);
    lease_["metadata"]["resourceVersion"] = std::to_string(++versions_);
    return {200, lease_.dump()};
  }

  Descriptor listener_{::socket(AF_INET, SOCK_STREAM, 0)};
  uint16_t port_ = 0;
  Mutex mutex_;
  nlohmann::json lease_ GUARDED_BY(mutex_);  // null: there is none
  uint64_t versions_ GUARDED_BY(mutex_) = 100;
  bool forbids_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_STORES_TEST_KUBERNETES_SERVER_H_
