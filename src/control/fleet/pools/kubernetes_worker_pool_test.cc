#include "control/fleet/pools/kubernetes_worker_pool.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// One connection: what came, and the answer that it got.
class FakeServer {
 public:
  explicit FakeServer(std::string answer) : answer_(std::move(answer)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.number(), 1), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    if (thread_.joinable()) thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Once it has answered.
  const std::string& asked() {
    thread_.join();
    return asked_;
  }

 private:
  void serve() {
    const Descriptor connection(::accept(listener_.number(), nullptr, nullptr));
    std::array<char, 4096> chunk;
    while (!whole()) {
      const ssize_t got = ::read(connection.number(), chunk.data(), chunk.size());
      if (got <= 0) return;
      asked_.append(chunk.data(), static_cast<size_t>(got));
    }
    EXPECT_EQ(::write(connection.number(), answer_.data(), answer_.size()), static_cast<ssize_t>(answer_.size()));
  }
  bool whole() const {
    const size_t head = asked_.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const size_t length = asked_.find("Content-Length: ");
    return length > head || asked_.size() - head - 4 >= std::stoul(asked_.substr(length + 16));
  }

  const std::string answer_;
  Descriptor listener_{::socket(AF_INET, SOCK_STREAM, 0)};
  uint16_t port_ = 0;
  std::string asked_;
  std::thread thread_;
};

std::string answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

class KubernetesWorkerPoolTest : public testing::Test {
 protected:
  KubernetesWorkerPoolTest() { std::ofstream(token_) << "secret\n"; }
  ~KubernetesWorkerPoolTest() override { std::filesystem::remove(token_); }
  KubernetesWorkerPool pool(const std::string& server) {
    return KubernetesWorkerPool({.server = server,
                                 .token_file = token_,
                                 .ca_file = {},
                                 .stateful_sets = {{"cpu", {.name_space = "ml", .name = "foliot-worker"}}}});
  }

  const std::filesystem::path token_ =
      std::filesystem::temp_directory_path() / ("foliot-token-" + std::to_string(::getpid()));
};

TEST_F(KubernetesWorkerPoolTest, AsksForTheScaleOfTheStatefulSet) {
  FakeServer server(answer("200 OK", R"({"kind":"Scale","spec":{"replicas":3},"status":{"replicas":2}})"));
  KubernetesWorkerPool pool = this->pool(server.url());
  EXPECT_EQ(pool.size("cpu").value(), 3u);
  EXPECT_THAT(server.asked(),
              AllOf(StartsWith("GET /apis/apps/v1/namespaces/ml/statefulsets/foliot-worker/scale HTTP/1.1\r\n"),
                    HasSubstr("\r\nAuthorization: Bearer secret\r\n")));
}

TEST_F(KubernetesWorkerPoolTest, PatchesTheReplicas) {
  FakeServer server(answer("200 OK", R"({"kind":"Scale","spec":{"replicas":4}})"));
  KubernetesWorkerPool pool = this->pool(server.url());
  EXPECT_EQ(pool.set_size("cpu", 4).message(), "");
  EXPECT_THAT(server.asked(),
              AllOf(StartsWith("PATCH /apis/apps/v1/namespaces/ml/statefulsets/foliot-worker/scale HTTP/1.1\r\n"),
                    HasSubstr("\r\nContent-Type: application/merge-patch+json\r\n"),
                    HasSubstr("\r\n\r\n{\"spec\":{\"replicas\":4}}")));
}

TEST_F(KubernetesWorkerPoolTest, TheLastPodLeavesFirst) {
  FakeServer server(answer("200 OK", R"({"spec":{"replicas":3}})"));
  EXPECT_EQ(pool(server.url()).next_to_leave("cpu"), "foliot-worker-2");
  FakeServer empty(answer("200 OK", R"({"spec":{}})"));  // zero is left out
  EXPECT_EQ(pool(empty.url()).next_to_leave("cpu"), std::nullopt);
}

TEST_F(KubernetesWorkerPoolTest, WhatTheServerRefusesIsSaid) {
  FakeServer server(answer("403 Forbidden", R"({"kind":"Status","message":"user \"system\" cannot patch"})"));
  EXPECT_THAT(pool(server.url()).set_size("cpu", 4).message(),
              HasSubstr("answers 403: user \"system\" cannot patch; the service account needs `get` and `patch`"));
  FakeServer absent(answer("404 Not Found", R"({"message":"statefulsets \"foliot-worker\" not found"})"));
  EXPECT_EQ(pool(absent.url()).size("cpu").status().code(), StatusCode::kNotFound);
  FakeServer wrong(answer("200 OK", "<html>"));
  EXPECT_THAT(pool(wrong.url()).size("cpu").status().message(), HasSubstr("answers no Scale: <html>"));
  EXPECT_THAT(pool("http://127.0.0.1:1").size("cpu").status().message(), HasSubstr("connect"));
  EXPECT_EQ(pool("http://127.0.0.1:1").size("gpu").status().message(), "no StatefulSet has workers of kind 'gpu'");
}

TEST_F(KubernetesWorkerPoolTest, ATokenThatIsNotThereIsNamed) {
  std::filesystem::remove(token_);
  EXPECT_THAT(pool("http://127.0.0.1:1").size("cpu").status().message(),
              AllOf(HasSubstr(token_.string()), HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace foliot
